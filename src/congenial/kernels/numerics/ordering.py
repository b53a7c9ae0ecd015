"""Sorting of few numbers: positions of set bits, insertion of one number, a network for five.

Benchmark row: `flat`.
"""

from __future__ import annotations

import numpy as np

from congenial.kernels.numerics.compiling import njit

# De Bruijn's sequence: a product with it gives the index of a single set bit.
_DE_BRUIJN = np.uint64(0x03F79D71B4CB0A89)
_INDEX = np.zeros(64, dtype=np.uint8)
for _i in range(64):
    _INDEX[((int(_DE_BRUIJN) << _i) & 0xFFFFFFFFFFFFFFFF) >> 58] = _i


@njit(inner=True)
def read_marks(marks, base, chosen, r):
    """Append to `chosen`, which holds r, base + i for every bit i that is set."""
    while marks != np.uint64(0):
        lone = marks & (~marks + np.uint64(1))
        chosen[r] = base + np.int64(_INDEX[(lone * _DE_BRUIJN) >> np.uint64(58)])
        r += np.uint64(1)
        marks ^= lone
    return r


@njit(inner=True)
def insert(value, chosen, first, stop):
    """Insert into the sorted chosen[first : stop], unless it is there; return whether it is new."""
    i = stop
    while i > first and chosen[i - 1] > value:
        i -= 1
    if i > first and chosen[i - 1] == value:
        return False
    for k in range(stop, i, -1):
        chosen[k] = chosen[k - 1]
    chosen[i] = value
    return True


@njit(inner=True)
def in_order(a, b, c, d, e):
    """Return five numbers in order, by nine comparisons (Knuth, volume 3, 5.3.4) and no branch."""
    a, b = min(a, b), max(a, b)
    d, e = min(d, e), max(d, e)
    c, e = min(c, e), max(c, e)
    c, d = min(c, d), max(c, d)
    b, e = min(b, e), max(b, e)
    a, d = min(a, d), max(a, d)
    a, c = min(a, c), max(a, c)
    b, d = min(b, d), max(b, d)
    b, c = min(b, c), max(b, c)
    return a, b, c, d, e
