"""Families moved onto what their parents got, against bisection."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import brentq

from congenial.kernels.numerics.trees import read_only
from congenial.kernels.projection.check import reach
from congenial.kernels.projection.top_down import DONE, INFEASIBLE, TOO_LARGE, descend
from support.projection_arrays import laid, leaf_sums, linked, random_parents, words_of
from support.seeds import for_each_seed

pytestmark = pytest.mark.kernels

NONE = words_of([])


def moved(y, lo, hi, whole):
    """The closest values of sum `whole` within their ranges."""
    if hi.sum() - lo.sum() < 1e-12:
        return lo

    def short(by):
        return np.clip(y + by, lo, hi).sum() - whole

    return np.clip(y + brentq(short, -500.0, 500.0, xtol=1e-13), lo, hi)


@for_each_seed(200)
@pytest.mark.parametrize("whole", [False, True])
def test_each_family_is_the_closest_to_its_measurements(seed, whole):
    rng = np.random.default_rng(seed)
    parents = random_parents(rng, int(rng.integers(1, 14)))
    rows, order = laid(parents)
    sums, n = leaf_sums(parents), parents.size
    x = sums @ rng.integers(0, 9, sums.shape[1])
    y = x + rng.normal(0, 4, n)
    lo, hi = x - rng.integers(0, 5, n).astype(float), x + rng.integers(0, 5, n).astype(float)
    low, high = lo.copy(), hi.copy()
    assert reach(linked(parents), 1e-9, low, high) < 0
    by_place = low[order], high[order]
    words = words_of(rng.integers(0, 2**63, n)) if whole else NONE
    z, fixed = np.empty(n), np.zeros(n, dtype=bool)
    assert descend(rows, order, fixed, *by_place, True, read_only(y), 1e12, words, z) == DONE
    assert ((z >= low - 1e-9) & (z <= high + 1e-9)).all()
    assert not whole or (z == np.rint(z)).all()
    root = parents < 0
    assert abs(z[root] - np.clip(y[root], low[root], high[root])) <= (0.5 if whole else 1e-12)
    for v in range(n):
        family = np.flatnonzero(parents == v)
        if family.size:
            assert z[family].sum() == pytest.approx(z[v], abs=1e-9)
            wanted = moved(y[family], low[family], high[family], z[v])
            # remainders are read on a grid of 2^-20
            np.testing.assert_allclose(z[family], wanted, atol=1.0 + 2e-6 if whole else 1e-8)


def test_infeasible_problems_are_refused():
    rows, order = laid(np.array([-1, 0, 0]))
    lo, hi = np.array([5.0, 0.0, 0.0]), np.array([9.0, 4.0, 4.0])
    fixed, z = np.array([True, False, False]), np.empty(3)
    for values, state in (([4.0, 1.0, 1.0], INFEASIBLE), ([6.0, 1e13, 1.0], TOO_LARGE)):
        given = read_only(np.array(values))
        assert descend(rows, order, fixed, lo, hi, True, given, 1e12, NONE, z) == state
