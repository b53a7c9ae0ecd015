"""Shares of one sum, against bisection; units that do not divide go by their words."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import brentq

from congenial.kernels.projection.fill import fill
from support.projection_arrays import words_of

NONE = words_of([])


@pytest.mark.parametrize("seed", range(40))
def test_members_move_alike_within_their_ranges(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 9))
    low = rng.integers(-5, 3, n).astype(float)
    high = low + rng.integers(0, 6, n)
    prefer = rng.normal(0, 4, n)
    total = float(rng.uniform(low.sum(), high.sum()))
    z = np.full(n, np.nan)
    fill(np.arange(n), total, low, high, prefer, NONE, z)
    assert z.sum() == pytest.approx(total, abs=1e-12)

    def short(t):
        return np.clip(prefer + t, low, high).sum() - total

    if high.sum() > low.sum():
        t = brentq(short, -60, 60, xtol=1e-13)
        np.testing.assert_allclose(z, np.clip(prefer + t, low, high), atol=1e-9)


@pytest.mark.parametrize("seed", range(40))
def test_whole_shares_are_closest_and_ties_go_by_words(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 6))
    low = rng.integers(-3, 1, n).astype(float)
    high = low + rng.integers(0, 5, n)
    prefer = rng.integers(-4, 5, n).astype(float)
    total = float(rng.integers(low.sum(), high.sum() + 1))
    words = words_of(rng.permutation(n))
    z = np.full(n, np.nan)
    fill(np.arange(n), total, low, high, prefer, words, z)
    assert z.sum() == total
    assert (z == np.rint(z)).all()
    assert ((low <= z) & (z <= high)).all()
    # all moved by t or t + 1 where their ranges let them, those with the smallest words by more
    free = (low < z) & (z < high)
    moves = z - prefer
    assert not free.any() or np.ptp(moves[free]) <= 1
    inner = np.flatnonzero(free)
    for i in inner:
        for j in inner:
            assert moves[i] <= moves[j] or words[i] < words[j]
