"""Project each family onto its parent's value, from the top of a forest down (Abowd et al. 2022).

Benchmark row: `topdown`.

Places and families are those of `levels`. A family is moved to the closest point whose values add
up and stay in their ranges: all move by one amount, except values at an end of their range.
Values are relative to integers near them, so that rounding errors have the size of the noise.
"""

from __future__ import annotations

import numpy as np

from congenial.kernels.numerics.compiling import njit

DONE, INFEASIBLE, INEXACT, TOO_LARGE = 0, 1, 2, 3
# Most Newton steps of a family.
_MOST_STEPS = 400
# Places processed at once; some may lie beyond the end of a family.
_LANES = 8
# Places that share a random word; each has 16 bits of it, the first the lowest ones.
SHARED = 4
# Steps of a remainder in a unit.
_STEPS = 2.0**20
# Guesses before the search for the remainders that get a unit looks at the remainders themselves.
_GUESSES = 3


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
def _padded(a, count, y):
    """Round a family up to whole lanes: places after it are written too, and overwritten later."""
    return min((count + np.uint64(_LANES - 1)) & ~np.uint64(_LANES - 1), np.uint64(y.size) - a)


@njit(inner=True)
def _floors(by, grid, y, lo, hi, capped, a, m, out, parts):
    """Write the integers below all m moved places, and their remainders in steps of `grid`."""
    steps = 1.0 / grid
    for i in range(m):
        near = np.rint(y[a + i])
        value = max((y[a + i] - near) + by, lo[a + i] - near)
        if capped:
            value = min(value, hi[a + i] - near)
        floor = np.floor(value + 0.5 * grid)
        out[a + i] = floor + near
        parts[i] = np.rint((value - floor) * steps)


@njit(inner=True, reordered=True)
def _taken(out, a, m, k):
    """Sum of the first k of m integers from a on, and of their sizes."""
    total, size = 0.0, 0.0
    for i in range(m):
        value = out[a + i] if i < k else 0.0
        total += value
        size += abs(value)
    return total, size


@njit(inner=True, reordered=True)
def _reaching(least, parts, m, k):
    """How many of the first k of m remainders are at least `least`."""
    count = 0.0  # a float, so that the compiler counts several numbers at once
    for i in range(m):
        count += 1.0 if i < k and parts[i] >= least else 0.0
    return count


@njit(inner=True)
def _least_up(units, positive, parts, m, k):
    """Find which of the first k of m remainders are rounded up, if `units` of them are.

    `positive` remainders may be. Returns the least remainder that is rounded up in any case, how
    many are, and how many of the next smaller ones share what is left: 0 if nothing is.

    Remainders are counted from a guess on, as if they were evenly spread, until `units` are found.
    `low` is reached by `many`, more than `units`, and `high` by `few`, fewer than `units`.
    """
    if units == 0.0:
        return _STEPS + 1.0, units, 0.0
    if units == positive:
        return 1.0, units, 0.0
    low, many, high, few, tries = 1.0, positive, _STEPS + 1.0, 0.0, 0
    while True:
        tries += 1
        if tries > _GUESSES or k <= _LANES:
            # of few or equal remainders most guesses miss all: the ends move to remainders
            least, most = high, low
            for i in range(k):
                if low <= parts[i] < high:
                    least, most = min(least, parts[i]), max(most, parts[i])
            low, high = least, most + 1.0
        if high - low <= 1.0:
            return high, few, many - few
        # every few guesses halve the range, in case the spread is far from even
        share = 0.5 if tries % _GUESSES == 0 else (units - few) / (many - few)
        guess = np.floor(high - share * (high - low))
        guess = min(max(guess, low + 1.0), high - 1.0)
        count = _reaching(guess, parts, m, k)
        if count == units:
            return guess, units, 0.0
        if count > units:
            low, many = guess, count
        else:
            high, few = guess, count


@njit(inner=True)
def _share_of(words, c):
    """Return the 16 random bits of place c."""
    return (words[c >> 2] >> np.uint64((c & 3) << 4)) & np.uint64(0xFFFF)


@njit(inner=True)
def _deal(units, count, least, a, k, words, tied, parts, out):
    """Give `units` to as many of the `count` places from a on with the largest remainder below.

    Every choice is equally likely, but for 2^-32 a unit: a place is drawn among those left, with
    32 bits. Either the places that get a unit are drawn or those that get none, whichever are
    fewer, so that 16 bits a place suffice.
    """
    found = 0
    for i in range(k):
        if parts[i] == least - 1.0:
            tied[found] = i
            found += 1
    drawn, step = units, 1.0
    if 2 * units > count:
        drawn, step = count - units, -1.0
        for j in range(count):
            out[a + tied[j]] += 1.0
    for j in range(drawn):
        bits = _share_of(words, a + 2 * j) << np.uint64(16)
        bits |= _share_of(words, a + 2 * j + 1)
        other = j + np.int64((bits * np.uint64(count - j)) >> np.uint64(32))
        place = tied[other]
        tied[other] = tied[j]
        out[a + place] += step


@njit(inner=True)
def _round(a, k, whole, by, y, lo, hi, capped, words, parts, tied, out):
    """Round k moved places from a on to integers of sum `whole`.

    The largest remainders get the units. Those that differ by less than 2^-20, or by less than the
    resolution of a large move, are equal and draw lots with `words`. False if the number of units
    is negative or exceeds the number of remainders.
    """
    grid = 1.0 / _STEPS
    while abs(by) > grid * 2.0**46:
        grid *= 2.0
    m = _padded(a, k, y)
    _floors(by, grid, y, lo, hi, capped, a, m, out, parts)
    taken, size = _taken(out, a, m, k)
    units = whole - taken
    if not size < 2.0**53:
        # sums beyond are rounded, and must not depend on the order that the processor prefers
        units = whole
        for i in range(k):
            units -= out[a + i]
    positive = _reaching(1.0, parts, m, k)
    if not 0.0 <= units <= positive:
        return False
    least, up, shared = _least_up(units, positive, parts, m, k)
    for i in range(k):
        out[a + i] += 1.0 if parts[i] >= least else 0.0
    if shared > 0.0:
        begin = np.int64(a)
        _deal(int(units - up), int(shared), least, begin, k, words, tied, parts, out)
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
    parts = np.empty(widest + _LANES if words.size else 0)
    tied = np.empty(widest if words.size else 0, dtype=np.int64)
    more = 0.0
    for k in range(at.size - 1):
        whole = out[at[k]]
        a, count = np.uint64(first[k]), np.uint64(first[k + 1] - first[k])
        m = _padded(a, count, y)
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
            if not _round(a, count, whole, by, y, lo, hi, capped, words, parts, tied, out):
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

    Values are rounded to integers if there are `words`, of which `SHARED` places share one. Returns
    DONE, INFEASIBLE if a root's fixed value is out of its range, INEXACT if a family
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
            if part > 0.5 or (part == 0.5 and _share_of(words, c) & np.uint64(1)):
                value += 1.0
        out[c] = min(max(value, lo[c]), hi[c])
    if not _families(first, at, y, lo, hi, capped, words, out):
        return INEXACT
    if order.size:
        for i in range(n):
            z[order[i]] = out[i]
    return DONE
