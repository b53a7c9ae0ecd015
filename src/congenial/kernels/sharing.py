"""The distinct weights of the noise of many variables."""

from __future__ import annotations

import numpy as np

from congenial.kernels.compiling import njit


@njit(inner=True)
def _roomier(rows, held, count):
    """Return a table of rows twice as large, and a hash table for it."""
    wide = np.empty((2 * rows.shape[0], 3), dtype=np.int64)
    fresh = np.empty(2 * held.size, dtype=np.int32)
    for at in range(fresh.size):
        fresh[at] = -1
    for k in range(count):
        wide[k, 0], wide[k, 1], wide[k, 2] = rows[k, 0], rows[k, 1], rows[k, 2]
        at = _place(wide[k, 0], wide[k, 1], wide[k, 2], fresh.size - 1)
        while fresh[at] >= 0:
            at = (at + 1) & (fresh.size - 1)
        fresh[at] = k
    return wide, fresh


@njit(inner=True)
def _place(a, b, c, mask):
    """Return where the search for a row begins."""
    x = np.uint64(a) * np.uint64(0x9E3779B97F4A7C15)
    x = ((x ^ (x >> np.uint64(32))) + np.uint64(b)) * np.uint64(0xBF58476D1CE4E5B9)
    x = ((x ^ (x >> np.uint64(29))) + np.uint64(c)) * np.uint64(0x94D049BB133111EB)
    return np.int64((x ^ (x >> np.uint64(32))) & np.uint64(mask))


@njit()
def number_weights(scale, lo, hi, counts, fixed, dropped, orientation, code):
    """Number the distinct weights of noise; return the bits of their scales, ends lo and hi.

    Parameters
    ----------
    scale, lo, hi : float64
        Scales, and bounds of the values; one entry, or one a variable.
    counts : int64
        Values without noise; one entry, or one a variable.
    fixed : bool (n,)
        Variables without noise.
    dropped : bool
        Variables whose lower bound follows from others; one entry, or one a variable.
    orientation : int8
        -1 where the variable stands for the negative of its value; one entry, or one a variable.
    code : int32 (n + more,)
        Filled with the number of each variable's weight. Those from n on have the scale inf.

    Returns
    -------
    int64 (weights, 3)
    """
    n = fixed.size
    rows, held = np.empty((64, 3), dtype=np.int64), np.empty(256, dtype=np.int32)
    for k in range(held.size):
        held[k] = -1
    count = 0
    by_scale, by_lo, by_hi = int(scale.size > 1), int(lo.size > 1), int(hi.size > 1)
    by_count, by_drop = int(counts.size > 1), int(dropped.size > 1)
    by_way = int(orientation.size > 1)
    now = np.empty(3)
    bits = now.view(np.int64)
    last_scale, last_low, last_high = -1.0, 0.0, 0.0  # no scale is negative
    number = 0
    # codes of small counts with the same scale and bounds, which have the same mark
    recent, marked = np.empty(1024, dtype=np.int32), np.empty(1024, dtype=np.int32)
    for k in range(marked.size):
        marked[k] = 0
    mark, mark_scale, mark_lo, mark_hi = np.int32(0), -1.0, 0.0, 0.0
    for v in range(code.size):
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
        now[0], now[1], now[2] = width, low + 0.0, high + 0.0  # one zero only
        mask = held.size - 1
        at = _place(bits[0], bits[1], bits[2], mask)
        while held[at] >= 0:
            k = held[at]
            if rows[k, 0] == bits[0] and rows[k, 1] == bits[1] and rows[k, 2] == bits[2]:
                break
            at = (at + 1) & mask
        if held[at] < 0:
            held[at] = count
            rows[count, 0], rows[count, 1], rows[count, 2] = bits[0], bits[1], bits[2]
            count += 1
        number = held[at]
        code[v] = number
        if place >= 0:
            recent[place], marked[place] = number, mark
        if count == rows.shape[0]:
            rows, held = _roomier(rows, held, count)
    return rows[:count].copy()
