"""The closest points of a forest in weighted L1."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from scipy.optimize import linprog

from congenial.imaging.closest import project
from congenial.invariants.written import (
    resolve_invariant,
)
from congenial.randomness import seeded
from support.projection_cases import feasible, incidence, integer_points, problems

pytestmark = pytest.mark.kernels


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
