"""Bounds from above on sums over all solutions, against the sums themselves."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.sparse import csr_array

from congenial.domain.tree import Tree
from congenial.kernels.numerics import laws
from congenial.sum_network.ceiling import (
    _log_narrow,
    forest_rows,
    interior_tilts,
    least_ceiling,
    log_ceiling,
    sum_rows,
)
from congenial.sum_network.forest import of_tree
from congenial.sum_network.weights import SharedUnary, Unary
from support.seeds import for_each_seed


def case(seed):
    """A tree with noise on each node within narrow bounds, and the log of the summed weights."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 6))
    tree = Tree.from_parents([-1, *(int(rng.integers(0, v)) for v in range(1, n))])
    forest = of_tree(tree)
    kind = rng.choice([laws.LAPLACE, laws.GAUSSIAN, laws.FLAT], n)
    scale, center = rng.choice([0.2, 1.0, 4.0], n), rng.integers(-2, 3, n).astype(float)
    lo = rng.integers(-3, 1, n).astype(float)
    each = Unary(kind, scale, center, lo, lo + rng.integers(1, 5, n))
    rows = forest_rows(forest)
    ranges = (np.arange(a, b + 1) for a, b in zip(each.lo, each.hi, strict=True))
    u = np.array(list(itertools.product(*ranges)))
    u = u[(u @ rows.T == 0).all(axis=1)]
    away = np.abs(u - center) / scale
    log = np.where(kind == laws.LAPLACE, -away, np.where(kind == laws.GAUSSIAN, -0.5 * away**2, 0))
    whole = np.logaddexp.reduce(log.sum(axis=1)) if u.size else -np.inf
    return rng, forest, rows, each, whole


@for_each_seed(150)
def test_every_multiplier_bounds_the_sum_from_above(seed):
    rng, forest, rows, each, whole = case(seed)
    shared = SharedUnary(each, np.arange(forest.n, dtype=np.int32))
    for theta in (np.zeros(forest.m), rng.normal(0, 1, forest.m), rng.normal(0, 9, forest.m)):
        assert log_ceiling(forest, shared, theta) >= whole - 1e-9
    least = least_ceiling(rows, each)
    assert least >= whole - 1e-9
    assert least <= log_ceiling(forest, shared, np.zeros(forest.m)) + 1e-9


def test_sums_that_need_much_noise_are_bounded_far_below_the_plain_product():
    # ten values, each at least 20 from its centre if they are to add up
    rows, n = np.ones((1, 10)), 10
    far = np.full(n, 20.0)
    each = Unary(np.full(n, laws.LAPLACE), np.ones(n), far, np.full(n, -np.inf), np.full(n, np.inf))
    plain = n * np.log((1 + np.exp(-1.0)) / (1 - np.exp(-1.0)))
    # the summed noise is -200, which has at least 199 nats less than 0
    assert least_ceiling(rows, each) <= plain - 150.0


def test_interior_tilts_end_where_likeliest_values_satisfy_the_sums():
    # two normal values add up to zero, their centres to 6: each moves by 3, at 3 / sigma^2
    rows = np.ones((1, 2))
    each = Unary(
        np.full(2, laws.GAUSSIAN),
        np.full(2, 2.0),
        np.full(2, 3.0),
        np.full(2, -np.inf),
        np.full(2, np.inf),
    )
    *_, last = interior_tilts(rows, each)
    assert last == pytest.approx([-0.75], rel=1e-6)


def test_rows_are_dense_sparse_or_too_many():
    assert sum_rows([{0: 1, 2: -1}], 3).tolist() == [[1.0, 0.0, -1.0]]
    assert sum_rows([{0: 1, 299: -1}], 300).todense().nonzero()[1].tolist() == [0, 299]
    assert sum_rows([{0: 1}], 100_000) is None
    assert least_ceiling(None, case(0)[3]) == np.inf


@for_each_seed(60)
def test_sparse_rows_have_the_tilts_of_dense_ones(seed):
    _, _, rows, each, whole = case(seed)
    if np.isneginf(whole):  # no values satisfy the sums, and the tilts grow without an end
        return
    dense, sparse = (list(interior_tilts(r, each)) for r in (rows, csr_array(rows)))
    assert len(dense) == len(sparse)
    for one, other in zip(dense, sparse, strict=True):
        assert other == pytest.approx(one, rel=1e-6, abs=1e-6)
    assert least_ceiling(csr_array(rows), each) == pytest.approx(least_ceiling(rows, each))


@for_each_seed(60)
def test_narrow_normal_weights_are_bounded_closely(seed):
    rng = np.random.default_rng(seed)
    n = 20
    sigma, tilt = 10.0 ** rng.uniform(-2, 1, n), rng.normal(0, 30, n)
    lo = np.where(rng.random(n) < 0.5, -np.inf, rng.integers(-5, 1, n))
    hi = np.where(rng.random(n) < 0.5, np.inf, rng.integers(0, 6, n))
    found = _log_narrow(tilt, sigma, lo, hi)
    for v in range(n):
        middle = np.rint(tilt[v] * sigma[v] ** 2)
        u = np.arange(middle - 200, middle + 201)
        u = np.unique(np.clip(u, lo[v], hi[v]))
        whole = np.logaddexp.reduce(tilt[v] * u - 0.5 * (u / sigma[v]) ** 2)
        # sums of hundreds of terms are rounded by some units of their size
        assert found[v] >= whole - 1e-12 * (1 + abs(whole))
        if sigma[v] < 0.3:  # two neighbours are alike at most
            assert found[v] <= whole + 1e-3
