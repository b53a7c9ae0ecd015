"""Choices by a word each: over evenly spaced words, every outcome has its share of them."""

from __future__ import annotations

import numpy as np
import pytest

from congenial.kernels.network.descend import ROOT, SPLIT, draw
from congenial.kernels.network.records import KeptRows, Near, Program, Windows

pytestmark = pytest.mark.kernels

MANY = 500
WORDS = ((2 * np.arange(MANY, dtype=np.uint64) + 1) * np.uint64(2**63 // MANY)).reshape(1, -1)


def assert_shares(outcomes, weights, first):
    """Outcomes in turn, the words in order: each count is within one of its share."""
    counts = np.bincount(outcomes - first, minlength=weights.size)
    assert counts.size == weights.size
    np.testing.assert_allclose(np.cumsum(counts), MANY * np.cumsum(weights) / weights.sum(), atol=1)


def drawn(op, slots, cls, tables, first, near, values, *, kept):
    """Fill `values` by one operation on classes with these tables, whose windows start at `first`.

    Class 2 is the merge of the classes 0 and 1.
    """
    size = np.array([table.size for table in tables])
    lo = np.array(first, dtype=np.int64)
    windows = Windows(lo, lo + size - 1, np.cumsum(size) - size)
    operation = (np.array([s], dtype=np.int32) for s in (*slots, cls))
    program = Program(np.array([op], dtype=np.int8), *operation)
    parts = (np.array([-1, -1, part], dtype=np.int32) for part in (0, 1))
    middle, share, reach = (np.full(3, each) for each in near)
    longest = 8 * (int(size.max()) // 8 + 1)
    rooms = np.full(3, -1), np.zeros(int(size[-1]), dtype=np.int64), np.array([256])
    if kept:
        rooms[0][cls] = 0
    scratch = np.zeros(256 + longest // 8, dtype=np.int64), np.zeros(longest, dtype=np.int64)
    of = program, *parts, windows, np.concatenate(tables), np.ones(3), Near(middle, share, reach)
    draw(*of, KeptRows(*rooms, *scratch), WORDS, values, 0, MANY)


@pytest.mark.parametrize("seed", range(60))
def test_a_sum_is_split_in_proportion_to_the_products(seed):
    rng = np.random.default_rng(seed)
    a, b = rng.exponential(size=rng.integers(1, 40)), rng.exponential(size=rng.integers(1, 40))
    a[rng.random(a.size) < 0.2] = 0.0
    lo_a, lo_b = int(rng.integers(-20, 20)), int(rng.integers(-20, 20))
    s = lo_a + lo_b + int(rng.integers(0, a.size + b.size - 1))
    first, last = max(lo_a, s - lo_b - b.size + 1), min(lo_a + a.size - 1, s - lo_b)
    left = np.arange(first, last + 1)
    weights = a[left - lo_a] * b[s - left - lo_b]
    if weights.sum() == 0.0:
        return
    values = np.full((3, MANY), s)
    tables = a, b, np.convolve(a, b)
    # all outcomes are in one row
    near = float(first), 0.0, weights.size
    starts = lo_a, lo_b, lo_a + lo_b
    drawn(SPLIT, (0, 1, 2), 2, tables, starts, near, values, kept=seed % 2 == 0)
    assert_shares(values[1], weights, first)
    assert (values[1] + values[2] == s).all()
    # a row of few outcomes: each outcome keeps its share of the words, in another order
    in_row = values[1].copy()
    near = float(rng.integers(first - 3, last + 3)), 0.0, int(rng.integers(0, 9))
    drawn(SPLIT, (0, 1, 2), 2, tables, starts, near, values, kept=seed % 2 == 1)
    assert (values[1] + values[2] == s).all()
    np.testing.assert_allclose(np.bincount(values[1] - first), np.bincount(in_row - first), atol=2)


@pytest.mark.parametrize("seed", range(60))
def test_a_root_is_chosen_in_proportion_to_its_table(seed):
    rng = np.random.default_rng(seed)
    t = rng.exponential(size=rng.integers(1, 60)) * 2.0 ** int(rng.integers(-40, 1))
    lo = int(rng.integers(-30, 30))
    values = np.zeros((3, MANY), dtype=np.int64)
    tables = np.ones(1), np.ones(1), t
    drawn(ROOT, (0, -1, -1), 2, tables, (0, 0, lo), (0.0, 0.0, 1), values, kept=False)
    assert_shares(values[0], t, lo)
