"""The closest table of cells on a tree of areas in L2, under bounds, by an interior-point method.

Benchmark row: `cells`.

Every node of a tree has a vector of cells; an inner node's is the sum of its children's. Rows are
sums of a node's cells and may cross. They have measurements with weights, bounds, and fixed values.
Each Newton step eliminates from the leaves up: a node's precision is that of its own rows plus the
inverse of the sum of its children's inverse precisions. A family whose parent's cells are given is
the tree of depth two whose root is `fixed`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from congenial.kernels.numerics.compiling import njit

# Fraction of the distance to the nearest bound that a step takes.
_NEAR = 0.995
# One over the penalty weight of a fixed value. Prices correct the remaining violation: each solve
# leaves at most M * _GIVE of it, because the heaviest row has weight 1.
_GIVE = 1e-4
# Duality gap, violation and slope, relative to the largest first violation, below which the binding
# rows are guessed.
_GAP = 1e-5
# Factor by which the gap must fall before they are guessed again.
_AGAIN = 1e-2
# Most corrections of the binding rows.
_MOST_TURNS = 12
# Most solves for each set of binding rows.
_REPEATS = 6
# Weight on all cells, so that no pivot is zero; the heaviest row has weight 1.
_RIDGE = 1e-13


class Fit(NamedTuple):
    """One tree to fit: V nodes, parents first; K cells; Q rows, the cells first."""

    parent: np.ndarray  # shape (V,)
    of: np.ndarray  # shape (K, M): The row of each cell in each margin; the first are the cells.
    weight: np.ndarray  # shape (V, Q)
    target: np.ndarray  # shape (V, Q)
    low: np.ndarray  # shape (V, Q): Infinite without a bound.
    high: np.ndarray  # shape (V, Q)
    held: np.ndarray  # shape (V, Q): Whether a row is fixed at its target.
    free: np.ndarray  # shape (V, K): Whether a leaf's cell may change.


class Point(NamedTuple):
    """An iterate: rows, rooms to bounds and prices of these, lower ones first; shapes (2, V, Q)."""

    at: np.ndarray  # shape (V, Q): The rows' values.
    price: np.ndarray  # shape (V, Q): Prices of fixed values.
    room: np.ndarray
    cost: np.ndarray
    room_step: np.ndarray
    cost_step: np.ndarray


class Room(NamedTuple):
    """Workspace of one tree."""

    inner: np.ndarray  # shape (V,): Whether a node has children.
    tall: np.ndarray  # shape (19, V, Q)
    wide: np.ndarray  # shape (3, V, K)
    inverse: np.ndarray  # shape (V, K, K): One over the precision of each node.
    spread: np.ndarray  # shape (V, K, K): One over the sum of the children's inverse precisions.
    square: np.ndarray  # shape (2, K, K)


@njit(inner=True)
def with_children(parent):
    """Whether each node has children; the first node is the root."""
    inner = np.zeros(parent.size, dtype=np.bool_)
    for v in range(1, parent.size):
        inner[parent[v]] = True
    return inner


@njit(inner=True, reordered=True)
def _dot(a, i, b, j, start, stop):
    """Product of parts of rows of two matrices."""
    total = 0.0
    for p in range(start, stop):
        total += a[i, p] * b[j, p]
    return total


@njit(inner=True)
def _invert(a, lower, upper):
    """Invert a symmetric matrix in place by Cholesky's factors; False if it is not positive."""
    n = a.shape[0]
    for i in range(n):
        for j in range(i):
            lower[i, j] = (a[i, j] - _dot(lower, i, lower, j, 0, j)) / lower[j, j]
        pivot = a[i, i] - _dot(lower, i, lower, i, 0, i)
        if not pivot > 0.0:
            return False
        lower[i, i] = np.sqrt(pivot)
    for i in range(n):
        upper[i, i] = 1.0 / lower[i, i]
        for j in range(i):
            upper[j, i] = -_dot(lower, i, upper, j, j, i) / lower[i, i]
    for i in range(n):
        for j in range(i + 1):
            a[i, j] = _dot(upper, i, upper, j, i, n)
            a[j, i] = a[i, j]
    return True


@njit(inner=True)
def _sum_up(of, cells, rows):
    """Set the rows of one node to the sums of its cells."""
    rows[:] = 0.0
    for k in range(of.shape[0]):
        for m in range(of.shape[1]):
            rows[of[k, m]] += cells[k]


@njit(inner=True)
def _spread_out(of, rows, cells):
    """Set each cell of one node to the sum of the rows that count it."""
    for k in range(of.shape[0]):
        total = 0.0
        for m in range(of.shape[1]):
            total += rows[of[k, m]]
        cells[k] = total


