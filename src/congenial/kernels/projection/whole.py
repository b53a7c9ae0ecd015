"""The integers of least summed change that add up, from the units with the smallest prices.

Benchmark row: `rounding`.

Places and families are those of `levels`. Every unit by which a value can increase has a price: the
increase of the summed change. A leaf with remainder f has one unit of price 1 - 2f between its two
neighbouring integers; its other units cost 1 up and -1 down. A parent's units are its family's
units in order of price, plus -1, 1 - 2f or 1 for the parent's own change. Only units whose price
stays between -1 and 1 can matter further up. Prices are multiples of half a grid step.
"""

from __future__ import annotations

import numpy as np

from congenial.kernels.numerics.compiling import njit
from congenial.kernels.projection.keys import RANK_BITS, key_of, position_bits, rank_of, sort_keys
from congenial.kernels.projection.newton import FIXED, HIGH, KIND, LOW

ROUNDED, UNDECIDED = 0, 1
# Largest price kept, in units of `full`, if further units are tried.
_WIDEST = 7
# Offset that turns a price into a rank.
_MIDDLE = 1 << (RANK_BITS - 1)


@njit(inner=True)
def _mixed(word, i):
    """Return the random word of the i-th unit of a place (Steele, Lea and Flood 2014)."""
    x = word + np.uint64(i + 1) * np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@njit(inner=True)
def _split(value, full):
    """Return the integer below a value and its remainder on a grid of 1 / full, less than full."""
    below = np.floor(value + 0.5 / full)
    part = int(np.rint((value - below) * full))
    if part >= full:
        return below + 1.0, 0
    return below, part


@njit(inner=True)
def _own(e, part, full):
    """Price that a parent's own change adds to its unit from e to e + 1."""
    if e < 0:
        return -full
    return full - 2 * part if e == 0 and part > 0 else full


@njit(inner=True)
def _kept(k, step, part, least, most, full, widest, keys, price, stored):
    """Store the units of parent k that may matter further up; return the number stored so far.

    Unknown units to the left of the family's known units have prices of at most -left, those to the
    right of at least right. The parent's own change shifts these limits as it shifts the units.
    """
    begin, count, short, kept, keeps, e, left, right = step
    first, last = -short[k], count[k] - short[k]
    left[k] = widest if first <= least else min(left[k] - _own(first - 1, part, full), widest)
    right[k] = widest if last >= most else min(right[k] + _own(last, part, full), widest)
    i = 0
    while i < count[k]:
        at = i - short[k]
        cost = rank_of(keys[begin[k] + i]) - _MIDDLE + _own(at, part, full)
        if cost > -left[k] and at >= least:
            break
        i += 1
    e[k], kept[k] = i - short[k], stored
    while i < count[k] and stored < price.size:
        at = i - short[k]
        cost = rank_of(keys[begin[k] + i]) - _MIDDLE + _own(at, part, full)
        if cost >= right[k] or at + 1 > most:
            break
        price[stored] = cost
        stored += 1
        i += 1
    keeps[k] = stored - kept[k]
    return stored


