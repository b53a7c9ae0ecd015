"""Project each family onto its parent's value, from the top of a forest down (Abowd et al. 2022).

Benchmark row: `topdown`.

Places and families are those of `levels`. A family is moved to the closest point whose values add
up and stay in their ranges: all move by one amount, except values at an end of their range.
Values are relative to integers near them, so that rounding errors have the size of the noise.
"""

from __future__ import annotations

import numpy as np

from congenial.kernels.numerics.compiling import njit
from congenial.kernels.projection.keys import key_of, position_bits, sort_keys

DONE, INFEASIBLE, INEXACT, TOO_LARGE = 0, 1, 2, 3
# Most Newton steps of a family.
_MOST_STEPS = 400
# Places processed at once; some may lie beyond the end of a family.
_LANES = 8


@njit(inner=True, reordered=True)
def _sums(y, a, m, k):
    """Sums of the integers near the first k of m values from a on, and of the remainders."""
    whole, rest = 0.0, 0.0
    for i in range(m):
        value = y[a + i] if i < k else 0.0
        near = np.rint(value)
        whole += near
        # always below 1; without min(), reordering would take the difference apart
        rest += min(1.0, value - near)
    return whole, rest


@njit(inner=True, reordered=True)
def _moves(by, y, lo, hi, capped, a, m, k):
    """Sum of the moves of the first k of m places for a given amount, and how many move."""
    total, moving = 0.0, 0.0
    for i in range(m):
        move = max(by, lo[a + i] - y[a + i])
        if capped:
            move = min(move, hi[a + i] - y[a + i])
        total += move if i < k else 0.0
        moving += 1.0 if i < k and move == by else 0.0
    return total, moving


@njit(inner=True, reordered=True)
def _put(by, y, lo, hi, capped, a, m, k, out):
    """Write all m moved places; return the results of `_moves` and the sum of the first k."""
    total, moving, put = 0.0, 0.0, 0.0
    for i in range(m):
        move = max(by, lo[a + i] - y[a + i])
        if capped:
            move = min(move, hi[a + i] - y[a + i])
        total += move if i < k else 0.0
        moving += 1.0 if i < k and move == by else 0.0
        value = max(y[a + i] + by, lo[a + i])
        if capped:
            value = min(value, hi[a + i])
        out[a + i] = value
        put += value if i < k else 0.0
    return total, moving, put


@njit(inner=True)
def _start(by, short, a, b, y, lo, hi):
    """The amount at which each place has left its lower end, if `short` > 0, or its upper end."""
    for c in range(a, b):
        by = max(by, lo[c] - y[c]) if short > 0.0 else min(by, hi[c] - y[c])
    return by


@njit(inner=True)
def _round(a, b, whole, by, y, lo, hi, words, keys, out):
    """Round moved places a to b to integers of sum `whole`; the largest remainders get the units.

    Remainders that differ by less than 2^-20, or by less than the resolution of a large move, are
    equal and ordered by `words`. False if the number of units is negative or exceeds the number of
    remainders.
    """
    grid = 2.0**-20
    while abs(by) > grid * 2.0**46:
        grid *= 2.0
    bits = position_bits(b - a)
    count, rest = 0, whole
    full = 1 << 20
    for c in range(a, b):
        near = np.rint(y[c])
        value = min(max((y[c] - near) + by, lo[c] - near), hi[c] - near)
        floor = np.floor(value + 0.5 * grid)
        out[c] = floor + near
        rest -= out[c]
        part = int(np.rint((value - floor) / grid))
        if part > 0:
            keys[count] = key_of(full - part, words[c], c - a, bits)
            count += 1
    if not 0.0 <= rest <= count:
        return False
    units = int(rest)
    sort_keys(keys, 0, count)
    for i in range(units):
        out[a + (keys[i] & ((1 << bits) - 1))] += 1.0
    return True


@njit(inner=True, reordered=True)
def _within(y, largest):
    """Whether all numbers are finite and at most `largest` in size."""
    within = 0.0  # a float, so that the compiler counts several numbers at once
    for i in range(y.size):
        within += 1.0 if abs(y[i]) <= largest else 0.0
    return within == y.size


