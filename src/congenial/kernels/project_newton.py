"""The closest point of a tree in L2, by Newton's method on the prices of its sums.

Places and families are those of `project_levels`. A leaf whose family has price `p` takes the value
``clip(y + give * p, lo, hi)``, with `give` one over its weight. Once it is said which values are at
a bound, all prices follow from one pass up and one pass down over the parents alone; the leaves are
read once an iteration. Values are relative to whole numbers near `y`, so that rounding errors are
of the size of the noise.
"""

from __future__ import annotations

import numpy as np

from congenial.kernels.compiling import njit

# Where a parent's own value is: free, equal to its measurement, or held at a bound.
FREE, FIXED, AT_LO, AT_HI = 0, 1, 2, 3


@njit(inner=True, reordered=True)
def _moves(
    price: float, begin: int, end: int, y: np.ndarray, leaf: np.ndarray
) -> tuple[float, float]:
    """Sum of how far leaves move at a price, and how fast it grows with the price."""
    total, slope = 0.0, 0.0
    give, lo, hi = leaf[0], leaf[1], leaf[2]
    # unsigned, so that no index is tried for being negative
    for c in range(np.uint64(begin), np.uint64(end)):
        free = price * give[c]
        low, high = lo[c] - y[c], hi[c] - y[c]
        move = max(free, low)
        move = min(move, high)
        total += move
        slope += give[c] if move == free else 0.0
    return total, slope


@njit(inner=True, reordered=True)
def _first(
    begin: int, end: int, y: np.ndarray, leaf: np.ndarray, largest: float
) -> tuple[float, float, float, int]:
    """Sums of the whole numbers near leaves, of what they leave and of `give`; how many are bad."""
    whole, rest, grows, good = 0.0, 0.0, 0.0, 0
    give, lo, hi = leaf[0], leaf[1], leaf[2]
    for c in range(np.uint64(begin), np.uint64(end)):
        near = np.rint(y[c])
        left = y[c] - near
        whole += near
        # never so large, but sums in any order would take the difference apart
        rest += min(1.0, left)
        grows += give[c]
        kept = (lo[c] <= y[c]) & (y[c] <= hi[c])
        good += (abs(y[c]) <= largest) & (kept | (give[c] > 0.0))
    return whole, rest, grows, end - begin - good


@njit(inner=True)
def _start(
    rows: np.ndarray,
    y: np.ndarray,
    leaf: np.ndarray,
    inner: np.ndarray,
    held: np.ndarray,
    largest: float,
    state: np.ndarray,
) -> float:
    """Set up each parent with no leaf at a bound; return the largest number, nan where one is bad.

    The whole number near a parent is the sum of those near its children. A number is bad that is
    beyond `largest`, or is to be kept and outside its own bounds.
    """
    weight, low, high = inner[0], inner[1], inner[2]
    first, split, below, at = rows[0], rows[1], rows[2], rows[3]
    near, own, offset, slope, price = state[0], state[1], state[2], state[3], state[4]
    unmoved = state[12]
    size = 1.0
    for k in range(below.size - 2, -1, -1):
        a, b = first[k], split[k]
        whole, total, grows, bad = _first(a, b, y, leaf, largest)
        sound = bad == 0
        for j in range(below[k], below[k + 1]):
            whole += near[j]
        near[k], offset[k], unmoved[k], slope[k] = whole, total, total, grows
        own[k], price[k] = 0.0, 0.0
        if held[k] == FIXED or weight[k] > 0.0:
            own[k] = y[at[k]] - whole
            sound &= abs(y[at[k]]) <= largest
            sound &= held[k] == FREE or low[k] <= y[at[k]] <= high[k]
            size = max(size, abs(own[k]))
        if not sound:
            return np.nan
    return size


