"""Weights listed once each, and which of them may be composed."""

from __future__ import annotations

import numpy as np

from congenial.kernels.network import consing
from congenial.kernels.numerics import laws
from congenial.sum_network.weights import (
    Unary,
    alike,
    composable,
    share_noise,
    share_unary,
    side_by_side,
)
from support.seeds import for_each_seed

INF = np.inf


def unary(rows):
    kind, *rest = (np.array(column) for column in zip(*rows, strict=True))
    return Unary(kind.astype(np.int64), *(c.astype(np.float64) for c in rest))


@for_each_seed(100)
def test_equal_weights_have_one_number(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 40))
    rows = [
        (rng.integers(0, 2), rng.choice([1.0, 2.0]), *rng.integers(0, 2, 3).astype(float))
        for _ in range(n)
    ]
    composed = rng.integers(0, 2, n).astype(np.int8)
    one = unary(rows)
    number, first = alike((one.lo, one.hi, one.scale, one.center, one.kind, composed))
    keys = [(*map(float, row), int(c)) for row, c in zip(rows, composed, strict=True)]
    for v in range(n):
        assert keys[first[number[v]]] == keys[v]
    assert len(first) == len(set(keys))


def test_rows_are_numbered_as_sorting_them_does():
    """By the last column first; each number's row is its first one, and -0.0 is 0.0."""
    rng = np.random.default_rng(5)
    for _ in range(3000):
        n, values = int(rng.integers(0, 30)), np.array([-INF, -1.5, -0.0, 0.0, 2.0, INF])
        floats = [rng.choice(values[: rng.integers(1, 7)], n) for _ in range(2)]
        columns = (*floats, rng.integers(-1, 2, n), rng.integers(0, 2, n).astype(np.bool_))
        number, first = alike(columns)
        rows = [tuple(float(column[v]) for column in columns[::-1]) for v in range(n)]
        distinct = sorted(set(rows))
        assert number.tolist() == [distinct.index(row) for row in rows]
        assert first.tolist() == [rows.index(row) for row in distinct]


@for_each_seed(100)
def test_shared_noise_is_each_variables_own(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 30))
    scale, lo = rng.choice([1.0, 3.0, INF], n), rng.choice([-INF, 0.0], n)
    hi, counts = rng.choice([INF, 7.0], n), rng.integers(0, 8, n)
    way, fixed = rng.choice([1, -1], n).astype(np.int8), rng.random(n) < 0.2
    shared = share_noise(laws.LAPLACE, scale, (lo, hi), fixed, n, counts=counts, orientation=way)
    each = shared.each
    free = ~fixed
    low, high = (
        np.where(way > 0, lo - counts, counts - hi),
        np.where(way > 0, hi - counts, counts - lo),
    )
    np.testing.assert_array_equal(each.lo, np.where(free, low, 0.0))
    np.testing.assert_array_equal(each.hi, np.where(free, high, 0.0))
    np.testing.assert_array_equal(each.scale, scale)
    assert ((each.kind == laws.FLAT) == np.isinf(scale)).all()
    assert len(set(zip(each.scale, each.lo, each.hi, strict=True))) == shared.unary.lo.size


def test_weights_side_by_side_are_those_of_each_part():
    first = unary([(laws.LAPLACE, 1.0, 0.0, -1.0, INF), (laws.FLAT, INF, 0.0, 0.0, INF)])
    second = unary([(laws.GAUSSIAN, 2.0, 1.0, -INF, INF)])
    found = side_by_side([share_unary(part) for part in (first, second, first)]).each
    for name in ("kind", "scale", "center", "lo", "hi"):
        wanted = [getattr(part, name) for part in (first, second, first)]
        np.testing.assert_array_equal(getattr(found, name), np.concatenate(wanted))


def test_only_weights_of_geometric_variables_are_composed():
    rows = [
        (laws.LAPLACE, 1.0, 0.0, -INF, INF),
        (laws.LAPLACE, 1.0, 0.0, 0.0, INF),
        (laws.LAPLACE, 1.0, 0.0, -INF, 0.0),
        (laws.FLAT, INF, 0.0, -4.0, INF),
        (laws.FLAT, INF, 0.0, -INF, 4.0),
        # a mode or a bound elsewhere, two ends, none, another law
        (laws.LAPLACE, 1.0, 1.0, -INF, INF),
        (laws.LAPLACE, 1.0, 0.0, -1.0, INF),
        (laws.LAPLACE, 1.0, 0.0, 0.0, 5.0),
        (laws.FLAT, INF, 0.0, 0.0, 5.0),
        (laws.FLAT, INF, 0.0, -INF, INF),
        (laws.GAUSSIAN, 1.0, 0.0, -INF, INF),
    ]
    ways = [consing.BOTH_WAYS, consing.FROM_ZERO, consing.TO_ZERO]
    ways += [consing.UPWARDS, consing.DOWNWARDS]
    assert composable(unary(rows)).tolist() == ways + [consing.NOT] * 6