@njit(inner=True)
def _mask(a, free, diagonal):
    """Clear the rows and columns of cells that are not free."""
    for k in range(a.shape[0]):
        if not free[k]:
            a[k], a[:, k] = 0.0, 0.0
            a[k, k] = diagonal


@njit(inner=True)
def _add_up(of, stiff, a):
    """Add the precision of one node's cells, from that of its rows."""
    for i in range(of.shape[0]):
        a[i, i] += _RIDGE + stiff[of[i, 0]]
        for m in range(1, of.shape[1]):
            row = of[i, m]
            c = stiff[row]
            if c != 0.0:
                for j in range(of.shape[0]):
                    if of[j, m] == row:
                        a[i, j] += c


@njit(inner=True)
def _factor(fit, fixed, stiff, room):
    """Invert all precisions, from the leaves up."""
    of, parent, free = fit.of, fit.parent, fit.free
    n = free.shape[0]
    inverse, spread = room.inverse, room.spread
    lower, upper = room.square[0], room.square[1]
    spread[:], inverse[:] = 0.0, 0.0
    for v in range(n - 1, -1, -1):
        for part in range(2):
            if (part == 0 and not room.inner[v]) or (part == 1 and v == 0 and fixed):
                continue
            a = spread[v] if part == 0 else inverse[v]
            if part == 1:
                _add_up(of, stiff[v], a)
                a += spread[v]
            _mask(a, free[v], 1.0)
            if not _invert(a, lower, upper):
                return False
            _mask(a, free[v], 0.0)
        if v > 0:
            up = spread[parent[v]]
            up += inverse[v]
    return True


@njit(inner=True)
def _times(a, x, out):
    """Multiply a symmetric matrix and a vector."""
    for i in range(x.size):
        total = 0.0
        for j in range(x.size):
            total += a[i, j] * x[j]
        out[i] = total


@njit(inner=True)
def _solve(fit, fixed, lack, rows, room, moved):
    """Set `moved`, the moves of all rows that balance the pulls on `rows`, shapes (V, Q).

    A fixed root's children move by `lack` (K,) together.
    """
    of, parent = fit.of, fit.parent
    n, k = fit.free.shape
    pull, below, move = room.wide[0], room.wide[1], room.wide[2]
    hold = np.empty(k)
    below[:] = 0.0
    for v in range(n - 1, -1, -1):
        _spread_out(of, rows[v], pull[v])
        if room.inner[v]:
            _times(room.spread[v], below[v], hold)
            for i in range(k):
                pull[v, i] += hold[i]
        if v > 0:
            _times(room.inverse[v], pull[v], hold)
            for i in range(k):
                below[parent[v], i] += hold[i]
    for v in range(n):
        if v > 0:
            # the parent's price is kept in `below`
            for i in range(k):
                pull[v, i] -= below[parent[v], i]
        if v == 0 and fixed:
            move[0] = lack
        else:
            _times(room.inverse[v], pull[v], move[v])
        if room.inner[v]:
            for i in range(k):
                hold[i] = below[v, i] - move[v, i]
            _times(room.spread[v], hold, below[v])
        _sum_up(of, move[v], moved[v])


@njit(inner=True)
def _gradients(fit, fixed, slope, room, inside, side):
    """Set `room.wide[0]` to the cells' gradients less their price; return the largest inside.

    A leaf's gradient adds up the rows of the nodes above it. If the root is fixed, a cell's price
    is the middle of the gradients of its `inside` (V, K) leaves. Without such leaves, it is a price
    at which all leaves stay on their sides.
    """
    n, k = inside.shape
    total, least, most = room.wide[0], np.full(k, np.inf), np.full(k, -np.inf)
    edge = np.full(k, -np.inf)
    for v in range(n):
        _spread_out(fit.of, slope[v], total[v])
        for i in range(k):
            if v > 0:
                total[v, i] += total[fit.parent[v], i]
            elif fixed:
                total[v, i] = 0.0
        if not room.inner[v]:
            for i in range(k):
                if inside[v, i]:
                    least[i] = min(least[i], total[v, i])
                    most[i] = max(most[i], total[v, i])
                elif fit.free[v, i] and side[v, i] < 0.0:
                    edge[i] = max(edge[i], total[v, i])
    worst = 0.0
    for i in range(k):
        middle = 0.0
        if most[i] >= least[i]:
            middle = 0.5 * (least[i] + most[i]) if fixed else 0.0
            worst = max(worst, most[i] - middle, middle - least[i])
        elif fixed and edge[i] > -np.inf:
            middle = edge[i]
        total[:, i] -= middle
    return worst


