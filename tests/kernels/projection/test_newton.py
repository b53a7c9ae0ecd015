"""The closest point in L2 by prices, against least squares with bounds."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import lsq_linear

from congenial.kernels.projection.newton import solve
from support.projection_arrays import laid, leaf_sums, random_parents
from support.seeds import for_each_seed

pytestmark = pytest.mark.kernels


@for_each_seed(200)
def test_weighted_squares_are_least_within_the_bounds_of_leaves(seed):
    rng = np.random.default_rng(seed)
    parents = random_parents(rng, int(rng.integers(1, 14)))
    rows, order = laid(parents)
    sums, n = leaf_sums(parents), parents.size
    leaf_of = np.flatnonzero(~np.isin(np.arange(n), parents))
    y, weight = rng.normal(0, 6, n), rng.choice([0.3, 1.0, 9.0], n)
    lo = np.where(rng.random(n) < 0.7, 0.0, -np.inf)
    root = np.sqrt(weight)
    ends = lo[leaf_of], np.full(leaf_of.size, np.inf)
    found = lsq_linear(root[:, None] * sums, root * y, ends, method="bvls", tol=1e-13)
    wanted = sums @ found.x
    leaf = np.array([1.0 / weight, lo, np.full(n, np.inf)])[:, order]
    inner = np.zeros((4, rows.shape[1] - 1))
    inner[0], inner[1], inner[2] = weight[order[rows[3, :-1]]], -np.inf, np.inf
    out = np.empty((1, n))
    assert solve(rows, order, leaf, inner, y, 1e12, 60, out) <= 1e-9
    np.testing.assert_allclose(out[0], wanted, atol=1e-7)
    # as whole numbers and what they leave, by place
    apart = np.empty((2, n))
    assert solve(rows, order, leaf, inner, y, 1e12, 60, apart) <= 1e-9
    np.testing.assert_allclose(apart.sum(axis=0), out[0][order], atol=1e-9)
    assert np.isinf(solve(rows, order, leaf, inner, np.full(n, np.nan), 1e12, 60, out))
