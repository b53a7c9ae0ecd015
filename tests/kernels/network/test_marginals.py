"""Summaries of one law, against every interval of it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import digamma as scipy_digamma

from congenial.kernels.network.marginals import (
    HIGH,
    LOW,
    MEAN,
    MEDIAN,
    REACH,
    SUMMARIES,
    VARIANCE,
    one_sided,
    rise,
    summarise,
)

pytestmark = pytest.mark.kernels


@pytest.mark.parametrize("seed", range(300))
def test_a_law_is_summarised(seed):
    rng = np.random.default_rng(seed)
    # whole numbers, so that equal shares are equal
    p = rng.integers(0, 20, rng.integers(1, 25)).astype(float)
    p[rng.integers(p.size)] += 1.0
    lo, alpha = int(rng.integers(-20, 10)), float(rng.choice([0.05, 0.1, 0.5]))
    values, share = lo + np.arange(p.size), p / p.sum()
    out = np.empty(SUMMARIES)
    assert summarise(p, float(lo), alpha, out) == p.sum()
    mean = values @ share
    assert out[MEAN] == pytest.approx(mean, abs=1e-12)
    assert out[VARIANCE] == pytest.approx(share @ (values - mean) ** 2, abs=1e-10)
    assert out[MEDIAN] == values[np.flatnonzero(np.cumsum(share) >= 0.5 - 1e-9)[0]]
    intervals = [
        (j - i, -round(p[i : j + 1].sum()), i)
        for i in range(p.size)
        for j in range(i, p.size)
        if share[i : j + 1].sum() >= 1.0 - alpha - 1e-9
    ]
    length, _, low = min(intervals)
    assert (out[LOW], out[HIGH]) == (lo + low, lo + low + length)
    reaches = [r for r in range(60) if share[np.abs(values) <= r].sum() >= 1.0 - alpha + 1e-9]
    assert out[REACH] == (reaches[0] if reaches else np.abs(values[[0, -1]]).max())


@pytest.mark.parametrize("seed", range(100))
def test_tails_hold_at_most_their_share(seed):
    rng = np.random.default_rng(seed)
    p = rng.integers(1, 9, rng.integers(1, 30)).astype(float)
    lo, tails = int(rng.integers(-9, 9)), np.array([0.01, 0.05, 0.25])
    below, above = np.empty(3, dtype=np.int64), np.empty(3, dtype=np.int64)
    one_sided(p, p.sum(), lo, tails, below, above)
    for t, low, high in zip(tails, below - lo, above - lo, strict=True):
        assert p[:low].sum() < t * p.sum()
        assert p[: low + 1].sum() >= t * p.sum() - 1e-6 or low == p.size - 1
        assert p[high + 1 :].sum() < t * p.sum()
        assert p[high:].sum() >= t * p.sum() - 1e-6 or high == 0


@pytest.mark.parametrize("seed", range(100))
def test_a_rise_is_a_mean_of_digamma(seed):
    rng = np.random.default_rng(seed)
    p, lo = rng.exponential(size=rng.integers(1, 30)), int(rng.integers(-5, 40))
    p[: max(-lo, 0)] = 0.0
    if p.sum() == 0.0:
        return
    r = float(rng.choice([0.05, 1.0, 60.0]))
    k = np.maximum(lo + np.arange(p.size), 0)
    wanted = p @ (scipy_digamma(k + r) - scipy_digamma(r)) / p.sum()
    assert rise(p, float(lo), r) == pytest.approx(wanted, rel=1e-10, abs=1e-11)
