"""The closest point of a tree in L2, by Newton's method on the prices of its sums.

Benchmark row: `imaging`.

Places and families are those of `levels`. A leaf whose family has price `p` takes the value
``clip(y + give * p, lo, hi)``, with `give` one over its weight. Given the values that are at a
bound, all prices follow from one pass up and one pass down over the parents; the leaves are read
once in each iteration. Values are relative to integers near `y`, so that rounding errors have the
size of the noise.
"""

from __future__ import annotations

import numpy as np

from congenial.kernels.numerics.compiling import njit

# Kinds of a parent's own value: free, equal to its measurement, or at a bound.
FREE, FIXED, AT_LO, AT_HI = 0, 1, 2, 3
# Rows of the arrays `rows`, `leaf`, `inner` and `state`. Kernels index them directly, because a
# view of a row costs more than the work of a short family.
FIRST, SPLIT, BELOW, AT = 0, 1, 2, 3
GIVE, LO, HI = 0, 1, 2
WEIGHT, LOW, HIGH, KIND = 0, 1, 2, 3
NEAR, OWN, OFFSET, SLOPE, PRICE, VALUE, OUTER, MEAN = 0, 1, 2, 3, 4, 5, 6, 7
STIFF, START, GROW, SEEN, UNMOVED, STATE = 8, 9, 10, 11, 12, 13


@njit(inner=True, reordered=True)
def _moves(price, begin, end, y, leaf):
    """Total move of the leaves at a price, and its derivative."""
    total, slope = 0.0, 0.0
    # unsigned, so that no index is checked for being negative
    for c in range(np.uint64(begin), np.uint64(end)):
        free = price * leaf[GIVE, c]
        low, high = leaf[LO, c] - y[c], leaf[HI, c] - y[c]
        move = max(free, low)
        move = min(move, high)
        total += move
        slope += leaf[GIVE, c] if move == free else 0.0
    return total, slope


@njit(inner=True, reordered=True)
def _first(begin, end, y, leaf, largest):
    """Return sums over leaves at price 0, and the number of bad leaves.

    The sums are those of the near integers, of the remainders, of moves and their derivative as in
    `_moves`, and of `give`.
    """
    whole, rest, total, slope, grows, good = 0.0, 0.0, 0.0, 0.0, 0.0, 0
    for c in range(np.uint64(begin), np.uint64(end)):
        near = np.rint(y[c])
        left = y[c] - near
        whole += near
        # always below 1; without min(), reordering would take the difference apart
        rest += min(1.0, left)
        move = max(0.0, leaf[LO, c] - y[c])
        move = min(move, leaf[HI, c] - y[c])
        total += move
        slope += leaf[GIVE, c] if move == 0.0 else 0.0
        grows += leaf[GIVE, c]
        kept = (leaf[LO, c] <= y[c]) & (y[c] <= leaf[HI, c])
        good += (abs(y[c]) <= largest) & (kept | (leaf[GIVE, c] > 0.0))
    return whole, rest, total, slope, grows, end - begin - good


@njit(inner=True)
def _start(rows, y, leaf, inner, held, largest, state):
    """Set up each parent; return the largest number, or nan if a number is bad.

    Leaves that are at a bound at price 0 start there, unless all leaves of the family are. The
    integer near a parent is the sum of the integers near its children. A number is bad if it
    exceeds `largest`, or is fixed and outside its bounds.
    """
    size = 1.0
    for k in range(rows.shape[1] - 2, -1, -1):
        a, b = rows[FIRST, k], rows[SPLIT, k]
        whole, rest, total, slope, grows, bad = _first(a, b, y, leaf, largest)
        sound = bad == 0
        for j in range(rows[BELOW, k], rows[BELOW, k + 1]):
            whole += state[NEAR, j]
        if slope == 0.0:
            total, slope = 0.0, grows
        state[NEAR, k], state[UNMOVED, k] = whole, rest
        state[OFFSET, k], state[SLOPE, k] = rest + total, slope
        state[OWN, k], state[PRICE, k] = 0.0, 0.0
        if held[k] == FIXED or inner[WEIGHT, k] > 0.0:
            state[OWN, k] = y[rows[AT, k]] - whole
            sound &= abs(y[rows[AT, k]]) <= largest
            sound &= held[k] == FREE or inner[LOW, k] <= y[rows[AT, k]] <= inner[HIGH, k]
            size = max(size, abs(state[OWN, k]))
        if not sound:
            return np.nan
    return size