@njit(inner=True)
def _polish(fit, fixed, tolerance, room, side, ends, price, x):
    """Solve with rows fixed at the bound on their `side` (V, Q); correct sides until they stay.

    `ends` (2, V, Q) are the bounds. A leaf's cell at a bound is eliminated; another row at a bound
    has a penalty, as rows with fixed values have. Returns the violation of optimality.
    """
    of, weight, target = fit.of, fit.weight, fit.target
    n, q = weight.shape
    k = of.shape[0]
    tall = room.tall
    stiff, rows, step, at, aim = tall[14], tall[15], tall[16], tall[17], tall[18]
    mask, lack = np.zeros((n, k), dtype=np.bool_), np.zeros(k)
    part = Fit(fit.parent, of, weight, target, fit.low, fit.high, fit.held, mask)
    for _ in range(_MOST_TURNS):
        for i in range(k):
            lack[i] = x[0, i] if fixed else 0.0
        for v in range(n - 1, -1, -1):
            for i in range(k):
                if room.inner[v]:
                    mask[v, i] = False
                    x[v, i] = x[v, i] if fixed and v == 0 else 0.0
                    continue
                mask[v, i] = fit.free[v, i] and side[v, i] == 0.0
                if fit.free[v, i] and side[v, i] != 0.0:
                    x[v, i] = ends[0 if side[v, i] < 0.0 else 1, v, i]
        for v in range(n - 1, 0, -1):
            up = fit.parent[v]
            for i in range(k):
                mask[up, i] |= mask[v, i]
                if up == 0 and fixed:
                    lack[i] -= x[v, i]
                else:
                    x[up, i] += x[v, i]
        for v in range(n):
            for i in range(q):
                aim[v, i] = np.nan
                leaf = i < k and not room.inner[v]
                if side[v, i] != 0.0 and not leaf:
                    aim[v, i] = ends[0 if side[v, i] < 0.0 else 1, v, i]
                elif fit.held[v, i]:
                    aim[v, i] = target[v, i]
                stiff[v, i] = weight[v, i]
                if aim[v, i] == aim[v, i]:
                    stiff[v, i] += 1.0 / _GIVE
                else:
                    price[v, i] = 0.0
        if not _factor(part, fixed, stiff, room):
            return np.inf
        for _ in range(_REPEATS):
            for v in range(n):
                _sum_up(of, x[v], at[v])
                for i in range(q):
                    rows[v, i] = weight[v, i] * (target[v, i] - at[v, i]) + price[v, i]
                    if aim[v, i] == aim[v, i]:
                        rows[v, i] += (aim[v, i] - at[v, i]) / _GIVE
            _solve(part, fixed, lack, rows, room, step)
            lack[:] = 0.0
            for v in range(1 if fixed else 0, n):
                for i in range(k):
                    x[v, i] += room.wide[2, v, i]
            far = 0.0
            for v in range(n):
                _sum_up(of, x[v], at[v])
                for i in range(q):
                    if aim[v, i] == aim[v, i]:
                        far = max(far, abs(aim[v, i] - at[v, i]))
                        price[v, i] += (aim[v, i] - at[v, i]) / _GIVE
            if far <= 1e-3 * tolerance:
                break
        for v in range(n):
            for i in range(q):
                rows[v, i] = weight[v, i] * (target[v, i] - at[v, i]) + price[v, i]
        worst = _gradients(fit, fixed, rows, room, mask, side)
        changed = False
        for v in range(1 if fixed else 0, n):
            for i in range(q):
                leaf = i < k and not room.inner[v]
                if leaf and not fit.free[v, i]:
                    continue
                if side[v, i] != 0.0:
                    pull = room.wide[0, v, i] if leaf else -price[v, i]
                    if side[v, i] * pull < -tolerance:
                        side[v, i] = 0.0
                        changed = True
                elif aim[v, i] == aim[v, i]:
                    worst = max(worst, abs(aim[v, i] - at[v, i]))
                elif at[v, i] < ends[0, v, i] - tolerance:
                    side[v, i] = -1.0
                    changed = True
                elif at[v, i] > ends[1, v, i] + tolerance:
                    side[v, i] = 1.0
                    changed = True
        if not changed:
            for i in range(k):
                if fixed:
                    total = 0.0
                    for v in range(1, n):
                        if fit.parent[v] == 0:
                            total += x[v, i]
                    worst = max(worst, abs(total - x[0, i]))
            return worst
    return np.inf


