"""Unbiased rounding: every sum, either neighbour, the mean, and that order does not matter."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

import congenial as cg
from congenial.domain.tree import Tree
from congenial.errors import ArgumentError
from congenial.imaging.solvers.active_set import levels
from congenial.imaging.solvers.problem import link
from congenial.imaging.unbiased import _SNAP
from congenial.kernels.projection.dependent import STEPS, to_grid
from congenial.randomness import seeded
from support.projection_cases import problems
from support.wide_trees import city

pytestmark = pytest.mark.kernels

DRAWS = 4000


def worst_p(draws, z):
    """P-value of the worst mean, by Bonferroni, for values rounded to either neighbour."""
    part = z - np.floor(z)
    spread = np.sqrt(np.maximum(part * (1.0 - part), 1e-12) / len(draws))
    score = np.abs(draws.mean(axis=0) - z) / spread
    return min(1.0, 2.0 * norm.sf(score.max()) * z.size)


@given(problems(most=14), st.integers(0, 2**32))
@settings(max_examples=150, deadline=None)
def test_sums_and_neighbours(problem, seed):
    tree, y, invariant, weight, _ = problem
    z = cg.project(y, invariant, np.maximum(weight, 1e-3))
    r = cg.imaging.round_unbiased(z, tree, seeded(seed))
    assert r.dtype == np.int64 and tree.is_consistent(r)
    assert np.abs(r - z).max() < 1.0 + 1e-6
    near = np.abs(z - np.rint(z)) < 1e-9
    assert (r == np.rint(z))[near].all()


@pytest.mark.parametrize("seed", range(3))
def test_large_trees_keep_sums_pins_and_bounds(seed):
    tree, x, rng = city(20_000, 2 + seed, seed)
    y = x + rng.normal(0.0, 3.0, len(tree))
    pins = np.unique(np.concatenate((tree.roots, rng.integers(0, len(tree), 30))))
    y[pins] = x[pins]
    z = cg.project(y, cg.consistent(tree) & cg.exactly(pins) & cg.nonnegative())
    r = cg.imaging.round_unbiased(z, tree, seeded(seed))
    assert tree.is_consistent(r) and (r >= 0).all()
    assert (r[pins] == x[pins]).all()
    assert np.abs(r - z).max() < 1.0 + 1e-6
    near = np.abs(z - np.rint(z)) < 1e-9
    assert near.sum() > 100 and (r == np.rint(z))[near].all()


def made(seed):
    """A tree of three levels with values of all fractions."""
    rng = np.random.default_rng(seed)
    tree = Tree.from_parents([-1, -1, 0, 0, 0, 1, 2, 2, 2, 3, 3, 4, 5, 5, 5, 5])
    return tree, tree.roll_up(np.round(rng.uniform(0.0, 3.0, tree.leaves.size), 3))


@pytest.mark.parametrize("seed", range(3))
def test_the_mean_is_kept_at_every_node(seed):
    tree, z = made(seed)
    source = seeded(seed)
    draws = np.array([cg.imaging.round_unbiased(z, tree, source) for _ in range(DRAWS)])
    assert worst_p(draws, z) > 1e-6
    # the same test sees what largest remainders do, and a slight preference for the first child
    nearest = np.array(
        [cg.project(z, cg.consistent(tree), integer=True, rng=source) for _ in range(50)]
    )
    assert worst_p(np.repeat(nearest, DRAWS // 50, axis=0), z) < 1e-6
    leaf = tree.leaves[0]
    tilted = draws.copy()
    swap = np.random.default_rng(seed).random(DRAWS) < 0.3
    tilted[swap, leaf] = np.ceil(z[leaf])
    assert worst_p(tilted, z) < 1e-6


def test_each_sum_of_two_units_falls_on_any_pair():
    # four halves: without a random order only opposite pairs would come
    tree = Tree.from_parents([-1, 0, 0, 0, 0])
    source = seeded(4)
    draws = [
        cg.imaging.round_unbiased([2, 0.5, 0.5, 0.5, 0.5], tree, source)[1:] for _ in range(600)
    ]
    pairs = {tuple(draw.tolist()) for draw in draws}
    assert len(pairs) == 6


def test_families_are_rounded_apart_given_their_parents():
    tree = Tree.from_parents([-1, 0, 0, 1, 1, 2, 2])
    z = np.array([2.0, 1.0, 1.0, 0.5, 0.5, 0.5, 0.5])
    source = seeded(5)
    draws = np.array([cg.imaging.round_unbiased(z, tree, source) for _ in range(DRAWS)])
    assert (draws[:, :3] == [2, 1, 1]).all()
    agree = (draws[:, 3] == draws[:, 5]).mean()
    assert abs(agree - 0.5) < 5.0 * np.sqrt(0.25 / DRAWS)


def test_rounding_errors_do_not_change_integers():
    tree = Tree.from_parents([-1, *[0] * 10])
    z = np.array([1.0, *[0.1] * 10])
    assert sum([0.1] * 10) != 1.0
    source = seeded(6)
    draws = np.array([cg.imaging.round_unbiased(z, tree, source) for _ in range(2000)])
    assert (draws[:, 0] == 1).all()
    assert worst_p(draws[:, 1:], z[1:]) > 1e-6
    assert cg.imaging.round_unbiased(
        [1e-12, 1e-12], Tree.from_parents([-1, 0]), source
    ).tolist() == [0, 0]


def grid_parts(z, tree):
    """The exact values that are rounded, as integers in steps of 2^-32."""
    laid = levels(link(tree, len(tree)))
    whole, part = np.empty(len(tree)), np.empty(len(tree), dtype=np.int64)
    slack = 1e-9 * max(1.0, np.abs(z).max())
    assert to_grid(laid.rows, laid.placed(z), _SNAP, slack, whole, part) == -1
    assert ((part >= 0) & (part < STEPS)).all()
    steps = np.empty(len(tree), dtype=np.int64)
    steps[laid.order if laid.order.size else slice(None)] = whole.astype(np.int64) * STEPS + part
    return steps


@pytest.mark.parametrize(
    ("leaves", "root"),
    [(1000, 1.0), (3000, 100.0), (100_000, 100.0), (10, 1e-6), (100_000, 0.01), (7, 1e-9)],
)
def test_families_of_any_size_add_up(leaves, root):
    tree = Tree.from_parents([-1, *[0] * leaves])
    z = np.full(leaves + 1, root / leaves)
    z[0] = root
    if root >= 1.0:
        z = cg.project(
            np.where(z == root, root, 0.0), cg.consistent(tree) & cg.exactly(0) & cg.nonnegative()
        )
    steps = grid_parts(z, tree)
    assert tree.is_consistent(steps)
    assert np.abs(steps - z * STEPS).max() <= max(2.0, (root * STEPS) * (root < 2.0**-28))
    out = cg.imaging.round_unbiased(z, tree, seeded(1))
    assert tree.is_consistent(out) and abs(out[0] - root) < 1.0


def test_a_free_root_over_many_thirds():
    tree = Tree.from_parents([-1, *[0] * 100_000])
    z = np.full(100_001, 1 / 3)
    z[0] = math.fsum(z[1:])
    steps = grid_parts(z, tree)
    assert tree.is_consistent(steps) and np.abs(steps - z * STEPS).max() <= 2.0
    assert tree.is_consistent(cg.imaging.round_unbiased(z, tree, seeded(2)))


@pytest.mark.parametrize("seed", range(60))
def test_the_grid_values_are_as_close_as_stated(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 200))
    tree = Tree.from_parents([-1] + [int(rng.integers(max(0, i - 9), i)) for i in range(1, n)])
    leaves = rng.choice([0.0, 1e-12, 1e-9, 1.0 - 1e-10, 1 / 3, 2.0], tree.leaves.size)
    leaves += rng.choice([0.0, 1.0, 1e-7], tree.leaves.size) * rng.normal(size=tree.leaves.size)
    z = tree.roll_up(leaves)
    steps = grid_parts(z, tree)
    assert tree.is_consistent(steps)
    whole = z == np.rint(z)
    assert (steps[whole] == z[whole] * STEPS).all()
    assert (steps >= np.floor(z) * STEPS).all() and (steps <= np.ceil(z) * STEPS).all()
    off = np.abs(steps - z * STEPS)
    assert (off <= 32.0 * (1 + tree.level)).all()


def test_a_family_compensates_the_rounding_of_its_parent():
    tree = Tree.from_parents([-1, 0, 0, 0])
    z = np.array([1000.0, 999.0, 0.5, 0.5 - 4e-7])
    steps = grid_parts(z, tree)
    assert tree.is_consistent(steps) and steps[0] == 1000 * STEPS and steps[1] == 999 * STEPS
    np.testing.assert_allclose(steps[2:] / STEPS, [0.5 + 2e-7, 0.5 - 2e-7], atol=1e-9)
    with pytest.raises(ArgumentError, match="does not add up"):
        cg.imaging.round_unbiased([1000.5, 1000.0, 0.5 + 2e-3, 0.0], tree)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda tree: cg.imaging.round_unbiased([3.0, 1.5, 1.4], tree),
            "'0' *; give|does not add up",
        ),
        (lambda tree: cg.imaging.round_unbiased([3.0, 1.5], tree), "^z has shape"),
        (
            lambda tree: cg.imaging.round_unbiased([np.nan, 1.5, 1.5], tree),
            "z is not finite .* at node '0'",
        ),
        (lambda tree: cg.imaging.round_unbiased([3.0, 1.5, 1.5], 3), "int"),
        (lambda tree: cg.imaging.round_unbiased([3.0, 1.5, 1.5], tree, 3), "rng"),
    ],
)
def test_invalid_arguments_are_refused(call, words):
    with pytest.raises(ArgumentError, match=words):
        call(Tree.from_parents([-1, 0, 0]))


def test_rows_of_different_lengths_are_refused():
    tree = cg.Tree.from_parents([-1, 0, 0])
    with pytest.raises(ArgumentError, match="rows of different lengths"):
        cg.imaging.round_unbiased([[1], [2, 3]], tree)
    with pytest.raises(ArgumentError, match="rows of different lengths"):
        cg.project([[1], [2, 3]], cg.nonnegative())