@njit(inner=True)
def _prices(rows, inner, held, state):
    """Set the price and the value of each parent, given what is at a bound (Hay et al. 2010).

    The leaves of family k add up to ``offset + slope * price``; below parent k the cost of a value
    z is ``stiff / 2 * (z - mean)**2``. Returns the largest error of the sums of fixed values.
    """
    apart = 0.0
    for k in range(rows.shape[1] - 2, -1, -1):
        base, rate = state[OFFSET, k], state[SLOPE, k]
        for j in range(rows[BELOW, k], rows[BELOW, k + 1]):
            base += state[MEAN, j]
            rate += 1.0 / state[STIFF, j]
        state[START, k], state[GROW, k] = base, rate
        if held[k] == FREE and rate > 0.0:
            state[STIFF, k] = inner[WEIGHT, k] + 1.0 / rate
            state[MEAN, k] = base + (inner[WEIGHT, k] / state[STIFF, k]) * (state[OWN, k] - base)
        else:
            state[STIFF, k] = np.inf
            if held[k] == FREE:
                state[MEAN, k] = base
            elif held[k] == FIXED:
                state[MEAN, k] = state[OWN, k]
            else:
                bound = inner[LOW, k] if held[k] == AT_LO else inner[HIGH, k]
                state[MEAN, k] = bound - state[NEAR, k]
    for k in range(rows[BELOW, 0]):
        state[VALUE, k], state[OUTER, k] = state[MEAN, k], 0.0
    for k in range(rows.shape[1] - 1):
        if state[GROW, k] > 0.0:
            state[PRICE, k] = (state[VALUE, k] - state[START, k]) / state[GROW, k]
        elif held[k] == FREE:
            state[PRICE, k] = state[OUTER, k] - inner[WEIGHT, k] * (state[VALUE, k] - state[OWN, k])
        else:
            apart = max(apart, abs(state[VALUE, k] - state[START, k]))
        for j in range(rows[BELOW, k], rows[BELOW, k + 1]):
            state[VALUE, j] = state[MEAN, j] + state[PRICE, k] / state[STIFF, j]
            state[OUTER, j] = state[PRICE, k]
    return apart


@njit(inner=True)
def _farthest(rows, y, leaf, state):
    """Largest total move of the leaves of a family.

    Their sum is rounded at most once for each leaf, in any order. Leaves can move far even if
    their parent does not.
    """
    most = 0.0
    for k in range(rows.shape[1] - 1):
        moved = 0.0
        for c in range(rows[FIRST, k], rows[SPLIT, k]):
            move = max(state[PRICE, k] * leaf[GIVE, c], leaf[LO, c] - y[c])
            moved += abs(min(move, leaf[HI, c] - y[c]))
        most = max(most, moved)
    return most


@njit(inner=True)
def _pull(k, inner, state):
    """Gradient of the distance if the value of parent k increases, with its sign changed."""
    own = inner[WEIGHT, k] * (state[VALUE, k] - state[OWN, k])
    return float(state[OUTER, k] - state[PRICE, k] - own)


@njit(inner=True)
def _hold(inner, held, state):
    """Fix parents that crossed a bound, free parents that pull away; return if any changed."""
    changed = False
    for k in range(held.size):
        now = held[k]
        if now == FREE:
            if state[VALUE, k] < inner[LOW, k] - state[NEAR, k]:
                held[k] = AT_LO
            elif state[VALUE, k] > inner[HIGH, k] - state[NEAR, k]:
                held[k] = AT_HI
        elif now != FIXED:
            pull = _pull(k, inner, state)
            if (pull > 0.0) == (now == AT_LO) and pull != 0.0:
                held[k] = FREE
        changed |= held[k] != now
    return changed


@njit(inner=True)
def _residual(inner, held, state):
    """Worst violation of the optimality conditions at the parents, except for the sums."""
    worst = 0.0
    for k in range(held.size):
        if held[k] == FIXED:
            continue
        outside = max(
            inner[LOW, k] - state[NEAR, k] - state[VALUE, k],
            state[VALUE, k] - (inner[HIGH, k] - state[NEAR, k]),
        )
        pull = _pull(k, inner, state)
        if held[k] == FREE:
            pull = abs(pull)
        elif held[k] == AT_HI:
            pull = -pull
        worst = max(worst, outside, pull)
    return worst


