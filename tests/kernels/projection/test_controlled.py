"""Controlled rounding: against every rounding of small families, and its ties."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.stats import chisquare

from support.families import example

pytestmark = pytest.mark.kernels

GRID = 2.0**-20


def least_change(ex, x):
    """Least summed change of all rows over all roundings down and up; None if there are many."""
    base = np.floor(x + GRID / 2)
    near = base + np.rint((x - base) / GRID) * GRID
    rest = np.rint(ex.parent - base.sum(axis=0)).astype(int)
    choices = [
        list(itertools.combinations(np.flatnonzero(near[:, k] > base[:, k]), rest[k]))
        for k in range(x.shape[1])
    ]
    if np.prod([float(len(one)) for one in choices]) > 2000:
        return None
    best = np.inf
    for chosen in itertools.product(*choices):
        z = base.copy()
        for k, up in enumerate(chosen):
            z[list(up), k] += 1.0
        across = z @ ex.sums.T
        if (across >= ex.areas.low[1:]).all() and (across <= ex.areas.high[1:]).all():
            best = min(best, np.abs(across - near @ ex.sums.T).sum())
    return best


def test_roundings_keep_everything_and_nearly_always_change_least():
    rng = np.random.default_rng(5)
    tried, best, above = 0, 0, []
    for seed in range(400):
        ex = example(rng, children=(2, 5), first=(1, 4), second=(1, 4))
        x, _ = ex.solved()
        z, missed = ex.solved(seed)
        assert missed <= 1e-9
        np.testing.assert_array_equal(z, np.rint(z))
        np.testing.assert_array_equal(z.sum(axis=0), ex.parent)
        assert (np.abs(z - x) < 1.0 + GRID).all()
        across = z @ ex.sums.T
        assert (across >= ex.areas.low[1:]).all()
        assert (across <= ex.areas.high[1:]).all()
        least = least_change(ex, x)
        if least is not None and least > 0.01:
            found = np.abs((z - x) @ ex.sums.T).sum()
            assert found >= least - 1e-3
            tried += 1
            best += found <= least + 1e-3
            above.append(found / least)
    assert tried >= 100
    assert best >= 0.95 * tried
    assert np.mean(above) <= 1.02


def test_nested_margins_change_least_always():
    rng = np.random.default_rng(6)
    tried = 0
    for seed in range(200):
        ex = example(rng, children=(2, 6), first=(1, 5), second=(1, 2), bounded=False)
        x, _ = ex.solved()
        z, _ = ex.solved(seed)
        least = least_change(ex, x)
        if least is not None and least > 0.01:
            tried += 1
            assert np.abs((z - x) @ ex.sums.T).sum() <= least + 1e-3
    assert tried >= 50


def test_ties_go_to_each_child_equally_often():
    ex = example(np.random.default_rng(7), children=(5, 6), first=(2, 3), second=(2, 3))
    ex.areas.target[1:] = 0.0
    ex.areas.low[1:] = -np.inf
    ex.areas.high[1:] = np.inf
    ex.areas.low[1:, :4] = 0.0
    ex.parent[:] = (2.0, 1.0, 1.0, 0.0)
    counts = np.zeros((5, 4))
    for seed in range(600):
        counts += ex.solved(seed)[0]
    for k in range(3):
        assert chisquare(counts[:, k]).pvalue > 1e-6
    counts[0] += 0.3 * counts.sum(axis=0)
    assert chisquare(counts[:, 0]).pvalue < 1e-6
