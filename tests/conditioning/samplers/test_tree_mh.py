"""The tree Metropolis-Hastings chain: its law, its tuning, its records and its refusals."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chi2

import congenial as cg
from congenial.conditioning.samplers.tree_mh import WANTED
from congenial.errors import (
    ArgumentError,
    InvariantError,
    PrivacyError,
    UnsupportedError,
)
from support.enumeration import enumerate_law, rows_of
from support.goodness_of_fit import FAILS, fit
from support.proposal_cases import made
from support.sum_networks import scaled
from support.tree_cases import CASES, make

pytestmark = pytest.mark.kernels

TREES = {
    name: CASES[name]
    for name in (
        "star",
        "binary",
        "binary, middle not measured",
        "star, all children empty, nonnegative",
    )
} | {
    "gaussian": make((-1, 0, 0, 1, 1), [0.9, 1.2, 0.8, 0.9, 1.0], [3, 1, 2], kind="gaussian"),
    "children first": make((2, 2, -1, 1, 1), 0.8, [2, 0, 1], lo=0),
    "two roots": make((-1, -1, 0, 0, 1, 1), 0.7, [1, 2, 0, 1], hi=6),
}


@pytest.mark.parametrize("name", TREES)
def test_chains_follow_the_law_and_fail_at_a_wrong_scale(name):
    case = TREES[name]
    draw, info = made(case, "tree-mh").run(case.x, 5000, 4, cg.seeded(9), thin=60)
    draws = draw.values.reshape(-1, case.n)
    assert draws.dtype == np.int64
    assert info.worst[0] < 1.01
    assert fit(draws, case.law(), range(case.n)) > FAILS
    for off in (0.7, 1.3):
        assert fit(draws, scaled(case, off), range(case.n)) < FAILS


def test_inequalities_on_sums_of_nodes_are_kept():
    tree = cg.Tree.from_parents([-1, 0, 0, 0])
    x = np.array([4, 2, 1, 1])
    at_least = cg.at_least([[0, 1, -1, 0], [0, 0, 1, 1]], [0, 1])
    mechanism = cg.Additive(cg.DiscreteLaplace(0.9), tree)
    conditioned = cg.condition(mechanism, cg.consistent(tree) & at_least, "tree-mh")
    draw, _ = conditioned.run(x, 5000, 4, cg.seeded(2), thin=60)
    draws = draw.values.reshape(-1, 4)
    law = enumerate_law(rows_of(tree.parents), "laplace", 0.9, x)
    z = law.states
    inside = (z[:, 1] >= z[:, 2]) & (z[:, 2] + z[:, 3] >= 1)
    mass = law.probabilities[inside]
    assert fit(draws, type(law)(z[inside], mass / mass.sum(), 0.0), range(4)) > FAILS
    assert fit(draws, law, range(4)) < FAILS
    with pytest.raises(InvariantError, match="at_least"):
        conditioned.run(np.array([4, 1, 2, 1]), 5, 2, cg.seeded(1))


@pytest.mark.parametrize("noise", [cg.Laplace, cg.Gaussian])
def test_continuous_noise_is_covered_too(noise):
    tree = cg.Tree.from_parents([-1, 0, 0])
    x = np.array([3.5, 2.0, 1.5])
    mechanism = cg.Additive(noise(0.8), tree)
    conditioned = cg.condition(mechanism, cg.consistent(tree) & cg.nonnegative(), "tree-mh")
    draw, info = conditioned.run(x, 2500, 4, cg.seeded(3), thin=60)
    draws = draw.values.reshape(-1, 3)
    assert draws.dtype == np.float64
    np.testing.assert_allclose(draws[:, 0], draws[:, 1] + draws[:, 2], atol=1e-12)
    assert draws.min() >= 0
    assert np.abs(info.acceptance - WANTED).max() < 0.1
    axis = np.linspace(-9.0, 9.0, 721)
    first, second = np.meshgrid(axis, axis, indexing="ij")
    inside = (first >= -2.0) & (second >= -1.5)
    for factor, right in ((1.0, True), (0.7, False), (1.3, False)):
        cost = sum(
            np.abs(u) if noise is cg.Laplace else u * u / 1.6
            for u in (first, second, first + second)
        )
        law = (np.exp(-cost / (0.8 * factor)) * inside).sum(axis=1)
        ends = np.interp(np.arange(1, 20) / 20, np.cumsum(law / law.sum()), axis + 0.0125)
        share = np.bincount(np.searchsorted(ends, draws[:, 1] - 2.0), minlength=20)
        statistic = ((share - 500.0) ** 2 / 500.0).sum()
        assert (chi2.sf(statistic, 19) > FAILS) == right


LARGE = cg.Tree.from_parents([-1, 0, 0, 0] + [1 + i % 3 for i in range(61)])
COUNTS = LARGE.roll_up(np.arange(61))


def test_the_step_is_tuned_in_the_warm_up_only():
    mechanism = cg.Additive(cg.Laplace(np.where(LARGE.is_leaf, 3.0, 1.0)), LARGE)
    conditioned = cg.condition(mechanism, cg.consistent(LARGE), "tree-mh")
    _, info = conditioned.run(COUNTS, 2000, 3, cg.seeded(1))
    assert np.abs(info.acceptance - WANTED).max() < 0.05
    given = cg.condition(
        mechanism, cg.consistent(LARGE), "tree-mh", proposal=cg.conditioning.Proposal(scale=0.01)
    )
    _, small = given.run(COUNTS, 2000, 3, cg.seeded(1))
    assert small.acceptance.min() > 0.9
    # with the warm-up's step given, the same chain; the trace after it does not depend on draws
    whole, _ = given.run(COUNTS, 60, 2, cg.seeded(1), warmup=0, thin=1)
    few, _ = given.run(COUNTS, 20, 2, cg.seeded(1), warmup=0, thin=3)
    np.testing.assert_array_equal(whole.values[0, 2::3], few.values[0])


def test_blocks_of_words_end_anywhere(monkeypatch):
    mechanism = cg.Additive(cg.DiscreteLaplace(2.0), LARGE)
    conditioned = cg.condition(mechanism, cg.consistent(LARGE), "tree-mh")
    whole, info = conditioned.run(COUNTS, 50, 2, cg.seeded(4), warmup=100, thin=7)
    monkeypatch.setattr("congenial.conditioning.samplers.tree_mh._BLOCK", 500)
    split, again = conditioned.run(COUNTS, 50, 2, cg.seeded(4), warmup=100, thin=7)
    np.testing.assert_array_equal(whole.values, split.values)
    np.testing.assert_array_equal(info.acceptance, again.acceptance)


def test_starts_are_feasible_and_may_be_given():
    mechanism = cg.Additive(cg.DiscreteLaplace(5.0), LARGE)
    invariant = cg.consistent(LARGE) & cg.nonnegative()
    conditioned = cg.condition(
        mechanism, invariant, "tree-mh", proposal=cg.conditioning.Proposal(scale=1e-9)
    )  # which stays
    draw, info = conditioned.run(COUNTS, 3, 4, cg.seeded(4), warmup=0)
    assert draw.values.min() >= 0
    assert (info.acceptance == 1).all()
    assert len({tuple(row) for row in draw.values[:, 0].tolist()}) == 4
    start = LARGE.roll_up(np.ones(61, dtype=int))
    draw, _ = conditioned.run(COUNTS, 3, 4, cg.seeded(4), start=start)
    assert (draw.values == start).all()
    with pytest.raises(ArgumentError, match="start does not satisfy"):
        conditioned.run(COUNTS, 3, 4, cg.seeded(4), start=np.arange(len(LARGE)))


def test_chains_neither_release_nor_state_a_guarantee():
    conditioned = made(CASES["star"], "tree-mh")
    x = CASES["star"].x
    for call in (
        lambda: conditioned.sample(x),
        lambda: conditioned.run(x, rng=cg.secure()),
        lambda: conditioned.guarantee("substitute"),
        lambda: conditioned.guarantee("add-remove"),
    ):
        with pytest.raises(PrivacyError, match="no bound on") as caught:
            call()
        assert str(caught.value).endswith(".")
    assert conditioned.error_bound == 1.0
    _, info = conditioned.run(x, 10, 2, cg.seeded(1), warmup=10)
    assert info.tv_bound is None and "random walk" in info.unbounded and not info.certified
    assert conditioned.sample(x, 6, cg.seeded(1)).shape == (6, 4)
    assert conditioned.sample(x, rng=cg.seeded(1)).shape == (4,)
    exact = made(CASES["star"], "exact")
    assert conditioned.log_prob(x, x) == exact.log_prob(x, x)
    for told in ("for studies", "0.234", "R-hat", "sampler='exact'"):
        assert told in conditioned.explain()
    for wrong in ({"draws": 0}, {"chains": 0}, {"thin": 0}, {"warmup": -1}):
        with pytest.raises(ArgumentError):
            conditioned.run(x, **({"rng": cg.seeded(1)} | wrong))


def test_unsupported_cases_are_refused():
    tree = cg.Tree.from_parents([-1, 0, 0, 1, 1])
    mechanism = cg.Additive(cg.DiscreteLaplace(1.0), tree)
    adds_up = cg.consistent(tree)
    for invariant, told in (
        (cg.linear([[1, -1, -1, 0, 0]], 0), "needs a tree"),
        (adds_up & cg.exactly([0]), "keeps no total"),
        (adds_up & cg.linear([[0, 0, 0, 1, -1]], 0), "keeps no total"),
    ):
        with pytest.raises(UnsupportedError, match=told):
            cg.condition(mechanism, invariant, "tree-mh")
    with pytest.raises(ArgumentError, match="takes no index"):
        cg.condition(mechanism, adds_up, "tree-mh", proposal=cg.conditioning.Proposal(index=[0]))
    with pytest.raises(ArgumentError, match="has 2 scales"):
        cg.condition(
            mechanism, adds_up, "tree-mh", proposal=cg.conditioning.Proposal(scale=[1.0, 2.0])
        )
    for unmeasured, proper in (((3,), True), ((3, 4), False), ((0, 3), True), ((0, 1, 3), False)):
        scales = np.ones(5)
        scales[list(unmeasured)] = np.inf
        part = cg.Additive(cg.DiscreteLaplace(scales), tree)
        if proper:
            assert cg.condition(part, adds_up, "tree-mh").exact is not None
            continue
        with pytest.raises(UnsupportedError, match="law does not exist"):
            cg.condition(part, adds_up, "tree-mh")
