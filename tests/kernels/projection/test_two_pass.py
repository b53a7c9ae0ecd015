"""The closest point of a tree by curves, against enumeration and against least squares."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from congenial.kernels.projection.forest import NO_CURVES, Costs
from congenial.kernels.projection.two_pass import fall, rise
from support.projection_arrays import leaf_sums, linked, random_parents, words_of
from support.seeds import for_each_seed

pytestmark = pytest.mark.kernels

NONE = words_of([])


def solve(links, quadratic, costs, lo, hi, prefer, words, limit, z):
    status, curves, sums = rise(links, quadratic, costs, lo, hi, NO_CURVES, limit)
    if status == 0:
        fall(links, curves, sums, prefer, words, z)
    return status


@for_each_seed(200)
@pytest.mark.parametrize("whole", [False, True])
def test_the_summed_distance_is_the_least_of_all(seed, whole):
    rng = np.random.default_rng(seed)
    parents = random_parents(rng, int(rng.integers(1, 7)))
    links, sums = linked(parents), leaf_sums(parents)
    n, leaves = sums.shape
    x = sums @ rng.integers(0, 4, leaves)
    y = x + rng.integers(-4, 5, n).astype(float)
    lo, hi = x - rng.integers(0, 3, n).astype(float), x + rng.integers(0, 3, n).astype(float)
    leaf = np.flatnonzero(~np.isin(np.arange(n), parents))
    points = [
        z
        for each in itertools.product(*(np.arange(lo[v], hi[v] + 1) for v in leaf))
        for z in (sums @ np.array(each),)
        if ((z >= lo) & (z <= hi)).all()
    ]
    weight = rng.choice([0.0, 0.5, 1.0, 3.0], n)
    z, words = np.empty(n), words_of(rng.integers(0, 2**63, n)) if whole else NONE
    flat = np.zeros(n)
    assert solve(links, False, Costs(y, y, flat, weight), lo, hi, y, words, 10**6, z) == 0
    assert ((z >= lo - 1e-9) & (z <= hi + 1e-9)).all()
    np.testing.assert_allclose(sums @ z[leaf], z, atol=1e-9)
    assert not whole or (z == np.rint(z)).all()
    least = min(float(weight @ np.abs(p - y)) for p in points)
    assert weight @ np.abs(z - y) == pytest.approx(least, abs=1e-9)


@for_each_seed(200)
def test_weighted_squares_are_least(seed):
    rng = np.random.default_rng(seed)
    parents = random_parents(rng, int(rng.integers(1, 12)))
    links, sums = linked(parents), leaf_sums(parents)
    n = sums.shape[0]
    y, weight = rng.normal(0, 10, n), rng.choice([0.3, 1.0, 9.0], n)
    root = np.sqrt(weight)
    wanted = sums @ np.linalg.lstsq(root[:, None] * sums, root * y, rcond=None)[0]
    z, ends = np.empty(n), np.full(n, np.inf)
    flat = np.zeros(n)
    assert solve(links, True, Costs(y, y, flat, weight), -ends, ends, y, NONE, 10**6, z) == 0
    np.testing.assert_allclose(z, wanted, atol=1e-8)


def test_points_beyond_the_limit_are_too_many():
    links = linked(np.array([-1, 0, 0]))
    y = np.zeros(3)
    one = np.ones(3)
    assert solve(links, True, Costs(y, y, y, one), -one, one, y, NONE, 2, np.empty(3)) != 0