@njit()
def round_levels(rows, leaf, inner, near, z, full, spare, words, out):
    """Fill `out` (n,) with integers, by place.

    The closest point is `near`, integers, plus `z`, shapes (n,); a unit has `full` grid steps.
    `rows`, `leaf` and `inner` are those of `newton.solve`. Returns ROUNDED, or UNDECIDED if unknown
    units could matter or a fixed value is not an integer; `out` is not filled then.
    """
    first, split, below, at = rows[0], rows[1], rows[2], rows[3]
    give, lo, hi = leaf[0], leaf[1], leaf[2]
    m = inner.shape[1]
    widest = full * (_WIDEST if spare else 1)
    size = (2 + 2 * spare) * z.size + 16
    keys = np.empty(size, dtype=np.int64)  # sorted keys of each family
    price = np.empty(size, dtype=np.int64)  # sorted prices of the units that each parent keeps
    state = np.zeros((8, m), dtype=np.int64)
    begin, count, short, kept, keeps, e, left, right = state
    used, stored = 0, 0
    for c in range(first[0]):
        out[c], part = _split(z[c], full)
        if part > 0 and give[c] == 0.0:
            return UNDECIDED
        if 2 * part > full or (2 * part == full and words[c] & np.uint64(1)):
            out[c] += 1.0
    for k in range(m - 1, -1, -1):
        bits = position_bits(first[k + 1] - first[k])
        room = (1 + 2 * spare) * (split[k] - first[k])
        for j in range(below[k], below[k + 1]):
            room += keeps[j]
        if used + room > size or stored + room > size:
            return UNDECIDED
        whole, base = 0.0, 0
        begin[k], left[k], right[k] = used, widest, widest
        for c in range(first[k], split[k]):
            out[c], part = _split(z[c], full)
            if give[c] == 0.0:
                if part > 0:
                    return UNDECIDED
                whole += out[c]
                continue
            down = near[c] + out[c] - lo[c]
            up = hi[c] - (near[c] + out[c]) - (part > 0)
            fewer, more = int(min(down, spare)), int(min(up, spare))
            if down > fewer:
                left[k] = min(left[k], full)
            if up > more:
                right[k] = min(right[k], full)
            out[c] -= fewer
            whole += out[c]
            position = c - first[k]
            for i in range(fewer + more):
                rank = _MIDDLE - full if i < fewer else _MIDDLE + full
                keys[used] = key_of(rank, _mixed(words[c], i), position, bits)
                used += 1
            if part > 0:
                keys[used] = key_of(_MIDDLE + full - 2 * part, words[c], position, bits)
                used += 1
        for j in range(below[k], below[k + 1]):
            whole += out[at[j]]
            base += e[j]
            left[k], right[k] = min(left[k], left[j]), min(right[k], right[j])
            for i in range(keeps[j]):
                word = _mixed(words[at[j]], i)
                keys[used] = key_of(price[kept[j] + i] + _MIDDLE, word, at[j] - first[k], bits)
                used += 1
        count[k] = used - begin[k]
        sort_keys(keys, begin[k], used)
        floor, part = _split(z[at[k]], full)
        out[at[k]] = floor
        # after taking i of its units, a parent's value is floor - short + i
        short[k] = int(floor - whole) - base
        if inner[KIND, k] == FIXED:
            if part > 0 or not 0 <= short[k] <= count[k]:
                return UNDECIDED
            left[k] = right[k] = widest
            continue
        least, most = inner[LOW, k] - near[at[k]] - floor, inner[HIGH, k] - near[at[k]] - floor
        stored = _kept(k, state, part, least, most, full, widest, keys, price, stored)
    for k in range(below[0]):
        if inner[KIND, k] == FIXED:
            continue
        if left[k] <= 0 or right[k] <= 0:
            return UNDECIDED
        # among a root's equally good values, the one nearest to its old value
        tied = 0
        for i in range(keeps[k]):
            e[k] += price[kept[k] + i] < 0
            tied += price[kept[k] + i] == 0
        _, part = _split(z[at[k]], full)
        up = 2 * part > full or (2 * part == full and words[at[k]] & np.uint64(1))
        e[k] = min(max(e[k], 1 if up else 0), e[k] + tied)
    for k in range(m):
        out[at[k]] += e[k]
        inside = np.int64(1) << position_bits(first[k + 1] - first[k])
        for i in range(begin[k], begin[k] + e[k] + short[k]):
            place = first[k] + (keys[i] & (inside - 1))
            if place < split[k]:
                out[place] += 1.0
            else:
                e[below[k] + place - split[k]] += 1
    return ROUNDED


@njit()
def is_least(rows, leaf, inner, near, z, full, out):
    """Whether integers add up, keep bounds and pins, and no others have a smaller summed change.

    The arguments are those of `round_levels`. A value is optimal at the prices between that of its
    last unit and that of its next unit. `out` is optimal if and only if the values of each family
    have such a price in common, which is 0 for the roots. All arithmetic is in integers.
    """
    first, split, below, at = rows[0], rows[1], rows[2], rows[3]
    give, lo, hi = leaf[0], leaf[1], leaf[2]
    far = np.int64(1) << 60
    m = inner.shape[1]
    asked = np.empty((2, m), dtype=np.int64)
    for k in range(m - 1, -1, -1):
        total, most, least = 0.0, -far, far
        for c in range(first[k], split[k]):
            floor, part = _split(z[c], full)
            total += out[c]
            if give[c] == 0.0:
                if part > 0 or out[c] != floor:
                    return False
                continue
            value = near[c] + out[c]
            if not lo[c] <= value <= hi[c]:
                return False
            e = int(out[c] - floor)
            if value > lo[c]:
                most = max(most, _own(e - 1, part, full))
            if value < hi[c]:
                least = min(least, _own(e, part, full))
        for j in range(below[k], below[k + 1]):
            total += out[at[j]]
            most, least = max(most, asked[0, j]), min(least, asked[1, j])
        if most > least or total != out[at[k]]:
            return False
        floor, part = _split(z[at[k]], full)
        value = near[at[k]] + out[at[k]]
        asked[0, k], asked[1, k] = -far, far
        if inner[KIND, k] == FIXED:
            if part > 0 or out[at[k]] != floor:
                return False
            continue
        if not inner[LOW, k] <= value <= inner[HIGH, k]:
            return False
        e = int(out[at[k]] - floor)
        if value > inner[LOW, k]:
            asked[0, k] = max(most + _own(e - 1, part, full), -far)
        if value < inner[HIGH, k]:
            asked[1, k] = min(least + _own(e, part, full), far)
        if k < below[0] and not asked[0, k] <= 0 <= asked[1, k]:
            return False
    return True