@njit(inner=True)
def _prices(
    below: np.ndarray,
    inner: np.ndarray,
    held: np.ndarray,
    size: float,
    state: np.ndarray,
) -> bool:
    """Set the price and the value of each parent, given what is at a bound (Hay et al. 2010).

    The leaves of family k add up to ``offset + slope * price``; below parent k the cost of a value
    z is ``stiff / 2 * (z - mean)**2``. False where what is held does not add up.
    """
    weight, low, high = inner[0], inner[1], inner[2]
    near, own, offset, slope, price = state[0], state[1], state[2], state[3], state[4]
    value, outer, mean, stiff, start, grow = (
        state[5],
        state[6],
        state[7],
        state[8],
        state[9],
        state[10],
    )
    for k in range(below.size - 2, -1, -1):
        base, rate = offset[k], slope[k]
        for j in range(below[k], below[k + 1]):
            base += mean[j]
            rate += 1.0 / stiff[j]
        start[k], grow[k] = base, rate
        if held[k] == FREE and rate > 0.0:
            stiff[k] = weight[k] + 1.0 / rate
            mean[k] = base + (weight[k] / stiff[k]) * (own[k] - base)
        else:
            stiff[k] = np.inf
            if held[k] == FREE:
                mean[k] = base
            elif held[k] == FIXED:
                mean[k] = own[k]
            else:
                mean[k] = (low[k] if held[k] == AT_LO else high[k]) - near[k]
    for k in range(below[0]):
        value[k], outer[k] = mean[k], 0.0
    for k in range(below.size - 1):
        if grow[k] > 0.0:
            price[k] = (value[k] - start[k]) / grow[k]
        elif held[k] == FREE:
            price[k] = outer[k] - weight[k] * (value[k] - own[k])
        elif abs(value[k] - start[k]) > 1e-12 * size:
            return False
        for j in range(below[k], below[k + 1]):
            value[j] = mean[j] + price[k] / stiff[j]
            outer[j] = price[k]
    return True


@njit(inner=True)
def _hold(inner: np.ndarray, held: np.ndarray, state: np.ndarray) -> bool:
    """Hold parents that have crossed a bound, free those that pull away; whether any changed."""
    weight, low, high = inner[0], inner[1], inner[2]
    near, own, price, value, outer = state[0], state[1], state[4], state[5], state[6]
    changed = False
    for k in range(held.size):
        now = held[k]
        if now == FREE:
            if value[k] < low[k] - near[k]:
                held[k] = AT_LO
            elif value[k] > high[k] - near[k]:
                held[k] = AT_HI
        elif now != FIXED:
            pull = outer[k] - price[k] - weight[k] * (value[k] - own[k])
            if (pull > 0.0) == (now == AT_LO) and pull != 0.0:
                held[k] = FREE
        changed |= held[k] != now
    return changed


@njit(inner=True)
def _residual(inner: np.ndarray, held: np.ndarray, state: np.ndarray) -> float:
    """Worst violation of the conditions of optimality at the parents, but for the sums."""
    weight, low, high = inner[0], inner[1], inner[2]
    near, own, price, value, outer = state[0], state[1], state[4], state[5], state[6]
    worst = 0.0
    for k in range(held.size):
        if held[k] == FIXED:
            continue
        outside = max(low[k] - near[k] - value[k], value[k] - (high[k] - near[k]))
        pull = outer[k] - price[k] - weight[k] * (value[k] - own[k])
        if held[k] == FREE:
            pull = abs(pull)
        elif held[k] == AT_HI:
            pull = -pull
        worst = max(worst, outside, pull)
    return worst


@njit(inner=True)
def _apart(
    rows: np.ndarray,
    leaf: np.ndarray,
    y: np.ndarray,
    state: np.ndarray,
    z: np.ndarray,
    whole: np.ndarray,
) -> None:
    """Fill `whole` and `z` by place."""
    first, split, at = rows[0], rows[1], rows[3]
    give, lo, hi = leaf[0], leaf[1], leaf[2]
    near, price, value = state[0], state[4], state[5]
    for c in range(first[0]):
        whole[c] = np.rint(y[c])
        z[c] = min(max(y[c], lo[c]), hi[c]) - whole[c]
    for k in range(at.size - 1):
        whole[at[k]], z[at[k]] = near[k], value[k]
        for c in range(first[k], split[k]):
            rounded = np.rint(y[c])
            moved_to = (y[c] - rounded) + price[k] * give[c]
            whole[c], z[c] = rounded, min(max(moved_to, lo[c] - rounded), hi[c] - rounded)


