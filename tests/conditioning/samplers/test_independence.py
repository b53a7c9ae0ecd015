"""Independence chains: the bound on their error by transition matrices, and where they start."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import congenial as cg
from congenial.conditioning.proposal import feasible_start, largest_noise
from congenial.conditioning.samplers.independence import bound_after
from congenial.errors import (
    ArgumentError,
    InfeasibleError,
    PrivacyError,
    UnsupportedError,
)
from support.conditioning_cases import Case
from support.proposal_cases import DRAWS, invariant_of, made, mechanism_of
from support.sum_networks import networks
from support.tree_cases import CASES

TINY = {
    "sum of three": Case("laplace", np.full(3, 0.9), np.array([1, 2, 1]), lo=0, rows=((1, 1, 1),)),
    "wider proposal": Case(
        "laplace", np.array([0.7, 1.1, 0.9]), np.array([1, 2, 1]), lo=0, rows=((1, 1, 1),)
    ),
    "narrower proposal": Case(
        "laplace", np.full(3, 1.2), np.array([1, 1, 1]), lo=0, rows=((1, 1, 1),)
    ),
    "gaussian": Case("gaussian", np.full(3, 1.0), np.array([1, 2, 1]), lo=0, rows=((1, 1, 1),)),
}
FACTOR = {"wider proposal": 1.4, "narrower proposal": 0.7}


def chain(case: Case, placed):
    """The chain's transition matrix on the states, by Algorithm 1 as printed; and its law."""
    law = case.law()
    noise = law.states - case.x

    def pmf(u, scale):
        if case.kind == "laplace":
            return np.tanh(0.5 / scale) * np.exp(-abs(u) / scale)
        every = np.arange(-200, 201)
        return np.exp(-0.5 * (u / scale) ** 2) / np.exp(-0.5 * (every / scale) ** 2).sum()

    proposed = np.array(
        [
            np.prod([pmf(u[i], s) for i, s in zip(placed.index, placed.scales, strict=True)])
            for u in noise
        ]
    )
    ratio = law.probabilities / proposed
    move = proposed[None] * np.minimum(1.0, ratio[None] / ratio[:, None])
    np.fill_diagonal(move, 0.0)
    np.fill_diagonal(move, 1.0 - move.sum(axis=1))
    return move, law, ratio


@pytest.mark.parametrize("name", TINY)
def test_the_bound_holds_for_the_chain_itself(name):
    case = TINY[name]
    conditioned = made(case, "independence", scale=case.scales * FACTOR.get(name, 1.0))
    move, law, ratio = chain(case, conditioned.placed)
    assert np.abs(law.probabilities @ move - law.probabilities).max() < 1e-14
    log_ratio = conditioned.log_ratio(case.x)
    known = np.log(ratio.max())
    if name == "narrower proposal":
        assert log_ratio > known  # a bound, from bounds on all entries
    else:
        assert log_ratio == pytest.approx(known, abs=1e-9)
    power = np.eye(len(law.states))
    for t in range(1, 40):
        power = power @ move
        far = 0.5 * np.abs(power - law.probabilities).sum(axis=1)
        bound = bound_after(log_ratio, t)
        assert far.max() <= bound + 1e-12
        # from the state of greatest weight, it is attained but for that state's own probability
        attained = bound_after(known, t) * (1 - law.probabilities[ratio.argmax()])
        assert far[ratio.argmax()] >= attained - 1e-12
    assert far.max() > bound_after(known - 0.05, t)  # in the long run, a smaller one is false
    told = conditioned.run(case.x, 10, 2, cg.seeded(0), warmup=5, thin=2)[1].tv_bound
    assert told == pytest.approx(bound_after(log_ratio, 25))


def test_the_chain_has_the_transition_matrix_of_its_definition():
    case = TINY["wider proposal"]
    conditioned = made(case, "independence", scale=case.scales * 1.4)
    move, law, _ = chain(case, conditioned.placed)
    start = law.states[-1]
    draw, info = conditioned.run(case.x, 1, DRAWS, cg.seeded(4), start=start, warmup=2)
    power = np.linalg.matrix_power(move, 3)[len(law.states) - 1]
    counts = np.array([(draw.values[:, 0] == z).all(axis=1).sum() for z in law.states])
    assert counts.sum() == DRAWS
    off = (counts - DRAWS * power) ** 2 / np.maximum(DRAWS * power, 1e-300)
    assert off[power > 5 / DRAWS].sum() < len(law.states) + 8 * np.sqrt(2 * len(law.states))
    # acceptance after the warm-up: the share of candidates that were taken, repeats among them
    assert info.acceptance.shape == (DRAWS,)
    assert set(info.acceptance) == {0.0, 1.0}


