"""Ranges, determined sums and the certificate of optimality, against enumeration."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from congenial.kernels.projection.check import add_determined, certify, reach, refine, settle
from congenial.kernels.projection.forest import Costs
from support.projection_arrays import leaf_sums, linked, random_parents
from support.seeds import for_each_seed

pytestmark = pytest.mark.kernels


def points_within(parents, lo, hi):
    """Return all integer points of a tree within bounds, shape (k, n)."""
    sums = leaf_sums(parents)
    leaf = np.flatnonzero(~np.isin(np.arange(parents.size), parents))
    each = itertools.product(*(np.arange(lo[v], hi[v] + 1) for v in leaf))
    z = np.array(list(each)).reshape(-1, leaf.size) @ sums.T
    return z[((z >= lo) & (z <= hi)).all(axis=1)]


def case(seed):
    rng = np.random.default_rng(seed)
    parents = random_parents(rng, int(rng.integers(1, 7)))
    sums = leaf_sums(parents)
    x = sums @ rng.integers(0, 4, sums.shape[1])
    n = x.size
    lo, hi = x - rng.integers(0, 4, n).astype(float), x + rng.integers(0, 4, n).astype(float)
    return rng, parents, linked(parents), lo, hi, x


@for_each_seed(200)
def test_ranges_of_inner_nodes_are_what_the_subtrees_allow(seed):
    rng, parents, forest, lo, hi, _ = case(seed)
    if seed % 3 == 0:
        hi[parents < 0] = lo[parents < 0] = lo[parents < 0] - rng.integers(0, 12)
    points = points_within(parents, lo, hi)
    low, high = lo.copy(), hi.copy()
    stopped = reach(forest, 1e-9, low, high)
    assert (stopped < 0) == bool(len(points))
    if len(points):
        root = parents < 0
        assert (low[root], high[root]) == (points[:, root].min(), points[:, root].max())
        assert (low <= points.min(axis=0)).all()
        assert (high >= points.max(axis=0)).all()


@for_each_seed(200)
def test_residuals_are_zero_at_the_optimum_only(seed):
    rng, parents, links, lo, hi, x = case(seed)
    points = points_within(parents, lo, hi)
    n = x.size
    y, weight = x + rng.integers(-4, 5, n).astype(float), rng.choice([1.0, 3.0], n)
    cost = np.abs(points - y) @ weight
    lo, hi = lo.copy(), hi.copy()
    flat = np.zeros(n)
    # a linear cost on integers has its least value at integers
    for z, own in zip(points, cost, strict=True):
        task = (False, Costs(y, y, flat, weight), lo, hi, 1e-9, z)
        worst_sum, worst_price, _, _ = certify(links, *task)
        assert worst_sum == 0.0
        assert (worst_price <= 1e-9) == (own <= cost.min() + 1e-9)
    z = points[0].astype(float)
    if np.isin(0, parents) and n > 1:
        z[0] += 0.5
        assert certify(links, False, Costs(y, y, flat, weight), lo, hi, 1e-9, z)[0] == 0.5


@for_each_seed(200)
def test_sums_are_added_where_all_below_is_known(seed):
    rng, parents, forest, _, _, x = case(seed)
    known = rng.random(x.size) < 0.6
    values = np.where(known, x, -99.0)
    add_determined(forest, known, values)

    def determined(v):
        below = np.flatnonzero(parents == v)
        return known[v] or (below.size > 0 and all(determined(c) for c in below))

    for v in range(x.size):
        assert determined(v) == (values[v] == x[v])


@for_each_seed(200)
def test_settled_integers_add_up_and_keep_what_is_known(seed):
    rng, parents, forest, _, _, x = case(seed)
    n = x.size
    known = forest.is_root | (rng.random(n) < 0.3)
    center = np.empty(n)
    noisy = x + np.where(known, 0.0, rng.normal(0, 3, n))
    settle(forest, known, noisy, center)
    assert (center == np.rint(center)).all()
    for v in range(n):
        below = np.flatnonzero(parents == v)
        assert below.size == 0 or center[below].sum() == center[v]
        assert below.size or not known[v] or center[v] == x[v]


@for_each_seed(200)
def test_a_solve_on_the_values_held_is_the_least_squares_solution(seed):
    rng, parents, links, _, _, x = case(seed)
    sums, n = leaf_sums(parents), x.size
    leaf = np.flatnonzero(~np.isin(np.arange(n), parents))
    y, weight = x + rng.normal(0, 3, n), rng.choice([0.5, 1.0, 4.0], n)
    lo = np.full(n, -np.inf)
    held = leaf[rng.random(leaf.size) < 0.3]
    lo[held] = x[held] - 100.0
    z = np.where(np.isin(np.arange(n), held), lo, 0.0)
    free = ~np.isin(leaf, held)
    root = np.sqrt(weight)
    fixed = sums @ np.where(free, 0.0, z[leaf])
    found = np.linalg.lstsq(root[:, None] * sums[:, free], root * (y - fixed), rcond=None)[0]
    wanted = fixed + sums[:, free] @ found
    refine(links, y, weight, lo, np.full(n, np.inf), z)
    np.testing.assert_allclose(z, np.maximum(wanted, lo), atol=1e-8)
