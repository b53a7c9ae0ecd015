"""The distinct weights of the noise of many variables.

Benchmark rows: `everywhere`, `bounded`.
"""

from __future__ import annotations

import numpy as np

from congenial.kernels.numerics.compiling import njit

# Entries of the smallest hash table; each larger size has four times as many.
_FEWEST = 256


def room(most: int) -> int:
    """Return the size of a hash table for `most` weights."""
    size = _FEWEST
    while size <= 2 * most:
        size *= 4
    return size


@njit(inner=True)
def _bits(x):
    return np.float64(x).view(np.int64)


@njit(inner=True)
def _place(a, b, c, mask):
    """Return where the search for a row begins."""
    x = np.uint64(a) * np.uint64(0x9E3779B97F4A7C15)
    x = ((x ^ (x >> np.uint64(32))) + np.uint64(b)) * np.uint64(0xBF58476D1CE4E5B9)
    x = ((x ^ (x >> np.uint64(29))) + np.uint64(c)) * np.uint64(0x94D049BB133111EB)
    return np.int64((x ^ (x >> np.uint64(32))) & np.uint64(mask))


@njit()
def number_weights(
    scale, lo, hi, counts, fixed, dropped, orientation, code, recent, marked, rows, held
):
    """Fill `code` with the number of each variable's weight; return the number of weights."""
    n = fixed.size
    mask = _FEWEST - 1
    count = 0
    by_scale, by_lo, by_hi = min(scale.size - 1, 1), min(lo.size - 1, 1), min(hi.size - 1, 1)
    by_count, by_drop = min(counts.size - 1, 1), min(dropped.size - 1, 1)
    by_way = min(orientation.size - 1, 1)
    last_scale, last_low, last_high = -1.0, 0.0, 0.0  # no scale is negative
    number = 0
    # `recent` caches the codes of small counts; one mark for each pair of scale and bounds
    mark, mark_scale, mark_lo, mark_hi = np.int32(0), -1.0, 0.0, 0.0
    alike = not (by_scale or by_lo or by_hi or by_count or by_drop or by_way)
    for v in range(code.size):
        if alike and 0 < v < n and fixed[v] == fixed[v - 1]:
            code[v] = code[v - 1]
            continue
        width, low, high = np.inf, -np.inf, np.inf
        place = -1
        if v < n:
            width = scale[by_scale * v]
            if fixed[v]:
                low = high = 0.0
            else:
                x = counts[by_count * v]
                if not dropped[by_drop * v]:
                    low = np.ceil(lo[by_lo * v])
                high = np.floor(hi[by_hi * v])
                if orientation[by_way * v] < 0:
                    low, high, x = -high, -low, -x
                if 0 <= x < recent.size:
                    place = x
                    if width != mark_scale or low != mark_lo or high != mark_hi:
                        mark += 1
                        mark_scale, mark_lo, mark_hi = width, low, high
                    elif marked[x] == mark:
                        code[v] = recent[x]
                        continue
                low, high = low - x, high - x
        if width == last_scale and low == last_low and high == last_high:
            code[v] = number
            if place >= 0:
                recent[place], marked[place] = number, mark
            continue
        last_scale, last_low, last_high = width, low, high
        # + 0.0 turns -0.0 into 0.0
        a, b, c = _bits(width), _bits(low + 0.0), _bits(high + 0.0)
        at = _place(a, b, c, mask)
        while held[at] > 0:
            k = held[at] - 1
            if rows[k, 0] == a and rows[k, 1] == b and rows[k, 2] == c:
                break
            at = (at + 1) & mask
        if held[at] == 0:
            rows[count, 0], rows[count, 1], rows[count, 2] = a, b, c
            count += 1
            held[at] = count
        number = held[at] - 1
        code[v] = number
        if place >= 0:
            recent[place], marked[place] = number, mark
        if 2 * count > mask:
            # spread the table over more of `held`
            for k in range(mask + 1):
                held[k] = 0
            mask = 4 * mask + 3
            for k in range(count):
                at = _place(rows[k, 0], rows[k, 1], rows[k, 2], mask)
                while held[at] > 0:
                    at = (at + 1) & mask
                held[at] = k + 1
    return count
