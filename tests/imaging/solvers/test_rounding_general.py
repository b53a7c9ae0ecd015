"""The nearest integers under any linear conditions."""

from __future__ import annotations

import numpy as np
import pytest

from congenial.imaging.closest import project
from congenial.invariants.written import (
    at_least,
    linear,
    nonnegative,
)
from congenial.randomness import seeded

pytestmark = pytest.mark.kernels


def test_ties_between_integers_do_not_go_by_position():
    a = np.array([[1, 1, 1, 0], [0, 1, 1, 1]])
    invariant = linear(a, [1, 1]) & nonnegative()
    draws = np.array(
        [project([0, 0.5, 0.5, 0], invariant, integer=True, rng=seeded(s)) for s in range(60)]
    )
    # one of the two middle entries; a fair coin misses both bounds with probability 1e-6
    assert 11 <= draws[:, 1].sum() <= 49
    assert (draws[:, 1] + draws[:, 2] == 1).all()


def test_integers_meet_conditions_whose_coefficients_are_none():
    rng = np.random.default_rng(9)
    for seed in range(60):
        x = rng.integers(0, 6, 4)
        rows = rng.integers(-2, 3, (3, 4)) * rng.choice([0.1, 1 / 3, 1.7])
        invariant = at_least(rows, rows @ x) & linear(0.1 * np.ones(4), 0.1 * x.sum())
        whole = project(x + rng.laplace(0.0, 3.0, 4), invariant, integer=True, rng=seeded(seed))
        assert whole.sum() == x.sum()
        assert (rows @ whole >= rows @ x - 1e-9).all()