@njit(inner=True)
def _apart(rows, leaf, y, state, z, whole):
    """Fill `whole` and `z` by place."""
    for c in range(rows[FIRST, 0]):
        whole[c] = np.rint(y[c])
        z[c] = min(max(y[c], leaf[LO, c]), leaf[HI, c]) - whole[c]
    for k in range(rows.shape[1] - 1):
        whole[rows[AT, k]], z[rows[AT, k]] = state[NEAR, k], state[VALUE, k]
        for c in range(rows[FIRST, k], rows[SPLIT, k]):
            rounded = np.rint(y[c])
            moved_to = (y[c] - rounded) + state[PRICE, k] * leaf[GIVE, c]
            whole[c] = rounded
            z[c] = min(max(moved_to, leaf[LO, c] - rounded), leaf[HI, c] - rounded)


@njit(inner=True)
def _put(price, begin, end, y, leaf, z):
    """Write the leaves of a family at a price."""
    for c in range(np.uint64(begin), np.uint64(end)):
        z[c] = min(max(y[c] + price * leaf[GIVE, c], leaf[LO, c]), leaf[HI, c])


@njit()
def solve(rows, order, leaf, inner, values, largest, limit, out):
    """Fill `out` with the point closest to `values` (n,), which is only read.

    Returns residual of the optimality conditions, relative to the largest number or to how far
    the leaves of a family move. If it is infinite, no solution was found and `out` is not filled.
    """
    n, m = values.size, inner.shape[1]
    y = values
    if order.size:
        y = np.empty(n)
        for i in range(n):
            y[i] = values[order[i]]
    state = np.empty((STATE, m))
    held = np.empty(m, dtype=np.int8)
    for k in range(m):
        held[k] = FIXED if inner[KIND, k] == FIXED else FREE
    size = _start(rows, y, leaf, inner, held, largest, state)
    bounded = False
    for k in range(m):
        state[SEEN, k] = -1.0
        bounded |= held[k] == FREE and (inner[LOW, k] > -np.inf or inner[HIGH, k] < np.inf)
    for c in range(rows[FIRST, 0]):
        if not abs(y[c]) <= largest or (
            leaf[GIVE, c] == 0.0 and not leaf[LO, c] <= y[c] <= leaf[HI, c]
        ):
            size = np.inf
    if not size < np.inf:
        return np.inf
    off = np.inf
    for _ in range(limit):
        apart = _prices(rows, inner, held, state)
        if apart > 1e-12 * size:
            size = max(size, _farthest(rows, y, leaf, state))
            if apart > 1e-12 * size:
                return np.inf
        changed = bounded and _hold(inner, held, state)
        same, off = True, 0.0
        for k in range(m):
            a, b = rows[FIRST, k], rows[SPLIT, k]
            total, grows = _moves(state[PRICE, k], a, b, y, leaf)
            total += state[UNMOVED, k]
            state[OFFSET, k], state[SLOPE, k] = total - grows * state[PRICE, k], grows
            for j in range(rows[BELOW, k], rows[BELOW, k + 1]):
                total += state[VALUE, j]
            off = max(off, abs(total - state[VALUE, k]))
            size = max(size, abs(state[VALUE, k]))
            same &= grows == state[SEEN, k]
            state[SEEN, k] = grows
        # a leaf at a bound with price 0 may enter and leave the active set by rounding
        if not changed and (same or off <= 1e-14 * size):
            break
    off = max(off, _residual(inner, held, state))
    if not off <= 1e-9 * size:
        size = max(size, _farthest(rows, y, leaf, state))
        if not off <= 1e-9 * size:
            return np.inf
    if out.shape[0] > 1:
        _apart(rows, leaf, y, state, out[0], out[1])
        return off / size
    z = y if order.size else out[0]  # values in another order were copied
    _put(0.0, 0, rows[FIRST, 0], y, leaf, z)
    for k in range(m):
        z[rows[AT, k]] = state[VALUE, k] + state[NEAR, k]
        _put(state[PRICE, k], rows[FIRST, k], rows[SPLIT, k], y, leaf, z)
    if order.size:
        for i in range(n):
            out[0, order[i]] = z[i]
    return off / size
