"""Families by general solvers: the kernel's results, and the parent that changes least."""

from __future__ import annotations

import numpy as np
import pytest

from congenial.errors import InfeasibleError
from congenial.imaging.solvers.family import Family, settle
from support.families import example


def family(ex, parent=None):
    areas = ex.areas
    return Family(
        areas.of,
        ex.parent if parent is None else parent,
        *(one[1:] for one in (areas.weight, areas.target, areas.low, areas.high, areas.counted)),
    )


def test_it_finds_what_the_kernel_finds():
    rng = np.random.default_rng(0)
    for seed in range(25):
        ex = example(rng, children=(2, 5), first=(1, 4), second=(1, 3))
        x, _ = ex.solved()
        found = settle(family(ex), integer=False)
        assert ex.distance(found) == pytest.approx(ex.distance(x), rel=1e-5, abs=1e-5)
        whole = settle(family(ex), integer=True)
        np.testing.assert_array_equal(whole.sum(axis=0), ex.parent)
        across = whole @ ex.sums.T
        assert (across >= ex.areas.low[1:]).all()
        assert (across <= ex.areas.high[1:]).all()
        # of cells alone the exact optimum is not above what the local search changes
        z, _ = ex.solved(seed)
        cost = [np.abs(each - x).sum() for each in (whole, z)]
        assert cost[0] <= cost[1] + 0.01 * max(1.0, cost[1])


def test_the_parent_changes_by_as_little_as_bounds_allow():
    ex = example(np.random.default_rng(1), children=(3, 4), first=(2, 3), second=(2, 3))
    ex.areas.low[1:], ex.areas.high[1:] = -np.inf, np.inf
    ex.areas.low[1:, :4] = 0.0
    ex.areas.high[1:, 4] = 2.0  # at most two records an area
    found = settle(family(ex, np.array([4.0, 4.0, 0.0, 0.0])), integer=True)
    assert found.sum() == 6.0
    assert not found[:, 2:].any()
    assert (found.sum(axis=1) <= 2.0).all()
    ex.areas.low[1, 4] = 3.0
    with pytest.raises(InfeasibleError, match="no table"):
        settle(family(ex), integer=True)
