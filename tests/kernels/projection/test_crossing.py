"""Families of several sizes: the root by itself, fixed cells, and cells that nobody has."""

from __future__ import annotations

import numpy as np
import pytest

from congenial.imaging.solvers.cell_descent import one_kind
from congenial.kernels.projection.crossing import descend_families
from congenial.randomness import seeded
from support.families import example

pytestmark = pytest.mark.kernels


def alone(ex):
    """The first child as a root by itself."""
    return ex.areas._replace(
        first=np.array([0, 1]), members=np.array([1]), above=np.array([0]), head=np.array([-1])
    )


def test_a_root_is_fitted_and_rounded_without_a_parent():
    rng = np.random.default_rng(8)
    for seed in range(100):
        ex = example(rng, bounded=False)
        areas, cells = alone(ex), len(ex.parent)
        x, missed = np.zeros((len(ex.areas.low), cells)), np.zeros(1)
        descend_families(areas, 0, 1, 1e-9, 100, one_kind(), x, missed)
        assert missed[0] <= 1e-9
        # the gradient of what is free is 0, and not negative where cells are empty
        pull = ex.sums.T @ (areas.weight[1] * (x[1] @ ex.sums.T - areas.target[1]))
        scale = areas.weight.max() * max(1.0, np.abs(areas.target).max())
        open_ = areas.high[1, :cells] > 0.0
        assert (np.abs(pull[(x[1] > 0) & open_]) <= 1e-7 * scale).all()
        assert (pull[open_] >= -1e-7 * scale).all()
        z = x.copy()
        words = seeded(seed).bits(x.size).reshape(x.shape)
        descend_families(areas, 0, 1, 1e-9, 100, words, z, missed)
        assert (np.abs(z - x) < 1.0 + 2.0**-20).all()
        np.testing.assert_array_equal(z[1], np.rint(z[1]))


def test_cells_with_one_value_keep_it():
    ex = example(np.random.default_rng(9), children=(4, 5), first=(3, 4), second=(2, 3))
    cells = len(ex.parent)
    ex.areas.low[1, :cells] = ex.areas.high[1, :cells] = ex.truth[0]
    ex.areas.low[1, cells:], ex.areas.high[1, cells:] = -np.inf, np.inf
    z, missed = ex.solved(1)
    assert missed <= 1e-9
    np.testing.assert_array_equal(z[0], ex.truth[0])
    np.testing.assert_array_equal(z.sum(axis=0), ex.parent)
