"""The nearest integers that still add up."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from congenial.imaging.closest import project
from congenial.invariants.written import (
    bounds,
    resolve_invariant,
)
from congenial.randomness import seeded
from support.projection_cases import feasible, integer_points, problems

pytestmark = pytest.mark.kernels


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
