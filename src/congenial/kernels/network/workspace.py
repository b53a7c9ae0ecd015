"""Workspace: slices of one scratch array, reused after their last reader.

Benchmark row: `memory`.
"""

from __future__ import annotations

import numpy as np

from congenial.kernels.numerics.compiling import njit

# Sizes of slices are multiples of this many entries, so that freed slices fit later needs.
_GRAIN = 32


@njit()
def assign(left, right, width, kept, place):
    """Fill `place` (c,) with the start of each class's slice; return the extent of all slices.

    A class has the parts `left` and `right` (-1 for none). Its slice of `width` entries is reserved
    until the last class that it is a part of has a slice, and never freed if `kept`.
    """
    count = width.size
    last = np.empty(count, dtype=np.int64)
    for c in range(count):
        last[c] = c
        if left[c] >= 0:
            last[left[c]] = last[right[c]] = c
    most = 0
    for c in range(count):
        most = max(most, (width[c] + _GRAIN - 1) // _GRAIN)
    # stacks of free slices, one for each size, linked through the classes that used them
    top = np.empty(most + 1, dtype=np.int64)
    for size in range(top.size):
        top[size] = -1
    under = np.empty(count, dtype=np.int64)
    extent = 0
    for c in range(count):
        if width[c] <= 0:
            place[c] = 0
            continue
        size = (width[c] + _GRAIN - 1) // _GRAIN
        free = top[size]
        if free >= 0:
            top[size] = under[free]
            place[c] = place[free]
        else:
            place[c] = extent
            extent += size * _GRAIN
        for part in (left[c], right[c]):
            if part >= 0 and last[part] == c and not kept[part]:
                last[part] = -1
                size = (width[part] + _GRAIN - 1) // _GRAIN
                under[part] = top[size]
                top[size] = part
    return extent


@njit(inner=True)
def grown(array, size):
    """Return `array`, or a copy of it with room for `size` entries."""
    if array.size >= size:
        return array
    more = np.empty(max(size, 2 * array.size))
    for i in range(array.size):
        more[i] = array[i]
    return more
