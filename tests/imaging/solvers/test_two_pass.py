"""The closest points of a forest in weighted L2 and L1, and the nearest integers that add up."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog, nnls

from congenial.domain.tree import Tree
from congenial.errors import UnsupportedError
from congenial.imaging.closest import project
from congenial.imaging.solvers import two_pass
from congenial.invariants.written import (
    bounds,
    consistent,
    exactly,
    linear,
    nonnegative,
    resolve_invariant,
)
from congenial.randomness import seeded
from support.projection_cases import feasible, incidence, integer_points, problems

pytestmark = pytest.mark.kernels


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


def test_curves_beyond_the_limit_are_refused_with_the_limit_and_no_size_of_an_inner_problem(
    monkeypatch,
):
    monkeypatch.setattr(two_pass, "MOST_POINTS", 1)
    tree = Tree.from_parents([-1, 0, 0, 1, 1])
    known = consistent(tree) & nonnegative()
    with pytest.raises(UnsupportedError, match=r"than the limit, 0\.0 GiB; use") as told:
        project([5.0, 2.0, 4.0, -1.0, 2.0], known, norm="l1")
    assert "nodes" not in str(told.value)
