"""Every route by every noise law, on integers and grids, against enumeration; and known moments."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings

import congenial as cg
from congenial.conditioning.grid import OnGrid
from congenial.conditioning.laws.cutset_sampler import CutConditioned
from congenial.conditioning.laws.normal import ConditionedGaussian
from congenial.conditioning.laws.sparse_subspace import Sparse
from support.conditioning_cases import INF, LAWS
from support.crossed_trees import crossed_trees
from support.enumeration import enumerate_law, rows_of
from support.goodness_of_fit import FAILS, fit
from support.sum_networks import margins

BINARY = (-1, 0, 0, 1, 1)
RINGS = margins(3, 3)
SQUARE = np.array([1, 2, 0, 0, 3, 1, 2, 2, 1])
STEPS = (1.0, 0.25)
# A Gaussian law of one scale is narrower than a Laplace law of it.
WIDER = {"laplace": 1.0, "gaussian": 1.5}
# Scales of entries, of the tree and of the table; an entry that is not measured is held by sums.
TREE_SCALES = {
    "one scale": np.full(5, 0.6),
    "a scale a node": np.array([0.7, 0.4, 0.6, 0.5, 0.8]),
    "not all measured": np.array([0.5, INF, 0.6, 0.5, INF]),
}
TABLE_SCALES = {
    "one scale": np.full(9, 0.6),
    "a scale a node": np.linspace(0.4, 0.8, 9),
    "not all measured": np.array([0.5, INF, 0.6, 0.4, 0.5, 0.5, INF, 0.7, 0.6]),
}


def forest_case(kind, which, step):
    tree = cg.Tree.from_parents(BINARY)
    x = tree.roll_up(np.array([3, 1, 2]))
    scales = WIDER[kind] * TREE_SCALES[which]
    mechanism = cg.Additive(LAWS[kind](step * scales, step), tree)
    made = cg.condition(mechanism, cg.consistent(tree))
    return made, x, enumerate_law(rows_of(BINARY), kind, scales, x, flat=60)


def table_case(kind, which, step, sampler="auto", lo=-INF):
    scales = WIDER[kind] * TABLE_SCALES[which]
    mechanism = cg.Additive(LAWS[kind](step * scales, step), 9)
    invariant = cg.linear(RINGS, step * (RINGS @ SQUARE)) & cg.bounds(lo)
    made = cg.condition(mechanism, invariant, sampler)
    return made, SQUARE, enumerate_law(RINGS, kind, scales, SQUARE, lo=lo, flat=40)


EXACT = {
    "forest": forest_case,
    "cut set": table_case,
    "cut set, nonnegative": lambda *args: table_case(*args, lo=0),
}


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("which", TREE_SCALES)
@pytest.mark.parametrize("kind", sorted(LAWS))
@pytest.mark.parametrize("route", EXACT)
def test_exact_routes_have_their_law(route, kind, which, step):
    made, counts, law = EXACT[route](kind, which, step)
    assert isinstance(made, OnGrid) == (step != 1.0)
    inner = made.inner if isinstance(made, OnGrid) else made
    assert isinstance(inner, CutConditioned) == (route != "forest")
    x = step * counts
    assert made.log_normalizer(x) == pytest.approx(law.log_total, abs=1e-10)
    heavy = np.argsort(-law.probabilities, kind="stable")[:300]
    got = made.log_prob(step * law.states[heavy], x)
    np.testing.assert_allclose(got, np.log(law.probabilities[heavy]), atol=1e-9)
    for node in range(counts.size):
        values, probabilities = made.marginal(node, x)
        want = law.marginal(node)
        for value, p in zip(values.tolist(), probabilities, strict=True):
            assert want.get(round(value / step), 0.0) == pytest.approx(p, abs=1e-10)
    draws = made.sample(x, 4000, cg.seeded(12)) / step
    nodes = [0, 3, 4]
    assert fit(np.rint(draws).astype(int), law, nodes) > FAILS


@pytest.mark.parametrize(
    ("which", "step"), [*((w, 1.0) for w in TABLE_SCALES), ("one scale", 0.25)]
)
@pytest.mark.parametrize("kind", sorted(LAWS))
def test_chains_have_their_law_and_fail_at_a_wrong_scale(kind, which, step):
    made, counts, law = table_case(kind, which, step, "gibbs")
    draw, info = made.run(step * counts, 3000, 4, cg.seeded(5))
    values = np.rint(draw.values / step).astype(int)
    assert info.worst[0] < 1.02
    apart = values[:, :: 4 * int(np.ceil(12_000 / info.worst[1]))].reshape(-1, 9)
    assert fit(apart, law, range(9)) > FAILS
    scales = WIDER[kind] * TABLE_SCALES[which]
    for off in (0.7, 1.3):
        wrong = enumerate_law(RINGS, kind, off * scales, counts, flat=40)
        assert fit(values.reshape(-1, 9), wrong, range(9)) < FAILS


@settings(max_examples=60, deadline=None, derandomize=True)
@given(crossed_trees())
def test_any_tree_with_further_sums_has_its_law(case):
    tree, kind, scales, rows, x, lo = case
    assume(rows.any())
    invariant = cg.consistent(tree) & cg.linear(rows, rows @ x) & cg.bounds(lo)
    made = cg.condition(cg.Additive(LAWS[kind](scales), tree), invariant)
    law = enumerate_law(np.vstack((rows_of(tree.parents), rows)), kind, scales, x, lo=lo)
    assert made.log_normalizer(x) == pytest.approx(law.log_total, abs=1e-10)
    for node in range(x.size):
        values, probabilities = made.marginal(node, x)
        want = law.marginal(node)
        for value, p in zip(values.tolist(), probabilities, strict=True):
            assert want.get(value, 0.0) == pytest.approx(p, abs=1e-10)
    draws = made.sample(x, 500, cg.seeded(1))
    assert (draws @ rows.T == rows @ x).all()
    assert fit(draws, law, range(x.size)) > FAILS


# moments that are known


@pytest.mark.parametrize("n", [2, 3, 7])
@pytest.mark.parametrize("scale", [0.5, 3.0])
def test_the_l2_image_of_laplace_noise_under_one_sum(n, scale):
    """The image is linear in the noise: variance 2 scale^2 (1 - 1 / n), exactly and drawn."""
    invariant = cg.linear(np.ones(n), 0.0)
    moved = np.array([cg.project(one, invariant) for one in np.eye(n)])
    covariance = 2 * scale**2 * moved.T @ moved
    want = 2 * scale**2 * (np.eye(n) - 1 / n)
    np.testing.assert_allclose(covariance, want, atol=1e-12)
    mechanism = cg.Additive(cg.Laplace(scale), n)
    draws = cg.image(mechanism, invariant).sample(np.zeros(n), 4000, cg.seeded(2022))
    square = draws**2
    error = square.std(axis=0) / np.sqrt(len(draws))
    for off in (1.0, 0.7, 1.3):
        far = np.abs(square.mean(axis=0) - off**2 * want.diagonal()) / error
        assert (far.max() < 5.5) == (off == 1.0)


@pytest.mark.parametrize("ratio", [0.5, 5 / 6, 4 / 3])
def test_conditioned_laplace_noise_varies_less_than_its_image(ratio):
    """Three cells, one sum: 5 / 6 of scale^2 against 4 / 3; a fine grid, exactly and drawn."""
    step, scale = 2.0**-4, 1.0
    made = cg.condition(cg.Additive(cg.DiscreteLaplace(scale, step), 3), cg.linear(np.ones(3), 0.0))
    values, p = made.marginal(0, np.zeros(3))
    exactly = (p * values**2).sum()
    assert (exactly == pytest.approx(ratio * scale**2, rel=2e-3)) == (ratio == 5 / 6)
    draws = made.sample(np.zeros(3), 40_000, cg.seeded(7))[:, 0]
    error = (draws**2).std() / np.sqrt(draws.size)
    assert (abs((draws**2).mean() - ratio * scale**2) < 5 * error) == (ratio == 5 / 6)


CROSSED = np.array([[1, 1, 0, 0, 1], [1, 0, 1, 0, 0], [0, 2, 0, 1, 0]])
LINEAR = {
    "a tree": (cg.Tree.from_parents(BINARY), None, ()),
    "a tree and a pin": (cg.Tree.from_parents(BINARY), None, (0,)),
    "sums without a cycle": (None, np.array([[1, 1, -1, 0, 0], [0, 0, 1, 1, 1]]), ()),
    "any equalities": (None, CROSSED, ()),
    "margins, solved sparsely": (None, margins(4, 5), ()),
}


@pytest.mark.parametrize("equal", [True, False])
@pytest.mark.parametrize("name", LINEAR)
def test_conditioned_gaussian_noise_and_its_l2_image_have_one_law(name, equal):
    """Both are normal with the data as mean; here their covariances agree, entry by entry."""
    tree, rows, pinned = LINEAR[name]
    n = len(BINARY) if rows is None else rows.shape[1]
    sigma = np.full(n, 1.5) if equal else np.linspace(0.5, 2.0, n)
    invariant = cg.linear(rows, np.zeros(len(rows))) if tree is None else cg.consistent(tree)
    if pinned:
        invariant = invariant & cg.exactly(list(pinned))
    mechanism = cg.Additive(cg.Gaussian(sigma), n if tree is None else tree)
    made = cg.condition(mechanism, invariant)
    assert isinstance(made, ConditionedGaussian)
    if "sparsely" in name:
        made = replace(made, space=Sparse(made.resolved))
    few = list(range(n))[:6]
    _, kept = made.joint(few, np.zeros(n))
    # the image takes noise y to the closest point, each entry weighing one over its variance
    moved = cg.image(mechanism, invariant).projector
    free = np.where(np.isin(np.arange(n), pinned), 0.0, sigma)
    rows_moved = np.array([moved.apply(one, None)[few] for one in np.diag(free)])
    imaged = rows_moved.T @ rows_moved
    np.testing.assert_allclose(imaged, kept, atol=1e-9)
    assert np.abs(imaged - np.diag(free[few] ** 2)).max() > 1e-3  # they do move
    if not equal:
        plain = np.array([cg.project(one, invariant)[few] for one in np.diag(free)])
        assert np.abs(plain.T @ plain - kept).max() > 1e-3
