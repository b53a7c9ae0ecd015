"""Split one sum: the values within their ranges that are closest to preferred values."""

from __future__ import annotations

import numpy as np

from congenial.kernels.numerics.compiling import njit


@njit(inner=True)
def _shift(total, low, high, prefer):
    """The t at which the sum of ``clip(prefer + t, low, high)`` is `total`; arrays (k,).

    The 2k points at which an entry starts or stops moving are sorted.
    """
    k = low.size
    knots, turns = np.empty(2 * k), np.empty(2 * k, dtype=np.int64)
    count, moving, fixed = 0, 0, 0.0
    for i in range(k):
        if low[i] == -np.inf:
            moving += 1
            fixed += prefer[i]
        else:
            fixed += low[i]
            knots[count], turns[count] = low[i] - prefer[i], 1
            count += 1
        if high[i] < np.inf:
            knots[count], turns[count] = high[i] - prefer[i], -1
            count += 1
    # left of the first knot the sum is fixed + moving * t
    if count == 0:
        return (total - fixed) / moving
    order = np.argsort(knots[:count])
    t = knots[order[0]]
    value = fixed + moving * t
    for i in range(count):
        ahead = moving * (knots[order[i]] - t)
        if value + ahead >= total:
            t = knots[order[i]]
            return float(t if moving == 0 else t + (total - value - ahead) / moving)
        value += ahead
        t = knots[order[i]]
        moving += turns[order[i]]
    return float(t if moving == 0 else t + (total - value) / moving)


@njit(inner=True)
def total_of(values):
    """Sum with the rounding errors carried along (Neumaier 1974)."""
    total, lost = 0.0, 0.0
    for value in values:
        after = total + value
        if abs(total) >= abs(value):
            lost += (total - after) + value
        else:
            lost += (value - after) + total
        total = after
    return total + lost


@njit(inner=True)
def _moved(base, t, low, high):
    total = 0.0
    for i in range(base.size):
        total += min(max(base[i] + t, low[i]), high[i])
    return total


@njit()
def fill(members, total, low, high, prefer, words, z):
    """Set ``z[members]`` within [low, high] with sum `total`, all moved equally from `prefer`.

    With `words`, one uint64 for each node, low, high and total are integers, and so are the values;
    remaining units go to the tied members with the smallest words.
    """
    tied = np.empty(members.size, dtype=np.int64)
    k = 0
    rest = total
    for c in members:
        if low[c] < high[c]:
            tied[k] = c
            k += 1
        else:
            z[c] = low[c]
            rest -= low[c]
    if k == 0:
        return
    tied = tied[:k]
    a, b, base = low[tied], high[tied], prefer[tied]
    if words.size == 0:
        t = _shift(rest, a, b, base)
        # repeated twice from the result: only the rounding error of t remains
        for _ in range(3):
            moving = 0
            for i in range(k):
                base[i] = min(max(base[i] + t, a[i]), b[i])
                moving += a[i] < base[i] < b[i]
            z[tied] = base
            missed = total - total_of(z[members])
            if missed == 0.0 or moving == 0:
                break
            t = missed / moving
        return
    base = np.floor(base)
    t = np.floor(_shift(rest, a, b, base))
    # by rounding, t can be off by one in either direction
    if _moved(base, t, a, b) > rest:
        t -= 1.0
    elif _moved(base, t + 1.0, a, b) <= rest:
        t += 1.0
    ready = np.empty(k, dtype=np.int64)
    count = 0
    for i in range(k):
        c = tied[i]
        z[c] = min(max(base[i] + t, a[i]), b[i])
        rest -= z[c]
        if a[i] <= base[i] + t < b[i]:
            ready[count] = c
            count += 1
    order = np.argsort(words[ready[:count]])
    for i in range(min(count, int(rest))):
        z[ready[order[i]]] += 1.0