def test_the_start_depends_on_the_invariant_only():
    tree = cg.Tree.from_parents([-1, 0, 0, 1, 1, 1, 2, 2])
    mechanism = cg.Additive(cg.DiscreteLaplace(2.0), tree)
    totals = cg.consistent(tree) & cg.exactly([0])
    data = [tree.roll_up(leaves) for leaves in ([3, 1, 4, 1, 5], [9, 1, 1, 1, 2], [1, 1, 1, 10, 1])]
    for invariant, least in (
        (totals, -np.inf),
        (totals & cg.nonnegative(), 0),
        (totals & cg.bounds(1, 20), 1),
        (totals & cg.at_least(np.eye(8)[1] - np.eye(8)[2], -11), -np.inf),
    ):
        conditioned = cg.condition(mechanism, invariant, "independence")
        resolved, placed = conditioned.resolved, conditioned.placed
        starts = [feasible_start(resolved, placed, x, whole=True) for x in data]
        for other in starts[1:]:
            np.testing.assert_array_equal(starts[0], other)
        assert tree.is_consistent(starts[0].astype(int))
        assert starts[0][0] == 14
        assert starts[0].min() >= least
        assert not any(np.array_equal(starts[0], x) for x in data)


def test_a_start_may_be_given_and_must_be_feasible():
    case = CASES["star, pinned total, nonnegative"]
    conditioned = made(case, "independence")
    start = np.array([12, 12, 0, 0])
    draw, _ = conditioned.run(case.x, 30, 4, cg.seeded(1), start=start, warmup=0)
    moved = (draw.values[:, :8] != start).any(axis=2)
    assert not moved.all() and moved[:, -1].any()
    for wrong in ([12, 13, -1, 0], [12, 11, 0, 0], [11, 11, 0, 0], [12, 11.5, 0.5, 0], [12, 12, 0]):
        with pytest.raises(ArgumentError, match="start does not satisfy"):
            conditioned.run(case.x, 5, 2, cg.seeded(1), start=wrong)


def test_a_missing_start_is_reported(monkeypatch):
    mechanism = cg.Additive(cg.DiscreteLaplace(1.0), 3)
    invariant = cg.linear([[1, 1, 1]], 6) & cg.bounds(1, 3)
    conditioned = cg.condition(mechanism, invariant, "independence")
    monkeypatch.setitem(sys.modules, "scipy.optimize", None)
    with pytest.raises(UnsupportedError, match="pip install scipy"):
        conditioned.run([1, 2, 3], 5, 2, cg.seeded(1))
    draw, _ = conditioned.run([1, 2, 3], 5, 2, cg.seeded(1), start=[2, 2, 2])
    assert draw.values.min() >= 1
    monkeypatch.undo()

    class Nothing:
        x = None

    monkeypatch.setattr("scipy.optimize.milp", lambda *_, **__: Nothing)
    with pytest.raises(InfeasibleError, match="as start="):
        conditioned.run([1, 2, 3], 5, 2, cg.seeded(1))


def test_the_stationary_acceptance_is_for_studies():
    conditioned = made(CASES["star"], "independence")
    with pytest.raises(PrivacyError, match="for a study"):
        conditioned.acceptance(CASES["star"].x)


def test_the_stationary_acceptance_is_that_of_long_chains():
    for name, factor in (("star", 1.0), ("star, pinned total, nonnegative", 0.9)):
        conditioned = made(CASES[name], "independence", scale=CASES[name].scales * factor)
        x = CASES[name].x
        told = conditioned.acceptance(x, 20_000, cg.seeded(2))
        _, info = conditioned.run(x, 20_000, 4, cg.seeded(3))
        assert told == pytest.approx(info.acceptance.mean(), abs=0.015)
    case = TINY["wider proposal"]
    conditioned = made(case, "independence", scale=case.scales * 1.4)
    _, law, ratio = chain(case, conditioned.placed)
    proposed = law.probabilities / ratio
    chance = proposed[None] * np.minimum(1.0, ratio[None] / ratio[:, None])
    exact = law.probabilities @ chance.sum(axis=1)
    assert conditioned.acceptance(case.x, 20_000, cg.seeded(2)) == pytest.approx(exact, abs=0.015)
    joint = cg.linear([[1, 1, 1]], 6) & cg.at_least([[1, 2, 0]], 2)
    mechanism = cg.Additive(cg.DiscreteLaplace(1.0), 3)
    with pytest.raises(UnsupportedError, match="acceptance in run"):
        cg.condition(mechanism, joint, "independence").acceptance([2, 1, 3], 10, cg.seeded(1))