@njit(inner=True)
def _longest(value, step, most):
    """The longest step up to `most` that leaves all values nonnegative."""
    for v in range(value.shape[0]):
        for i in range(value.shape[1]):
            if step[v, i] < 0.0:
                most = min(most, -value[v, i] / step[v, i])
    return most


@njit(inner=True)
def _begin(fit, x, ends, point):
    """Set the rooms and prices of all bounds; return their unit and the number of bounds."""
    size, count = 1.0, 0
    for v in range(x.shape[0]):
        _sum_up(fit.of, x[v], point.at[v])
        for i in range(point.at.shape[1]):
            off = abs(fit.target[v, i] - point.at[v, i])
            size = max(size, np.sqrt(fit.weight[v, i]) * off)
    for v in range(x.shape[0]):
        for i in range(point.at.shape[1]):
            point.price[v, i] = 0.0
            for part in range(2):
                bound = ends[part, v, i]
                point.room[part, v, i], point.cost[part, v, i] = 1.0, 0.0
                if abs(bound) < np.inf:
                    inside = point.at[v, i] - bound if part == 0 else bound - point.at[v, i]
                    point.room[part, v, i], point.cost[part, v, i] = max(inside, size), size
                    count += 1
    return size, count


@njit(inner=True)
def _missed(ends, point, part, v, i):
    """Distance to a bound less its room; 0 without a bound."""
    bound = ends[part, v, i]
    if abs(bound) == np.inf:
        return 0.0
    inside = point.at[v, i] - bound if part == 0 else bound - point.at[v, i]
    return inside - point.room[part, v, i]


@njit(inner=True)
def _off(fit, ends, point):
    """Duality gap, and the largest violation."""
    gap, far = 0.0, 0.0
    for v in range(point.at.shape[0]):
        for i in range(point.at.shape[1]):
            for part in range(2):
                gap += point.room[part, v, i] * point.cost[part, v, i]
                far = max(far, abs(_missed(ends, point, part, v, i)))
            if fit.held[v, i]:
                far = max(far, abs(point.at[v, i] - fit.target[v, i]))
    return gap, far


@njit(inner=True)
def _pulls(fit, ends, point, aim, stiff, rows):
    """Set the precisions of all rows and the pulls on them; rooms times prices should be `aim`.

    An aim above 0 corrects for the products of the last steps.
    """
    for v in range(point.at.shape[0]):
        for i in range(point.at.shape[1]):
            precision = fit.weight[v, i]
            pull = precision * (fit.target[v, i] - point.at[v, i]) + point.price[v, i]
            if fit.held[v, i]:
                precision += 1.0 / _GIVE
                pull += (fit.target[v, i] - point.at[v, i]) / _GIVE
            for part in range(2):
                room, cost = point.room[part, v, i], point.cost[part, v, i]
                if cost > 0.0:
                    precision += cost / room
                    change = -cost * _missed(ends, point, part, v, i)
                    if aim > 0.0:
                        change += aim - point.room_step[part, v, i] * point.cost_step[part, v, i]
                    pull += (1.0 - 2.0 * part) * change / room
            stiff[v, i], rows[v, i] = precision, pull


@njit(inner=True)
def _steps(ends, point, aim, step):
    """Set the steps of rooms and prices from those of the rows; return the longest step length."""
    for v in range(point.at.shape[0]):
        for i in range(point.at.shape[1]):
            for part in range(2):
                room, cost = point.room[part, v, i], point.cost[part, v, i]
                if cost > 0.0:
                    extra = 0.0
                    if aim > 0.0:
                        extra = aim - point.room_step[part, v, i] * point.cost_step[part, v, i]
                    opened = _missed(ends, point, part, v, i)
                    opened += step[v, i] if part == 0 else -step[v, i]
                    point.room_step[part, v, i] = opened
                    point.cost_step[part, v, i] = (extra - cost * opened) / room - cost
                else:
                    point.room_step[part, v, i] = point.cost_step[part, v, i] = 0.0
    length = 1.0
    for part in range(2):
        length = _longest(point.room[part], point.room_step[part], length)
        length = _longest(point.cost[part], point.cost_step[part], length)
    return length


@njit(inner=True)
def _advance(fit, point, length, step):
    """Take the steps of rows, rooms and prices."""
    for v in range(point.at.shape[0]):
        for i in range(point.at.shape[1]):
            if fit.held[v, i]:
                after = point.at[v, i] + step[v, i]
                point.price[v, i] += length * (fit.target[v, i] - after) / _GIVE
            point.at[v, i] += length * step[v, i]
            for part in range(2):
                point.room[part, v, i] += length * point.room_step[part, v, i]
                point.cost[part, v, i] += length * point.cost_step[part, v, i]


