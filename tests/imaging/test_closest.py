"""Projections against independent references, on random trees."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog, nnls

from congenial.domain.tree import Tree
from congenial.errors import (
    ArgumentError,
    InfeasibleError,
    InvariantError,
    UnsupportedError,
)
from congenial.imaging.closest import project
from congenial.imaging.top_down import topdown
from congenial.invariants.written import (
    at_least,
    bounds,
    consistent,
    exactly,
    linear,
    nonnegative,
    resolve_invariant,
)
from congenial.randomness import seeded
from support.projection_cases import problems

pytestmark = pytest.mark.kernels


def incidence(tree):
    """Matrix A with ``A @ leaves = all nodes``."""
    return np.array([tree.roll_up(row) for row in np.eye(tree.leaves.size)]).T


def feasible(z, tree, y, invariant, tolerance):
    resolved = resolve_invariant(invariant, len(tree))
    assert np.abs(tree.roll_up(z[tree.leaves]) - z).max() <= tolerance
    assert (z >= resolved.lo - tolerance)[~resolved.pinned].all()
    assert (z <= resolved.hi + tolerance)[~resolved.pinned].all()
    assert np.abs(z - y)[resolved.pinned].max(initial=0.0) <= tolerance


def stationarity(z, tree, y, invariant, weight):
    """Distance of the gradient from the cone of the conditions that hold with equality."""
    resolved, a = resolve_invariant(invariant, len(tree)), incidence(tree)
    gradient = a.T @ (weight * (z - y))
    low = a[(z <= resolved.lo + 1e-9) | resolved.pinned]
    high = a[(z >= resolved.hi - 1e-9) | resolved.pinned]
    normals = np.vstack((low, -high)).T
    if normals.shape[1] == 0:
        return float(np.linalg.norm(gradient))
    return float(nnls(normals, gradient)[1])


@given(problems())
@settings(max_examples=150, deadline=None)
def test_l2_is_the_minimum(problem):
    tree, y, invariant, weight, _ = problem
    noisy = np.where((weight > 0) | resolve_invariant(invariant, len(tree)).pinned, y, np.nan)
    z = project(noisy, invariant, weight)
    assert z.shape == y.shape and z.dtype == np.float64
    feasible(z, tree, y, invariant, 1e-9)
    relative = weight / max(weight.max(), 1e-300)
    assert stationarity(z, tree, y, invariant, relative) <= 1e-9 * np.abs(y - z).max(initial=1.0)


def test_the_stationarity_check_sees_a_point_that_is_not_the_minimum():
    tree = Tree.from_parents([-1, 0, 0, 0])
    invariant = consistent(tree) & exactly("root") & nonnegative()
    y = np.array([10.0, 3.0, -4.0, 5.0])
    z = project(y, invariant)
    assert z == pytest.approx([10.0, 4.0, 0.0, 6.0])
    assert stationarity(z, tree, y, invariant, np.ones(4)) < 1e-9
    off = z + np.array([0.0, 0.01, 0.0, -0.01])
    assert stationarity(off, tree, y, invariant, np.ones(4)) > 1e-3


@given(problems(), st.integers(0, 2))
@settings(max_examples=60, deadline=None)
def test_l2_without_bounds_is_least_squares(problem, pins):
    tree, y, _, weight, x = problem
    weight = np.maximum(weight, 1e-3)
    invariant = consistent(tree)
    a = incidence(tree)
    root = np.sqrt(weight)
    if pins == 0:
        leaves = np.linalg.lstsq(root[:, None] * a, root * y, rcond=None)[0]
        assert project(y, invariant, weight) == pytest.approx(a @ leaves, abs=1e-8)
    else:  # the dense path, reached through a redundant linear condition
        y = np.where(tree.parents < 0, x, y)
        invariant = invariant & exactly("root")
        matrix = np.eye(len(tree))[tree.roots]
        dense = project(y, invariant & linear(matrix, x[tree.roots]), weight)
        assert project(y, invariant, weight) == pytest.approx(dense, abs=1e-7)


def l1_minimum(tree, y, invariant, weight):
    """Least weighted L1 distance by linear programming: z = p - q + y with p, q >= 0."""
    resolved, a = resolve_invariant(invariant, len(tree)), incidence(tree)
    n, k = a.shape
    lo, hi = np.where(resolved.pinned, y, resolved.lo), np.where(resolved.pinned, y, resolved.hi)
    rows = np.hstack((a, -np.eye(n), np.eye(n)))
    box = np.vstack((a[np.isfinite(hi)], -a[np.isfinite(lo)]))
    limits = np.concatenate((hi[np.isfinite(hi)], -lo[np.isfinite(lo)]))
    upper = np.hstack((box, np.zeros((box.shape[0], 2 * n))))
    found = linprog(
        np.concatenate((np.zeros(k), weight, weight)),
        A_ub=upper if box.size else None,
        b_ub=limits if box.size else None,
        A_eq=rows,
        b_eq=y,
        bounds=[(None, None)] * k + [(0, None)] * (2 * n),
    )
    assert found.status == 0
    return found.fun


@given(problems())
@settings(max_examples=80, deadline=None)
def test_l1_is_the_minimum(problem):
    tree, y, invariant, weight, _ = problem
    z = project(y, invariant, weight, norm="l1")
    feasible(z, tree, y, invariant, 1e-9)
    least = l1_minimum(tree, y, invariant, weight)
    assert np.sum(weight * np.abs(z - y)) == pytest.approx(least, abs=1e-6 * weight.sum())


def integer_points(tree, y, invariant, radius, around):
    """Every integer point of the invariant whose leaves lie within `radius` of `around`."""
    resolved = resolve_invariant(invariant, len(tree))
    lo, hi = np.where(resolved.pinned, y, resolved.lo), np.where(resolved.pinned, y, resolved.hi)
    steps = range(-radius, radius + 1)
    grid = np.array(list(itertools.product(steps, repeat=tree.leaves.size)))
    z = tree.roll_up(grid + np.rint(around[tree.leaves]).astype(np.int64))
    return z[((z >= lo) & (z <= hi)).all(axis=1)]


@given(problems(most=6, reach=3, whole=False, weights=(0.0, 0.25, 1.0, 1.0, 3.0)))
@settings(max_examples=60, deadline=None)
def test_l1_integers_are_the_minimum(problem):
    tree, y, invariant, weight, x = problem
    z = project(y, invariant, weight, norm="l1", integer=True, rng=seeded(1))
    assert z.dtype == np.int64 and tree.is_consistent(z)
    feasible(z, tree, y, invariant, 0.0)
    points = integer_points(tree, y, invariant, 7 if tree.leaves.size < 5 else 4, x)
    least = np.abs(points - y) @ weight
    assert np.abs(z - y) @ weight <= least.min() + 1e-6


@given(problems(most=6, reach=3))
@settings(max_examples=60, deadline=None)
def test_l2_integers_are_the_least_change_from_the_real_solution(problem):
    tree, y, invariant, weight, _ = problem
    resolved = resolve_invariant(invariant, len(tree))
    inside = invariant & bounds(np.ceil(resolved.lo), np.floor(resolved.hi))
    real = project(y, inside, weight)
    z = project(y, invariant, weight, integer=True, rng=seeded(2))
    assert z.dtype == np.int64 and tree.is_consistent(z)
    feasible(z, tree, y, invariant, 0.0)
    points = integer_points(tree, y, invariant, 3, real)
    assert np.abs(z - real).sum() <= np.abs(points - real).sum(axis=1).min() + 1e-4


@given(problems(whole=True, reach=50), st.integers(0, 2**32))
@settings(max_examples=80, deadline=None)
def test_topdown_is_feasible_and_integer(problem, seed):
    tree, y, invariant, _, _ = problem
    z = topdown(y, tree, invariant, rng=seeded(seed))
    assert z.dtype == np.int64 and tree.is_consistent(z)
    feasible(z, tree, y, invariant, 0.0)


def test_topdown_of_one_level_is_the_simplex_projection_rounded():
    tree = Tree.from_parents([-1, 0, 0, 0, 0])
    invariant = exactly("root") & nonnegative()
    y = np.array([10.0, 6.0, 5.0, -3.0, 0.5])
    # on the simplex: 5.5, 4.5, 0, 0; the half unit goes to either of the first two
    seen = {tuple(topdown(y, tree, invariant, rng=seeded(s)).tolist()) for s in range(40)}
    assert seen == {(10, 6, 4, 0, 0), (10, 5, 5, 0, 0)}


def test_topdown_keeps_what_pins_below_need():
    # the first child must hold at least the 7 pinned under it, whatever its own noise
    tree = Tree.from_parents([-1, 0, 0, 1, 1])
    z = topdown([8, -20, 30, 7, 0], tree, exactly([0, 3]) & nonnegative(), rng=seeded(3))
    assert z.tolist() == [8, 7, 1, 7, 0]


def test_weights_are_respected():
    tree = Tree.from_parents([-1, 0, 0])
    invariant = consistent(tree) & exactly("root")
    y = np.array([10.0, 4.0, 4.0])
    assert project(y, invariant, [1, 3, 1]) == pytest.approx([10, 4.5, 5.5])
    assert project(y, invariant, [1, 0, 1]) == pytest.approx([10, 6, 4])
    assert project(y, invariant, [1, 3, 1], norm="l1") == pytest.approx([10, 4, 6])
    assert project(y, invariant, norm="l1") == pytest.approx([10, 5, 5])


def test_entries_without_any_measurement_share_alike():
    tree = Tree.from_parents([-1, 0, 0, 0])
    z = project([9.0, np.nan, np.nan, 3.0], consistent(tree), [1, 0, 0, 1])
    assert z == pytest.approx([9, 3, 3, 3])
    empty = project([np.nan] * 4, consistent(tree) & bounds(2, 20), [0, 0, 0, 0])
    feasible(empty, tree, empty, consistent(tree) & bounds(2, 20), 1e-12)


@pytest.mark.parametrize("norm", ["l2", "l1"])
@pytest.mark.parametrize("integer", [False, True])
def test_counts_of_a_trillion_keep_their_last_digit(norm, integer):
    big = 2**40
    tree = Tree.from_parents([-1, 0, 0, 0, 1, 1, 2, 2, 2])
    x = tree.roll_up(np.array([0, big, big + 1, 1, 0, big]))
    y = x + np.array([0, 3, -2, 5, -1, 4, -7, 2, -1])
    invariant = consistent(tree) & exactly("root") & nonnegative()
    z = project(y, invariant, norm=norm, integer=integer, rng=seeded(1))
    small = project(
        y - x, consistent(tree) & exactly("root") & bounds(-x.astype(float), np.inf), norm=norm
    )
    assert np.abs(z - x - small).max() <= (1.0 if integer else 2.0**-11)
    assert not integer or tree.is_consistent(z)


def test_a_plain_vector_with_disjoint_sums():
    total = linear([[1, 1, 1, 0], [0, 0, 0, 2]], [6, 10])
    assert project([1.0, 2.0, 0.0, 9.0], total) == pytest.approx([2, 3, 1, 5])
    z = project([1.0, 2.0, -9.0, 9.0], total & nonnegative(), integer=True, rng=seeded(1))
    assert sorted(z[:2].tolist()) in ([2, 4], [3, 3]) and z[2:].tolist() == [0, 5]
    assert project([1.5, -2.0], nonnegative()) == pytest.approx([1.5, 0])


def test_a_plain_vector_with_crossing_sums_is_least_squares():
    matrix = np.array([[1, 1, 0, 0, 1.0], [0, 1, 1, 0, -1]])
    value, y = np.array([4.0, 1.0]), np.array([1.0, 2.0, 3.0, 4.0, 0.5])
    weight = np.array([1.0, 2.0, 0.5, 1.0, 4.0])
    z = project(y, linear(matrix, value), weight)
    assert matrix @ z == pytest.approx(value)
    nu = np.linalg.solve(matrix / weight @ matrix.T, value - matrix @ y)
    assert z == pytest.approx(y + (matrix.T @ nu) / weight)
    pinned = project(y, linear(matrix, value) & exactly([0]), weight)
    assert pinned[0] == 1.0 and matrix @ pinned == pytest.approx(value)


TREE = Tree.from_parents([-1, 0, 0], names=["city", "east", "west"])


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: project([1.0, 2.0], consistent(TREE)), InvariantError, "3"),
        (lambda: project([1, np.nan, 2], consistent(TREE)), ArgumentError, "city/east"),
        (lambda: project([1, 2.0**60, 2], consistent(TREE)), ArgumentError, "2\\^53"),
        (lambda: project([1, 2, 3], consistent(TREE), [1, -1, 1]), ArgumentError, "weights"),
        (lambda: project([1, 2, 3], consistent(TREE), [1, 1]), ArgumentError, "weights"),
        (lambda: project([1, 2, 3], consistent(TREE), norm="l3"), ArgumentError, "'l3'"),
        (lambda: project([1, 2, 3], consistent(TREE), rng=7), ArgumentError, "rng"),
        (lambda: project([[1, 2, 3]], consistent(TREE)), ArgumentError, "shape"),
        (
            lambda: project([771, 2, 3], consistent(TREE) & exactly([0, 1, 2])),
            InfeasibleError,
            "'city'",
        ),
        (
            lambda: project([771, -5, 3], consistent(TREE) & exactly("east") & nonnegative()),
            InfeasibleError,
            "'city/east'",
        ),
        (
            lambda: project([771.5, 0, 3], consistent(TREE) & exactly("root"), integer=True),
            InfeasibleError,
            "integer",
        ),
        (
            lambda: project([1, 2, 3], linear(np.ones((2, 3)), [1, 2])),
            InfeasibleError,
            "rows 0 and 1 of linear",
        ),
        (
            lambda: project([1, 2, 3], at_least([1, 1, 0], 2), norm="l1"),
            UnsupportedError,
            "at_least",
        ),
        (
            lambda: project([1, 2, 3], linear([1, 2, 3], 4), norm="l1"),
            UnsupportedError,
            "l2",
        ),
        (
            lambda: topdown([1, 2, 3], TREE, linear([1, 1, 0], 4)),
            UnsupportedError,
            "project",
        ),
        (lambda: topdown([1, np.inf, 3], TREE, nonnegative()), ArgumentError, "city/east"),
    ],
)
def test_what_cannot_be_done_is_said_without_a_count(call, error, words):
    with pytest.raises(error, match=words) as caught:
        call()
    text = str(caught.value)
    assert "771" not in text
    assert text.count(". ") == 0 and text.endswith(".")