@njit(inner=True)
def _families(first, at, y, lo, hi, capped, words, out):
    """Fill all families, parents first; return False if a family does not add up.

    Each family moves by the amount at which it adds up, found by Newton's method. If ranges are
    open on one side, the iterates decrease to the solution from the second step on (Michelot 1986);
    otherwise they stay between the last amounts that were too small and too large. The first
    amount is the one without ranges, plus the previous family's excess over it.

    Everything is in one kernel, because passing arrays to another kernel would count references.
    """
    widest = 1
    for k in range(at.size - 1):
        widest = max(widest, first[k + 1] - first[k])
    keys = np.empty(widest if words.size else 1, dtype=np.int64)
    more = 0.0
    for k in range(at.size - 1):
        whole = out[at[k]]
        a, count = np.uint64(first[k]), np.uint64(first[k + 1] - first[k])
        # places after the family are written too, and overwritten later
        m = min((count + np.uint64(_LANES - 1)) & ~np.uint64(_LANES - 1), np.uint64(y.size) - a)
        near, unmoved = _sums(y, a, m, count)
        rest = (whole - near) - unmoved
        mean = rest / count
        by, least, most = mean + more, -np.inf, np.inf
        close = 1e-15 * (count + abs(rest))
        total, moving = _moves(by, y, lo, hi, capped, a, m, count)
        written, put = False, 0.0
        for _ in range(_MOST_STEPS):
            short = rest - total
            if abs(short) <= close:
                break
            if short > 0.0:
                least = by
            else:
                most = by
            after = by + short / moving if moving > 0.0 else np.nan
            if not least < after < most:
                if least > -np.inf and most < np.inf:
                    after = 0.5 * (least + most)
                else:
                    after = _start(by, short, first[k], first[k + 1], y, lo, hi)
            if after in (by, least, most):
                break
            by = after
            total, moving, put = _put(by, y, lo, hi, capped, a, m, count, out)
            written = True
        if not written:
            total, moving, put = _put(by, y, lo, hi, capped, a, m, count, out)
        more = by - mean
        if words.size:
            if not _round(first[k], first[k + 1], whole, by, y, lo, hi, words, keys, out):
                return False
        elif not abs(put - whole) <= 1e-9 * max(abs(whole), 1.0):
            # a place that ends near zero has the rounding errors of its first value
            size = abs(whole)
            for c in range(first[k], first[k + 1]):
                size += abs(y[c]) + abs(out[c])
            # bound for sums of `count` moved values, in any order, fused or not
            if not abs(put - whole) <= (count + 4.0) * 2.0**-50 * size:
                return False
    return True


@njit()
def descend(rows, order, fixed, lo, hi, capped, values, largest, words, z):
    """Fill `z` (n,) family by family, parents first.

    Returns DONE, INFEASIBLE if a root's fixed value is out of its range, INEXACT if a family
    does not add up (to 1e-9 of the sum or the rounding errors of its measurements, and exactly for
    integers), or TOO_LARGE.
    """
    first, at = rows[0], rows[3]
    n = values.size
    integer = words.size > 0
    if not _within(values, largest):
        return TOO_LARGE
    y, out = values, z
    if order.size:
        y, out = np.empty(n), np.empty(n)
        for i in range(n):
            y[i] = values[order[i]]
    for c in range(first[0]):
        value = y[c]
        if fixed[c]:
            if not lo[c] <= value <= hi[c]:
                return INFEASIBLE
        elif integer:
            value = np.floor(y[c])
            part = y[c] - value
            if part > 0.5 or (part == 0.5 and words[c] & np.uint64(1)):
                value += 1.0
        out[c] = min(max(value, lo[c]), hi[c])
    if not _families(first, at, y, lo, hi, capped, words, out):
        return INEXACT
    if order.size:
        for i in range(n):
            z[order[i]] = out[i]
    return DONE