@njit(inner=True)
def _gap_after(point, length):
    """Duality gap after steps of a length."""
    gap = 0.0
    for part in range(2):
        for v in range(point.at.shape[0]):
            for i in range(point.at.shape[1]):
                room = point.room[part, v, i] + length * point.room_step[part, v, i]
                gap += room * (point.cost[part, v, i] + length * point.cost_step[part, v, i])
    return gap


@njit(inner=True)
def _guess(point, side, price):
    """Guess that a bound binds if its price exceeds its room."""
    for v in range(point.at.shape[0]):
        for i in range(point.at.shape[1]):
            side[v, i], price[v, i] = 0.0, point.price[v, i]
            for part in range(2):
                if side[v, i] == 0.0 and point.cost[part, v, i] > point.room[part, v, i]:
                    side[v, i] = 2.0 * part - 1.0
                    price[v, i] -= side[v, i] * point.cost[part, v, i]


@njit(inner=True)
def fit_tree(fit, fixed, tolerance, most, x):
    """Move `x` (V, K), which adds up, to the closest point.

    Returns the largest violation of bounds, fixed values and gradients, in counts and in weighted
    counts; infinite if no point was found.

    Notes
    -----
    The primal-dual active set method guesses the binding bounds and corrects them (Hintermüller,
    Ito and Kunisch 2003). This need not end. Then Mehrotra's predictor and corrector (1992), with
    one step length, approaches the point until the binding bounds show, and the same corrections
    finish. Fixed values are enforced by the method of multipliers (Rockafellar 1976).
    """
    n, q = fit.weight.shape
    k = fit.of.shape[0]
    tall = np.empty((19, n, q))
    room = Room(
        with_children(fit.parent),
        tall,
        np.empty((3, n, k)),
        np.empty((n, k, k)),
        np.empty((n, k, k)),
        np.empty((2, k, k)),
    )
    point = Point(tall[0], tall[1], tall[2:4], tall[4:6], tall[6:8], tall[8:10])
    ends, side, price = tall[10:12], tall[12], tall[13]
    stiff, rows, step = tall[14], tall[15], tall[16]
    held, lack = np.zeros((n, q), dtype=np.bool_), np.zeros(k)
    side[:], price[:], rows[:] = 0.0, 0.0, 0.0
    for v in range(n):
        for i in range(k):
            for m in range(fit.of.shape[1]):
                rows[v, fit.of[i, m]] += fit.free[v, i]
        for i in range(q):
            # a row without a free cell cannot change
            idle = rows[v, i] == 0.0 or (fixed and v == 0)
            held[v, i] = fit.held[v, i] and not idle
            idle = idle or fit.held[v, i]
            ends[0, v, i] = -np.inf if idle else fit.low[v, i]
            ends[1, v, i] = np.inf if idle else fit.high[v, i]
    fit = Fit(fit.parent, fit.of, fit.weight, fit.target, fit.low, fit.high, held, fit.free)
    gap, left, last = 0.0, 1.0, np.inf
    size, bounds = 1.0, 0
    for turn in range(most):
        small = True
        if turn > 0:
            gap, far = _off(fit, ends, point)
            small = gap <= _GAP * size * size and far <= _GAP * size and left <= _GAP
        if small and gap <= last:
            if turn > 0:
                _guess(point, side, price)
            saved = x.copy()
            found = _polish(fit, fixed, tolerance, room, side, ends, price, x)
            if found <= tolerance:
                return found
            x[:] = saved
            for v in range(n):
                _sum_up(fit.of, x[v], point.at[v])
            if turn > 0:
                last = gap * _AGAIN
            else:
                size, bounds = _begin(fit, x, ends, point)
                gap, far = _off(fit, ends, point)
        aim = 0.0
        _pulls(fit, ends, point, aim, stiff, rows)
        if not _factor(fit, fixed, stiff, room):
            break
        length = 1.0
        for part in range(2):
            if part == 1:
                aim = gap / bounds * (_gap_after(point, length) / gap) ** 3
                _pulls(fit, ends, point, aim, stiff, rows)
            _solve(fit, fixed, lack, rows, room, step)
            length = _steps(ends, point, aim, step)
        if length < 1.0:
            length *= _NEAR
        _advance(fit, point, length, step)
        for v in range(n):
            for i in range(k):
                x[v, i] += length * room.wide[2, v, i]
        left *= 1.0 - length
    return np.inf