@njit()
def solve(
    rows: np.ndarray,
    order: np.ndarray,
    leaf: np.ndarray,
    inner: np.ndarray,
    values: np.ndarray,
    largest: float,
    limit: int,
    out: np.ndarray,
) -> float:
    """Fill `out` with the point closest to `values` (n,), which is only read.

    Parameters
    ----------
    rows : first, split, below and at, from `lay_out`
    order : the node at each place; empty where that is the place's own number
    leaf : give, lo and hi of each place; give is 0 for one that keeps its value
    inner : weight, lo, hi and kind, FREE or FIXED, of each parent; bounds are infinite where those
        below imply them
    largest : numbers beyond it are refused
    limit : most iterations
    out : one row (1, n), the point by node; or two, what is left of it and the whole numbers near
        it, both by place

    Returns
    -------
    float
        Residual of the conditions of optimality relative to the largest number; infinite where
        none was reached, and `out` is not filled then.
    """
    first, split, below, at = rows[0], rows[1], rows[2], rows[3]
    give, lo, hi = leaf[0], leaf[1], leaf[2]
    n, m = values.size, inner.shape[1]
    y = values
    if order.size:
        y = np.empty(n)
        for i in range(n):
            y[i] = values[order[i]]
    state = np.empty((13, m))
    near, offset, slope, price, value = state[0], state[2], state[3], state[4], state[5]
    seen, unmoved = state[11], state[12]
    held = np.empty(m, dtype=np.int8)
    for k in range(m):
        held[k] = FIXED if inner[3, k] == FIXED else FREE
    size = _start(rows, y, leaf, inner, held, largest, state)
    bounded = False
    for k in range(m):
        seen[k] = -1.0
        bounded |= held[k] == FREE and (inner[1, k] > -np.inf or inner[2, k] < np.inf)
    for c in range(first[0]):
        if not abs(y[c]) <= largest or (give[c] == 0.0 and not lo[c] <= y[c] <= hi[c]):
            size = np.inf
    if not size < np.inf:
        return np.inf
    off = np.inf
    for _ in range(limit):
        if not _prices(below, inner, held, size, state):
            return np.inf
        changed = bounded and _hold(inner, held, state)
        same, off = True, 0.0
        for k in range(m):
            a, b = first[k], split[k]
            total, grows = _moves(price[k], a, b, y, leaf)
            total += unmoved[k]
            offset[k], slope[k] = total - grows * price[k], grows
            for j in range(below[k], below[k + 1]):
                total += value[j]
            off = max(off, abs(total - value[k]))
            size = max(size, abs(value[k]))
            same &= grows == seen[k]
            seen[k] = grows
        # a leaf that a bound does not push comes and goes by rounding errors
        if not changed and (same or off <= 1e-14 * size):
            break
    off = max(off, _residual(inner, held, state))
    if not off <= 1e-9 * size:
        return np.inf
    if out.shape[0] > 1:
        _apart(rows, leaf, y, state, out[0], out[1])
        return off / size
    z = out[0]
    for c in range(first[0]):
        v = order[c] if order.size else c
        z[v] = min(max(y[c], lo[c]), hi[c])
    for k in range(m):
        v = order[at[k]] if order.size else at[k]
        z[v] = value[k] + near[k]
        for c in range(first[k], split[k]):
            v = order[c] if order.size else c
            z[v] = min(max(y[c] + price[k] * give[c], lo[c]), hi[c])
    return off / size
