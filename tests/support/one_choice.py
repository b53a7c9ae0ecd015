"""One operation of a drawing program, for many words."""

from __future__ import annotations

import numpy as np

from congenial.kernels.network.descend import ROOT, SPLIT, draw
from congenial.kernels.network.records import (
    KeptRows,
    Near,
    OpenChoices,
    Program,
    WeighedTables,
    Windows,
)


def _drawn(op, slots, tables, first, words, values, *, near=(0.0, 10**6), kept=False):
    """Fill `values` by one operation on class 2; windows of the tables begin at `first`."""
    size = np.array([table.size for table in tables])
    lo = np.array(first, dtype=np.int64)
    windows = Windows(lo, lo + size - 1, np.cumsum(size) - size)
    program = (np.array([s], dtype=np.int32) for s in (*slots, 2))
    parts = (np.array([-1, -1, part], dtype=np.int32) for part in (0, 1))
    middle, reach = np.full(3, float(near[0])), np.full(3, near[1])
    longest = 8 * (int(size.max()) // 8 + 1)
    place = np.array([-1, -1, 0 if kept else -1]), np.zeros(int(size[2]), dtype=np.int64)
    rows = np.zeros(256 + longest // 8, dtype=np.int64), np.zeros(longest, dtype=np.int64)
    kept_rows = KeptRows(*place, np.array([256]), *rows)
    of = Program(np.array([op], dtype=np.int8), *program), *parts, windows, np.concatenate(tables)
    sums = Near(middle, np.zeros(3), reach)
    left = OpenChoices(np.full(words.size, 2**62), np.zeros(words.size))
    *most, table = of
    tables = WeighedTables(table, np.ones(3), np.zeros(0))
    draw(*most, tables, sums, kept_rows, left, words.reshape(1, -1), values, 0, words.size)


def split(a, lo_a, b, lo_b, s, total, words, **row):
    """Return the left part of sum s for each word; `row` has the middle and reach of the row."""
    values = np.full((3, words.size), s)
    sums = np.full(a.size + b.size - 1, total)
    _drawn(SPLIT, (0, 1, 2), (a, b, sums), (lo_a, lo_b, lo_a + lo_b), words, values, **row)
    assert (values[1] + values[2] == s).all()
    return values[1]


def root(t, lo, words):
    """Return the value of a root with table `t` for each word."""
    values = np.zeros((3, words.size), dtype=np.int64)
    _drawn(ROOT, (0, -1, -1), (np.ones(1), np.ones(1), t), (0, 0, lo), words, values)
    return values[0]