@settings(max_examples=120, deadline=None, derandomize=True)
@given(networks(), st.sampled_from((0.8, 1.0, 1.7)))
def test_the_ratio_bounds_every_state_of_any_network(case, factor):
    mechanism = mechanism_of(case)
    given_scale = cg.conditioning.Proposal(scale=case.scales * factor)
    try:
        conditioned = cg.condition(
            mechanism, invariant_of(case), "independence", proposal=given_scale
        )
        log_ratio = conditioned.log_ratio(case.x)
    except UnsupportedError:  # no exact sampler, or no index set that keeps integers
        return
    law, placed = case.law(), conditioned.placed
    noise = law.states - case.x
    log_q = mechanism.noise.log_pmf(noise[:, placed.index], placed.scales).sum(axis=1)
    largest = float((np.log(law.probabilities) - log_q).max())
    if factor >= 1.0:
        assert log_ratio == pytest.approx(largest, abs=1e-8)
    else:
        assert log_ratio >= largest - 1e-8
    # the candidates' weights are p/q in units of that of no noise
    told = conditioned.log_weights(
        noise[:, placed.index].astype(float), noise[:, placed.rest].astype(float)
    )
    plain = mechanism.log_prob(law.states, case.x) - log_q
    at_zero = (noise == 0).all(axis=1).argmax()
    np.testing.assert_allclose(told, plain - plain[at_zero], atol=1e-9)
    resolved = conditioned.resolved
    lo = np.where(resolved.pinned, 0.0, resolved.lo - case.x)
    hi = np.where(resolved.pinned, 0.0, resolved.hi - case.x)
    assert (largest_noise(resolved, lo, hi) >= np.abs(noise).max(axis=0)).all()


@pytest.mark.parametrize("sampler", ["independence", "tree-mh"])
def test_chains_on_a_grid_take_the_options_of_the_chain(sampler):
    tree = cg.Tree.from_parents([-1, 0, 0, 0])
    invariant, half = (cg.consistent(tree) & cg.bounds(0, top) for top in (20, 40))
    step = 0.5
    on_grid, whole = (
        cg.condition(
            cg.Additive(noise, tree),
            kept,
            sampler,
            proposal=cg.conditioning.Proposal(scale=2.0 / unit),
        )
        for noise, kept, unit in (
            (cg.DiscreteLaplace(1.5, granularity=step), invariant, 1.0),
            (cg.DiscreteLaplace(1.5 / step), half, step),
        )
    )
    x, start = tree.roll_up([3, 4, 2]), tree.roll_up([2, 2, 5])
    (a, told), (b, same) = (
        made.run(values, 40, 2, cg.seeded(7), start=begin, warmup=3, thin=2)
        for made, values, begin in ((on_grid, x, start), (whole, x / step, start / step))
    )
    np.testing.assert_array_equal(a.values, step * b.values)
    assert (told.warmup, told.thin) == (same.warmup, same.thin) == (3, 2)
    with pytest.raises(ArgumentError, match="start"):
        on_grid.run(x, 5, 2, cg.seeded(7), start="here")
    with pytest.raises(ArgumentError, match="start"):
        on_grid.run(x, 5, 2, cg.seeded(7), start=start + np.array([0, 0.25, -0.25, 0]))


def test_a_chain_that_never_moved_is_reported():
    mechanism = cg.Additive(cg.DiscreteGaussian([0.51, 0.92]), 2)
    narrow = cg.condition(
        mechanism,
        cg.linear([[1, 1]], [5]),
        "independence",
        proposal=cg.conditioning.Proposal(scale=mechanism.scales * 0.74),
    )
    draw, info = narrow.run([3, 2], 1000, 4, cg.seeded(1))
    still = ~np.ptp(draw.values, axis=1).any(axis=1)
    assert still.any()
    np.testing.assert_array_equal(info.acceptance == 0.0, still)
    assert info.worst == (np.inf, 0.0)
    moved = cg.condition(mechanism, cg.linear([[1, 1]], [5]), "independence")
    r_hat, effective = moved.run([3, 2], 1000, 4, cg.seeded(1))[1].worst
    assert r_hat < 1.1
    assert effective > 100
