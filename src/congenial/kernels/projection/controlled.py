"""Controlled rounding: integers next to given cells that keep the parent's and the margins.

Benchmark row: `cells`.

Each cell of each child of a family is rounded down or up, so that every cell adds up to the
parent's. The cost is the summed change of all rows that count, cells and margins; beyond a row's
bounds every count costs more than all changes. Units are first given out one by one where they
cost least, and then moved between children, in one cell or in two, as long as that lowers the cost.
Rows are those of `interior`.
"""

from __future__ import annotations

import numpy as np

from congenial.kernels.numerics.compiling import njit

# States of a cell: not to be changed, rounded down, rounded up.
_KEPT, _DOWN, _UP = 0, 1, 2
# Cost of a count beyond a bound, and the least improvement: changes are multiples of 2^-20.
_BEYOND = 2.0**20
_LEAST = 2.0**-22
_MOST_ROUNDS = 200


@njit(inner=True)
def _beyond(value: float, low: float, high: float) -> float:
    return max(low - value, 0.0) + max(value - high, 0.0)


@njit(inner=True)
def _change(
    c: int,
    row: int,
    by: float,
    off: np.ndarray,
    sums: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    counted: np.ndarray,
) -> float:
    """Cost of changing one row of one child."""
    cost = abs(off[c, row] + by) - abs(off[c, row]) if counted[c, row] else 0.0
    before = _beyond(sums[c, row], low[c, row], high[c, row])
    after = _beyond(sums[c, row] + by, low[c, row], high[c, row])
    return cost + _BEYOND * (after - before)


@njit(inner=True)
def _one(
    c: int,
    k: int,
    by: float,
    of: np.ndarray,
    off: np.ndarray,
    sums: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    counted: np.ndarray,
) -> float:
    """Cost of changing one cell of one child."""
    total = 0.0
    for m in range(of.shape[1]):
        total += _change(c, of[k, m], by, off, sums, low, high, counted)
    return total


@njit(inner=True)
def _two(
    c: int,
    k: int,
    j: int,
    of: np.ndarray,
    off: np.ndarray,
    sums: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    counted: np.ndarray,
) -> float:
    """Cost of moving a unit of one child from a cell to another."""
    total = 0.0
    for m in range(of.shape[1]):
        if of[k, m] != of[j, m]:
            total += _change(c, of[k, m], -1.0, off, sums, low, high, counted)
            total += _change(c, of[j, m], 1.0, off, sums, low, high, counted)
    return total


@njit(inner=True)
def _put(
    c: int,
    k: int,
    by: float,
    of: np.ndarray,
    off: np.ndarray,
    sums: np.ndarray,
    state: np.ndarray,
) -> None:
    """Round a cell of a child the other way."""
    for m in range(of.shape[1]):
        off[c, of[k, m]] += by
        sums[c, of[k, m]] += by
    state[c, k] = _UP if by > 0.0 else _DOWN


@njit(inner=True)
def _shuffled(words: np.ndarray) -> np.ndarray:
    """The cells in the order of random words."""
    order = np.empty(words.size, dtype=np.int64)
    for i in range(words.size):
        j = i
        while j > 0 and words[order[j - 1]] > words[i]:
            order[j] = order[j - 1]
            j -= 1
        order[j] = i
    return order


@njit(inner=True)
def round_cells(
    of: np.ndarray,
    x: np.ndarray,
    whole: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    counted: np.ndarray,
    words: np.ndarray,
) -> float:
    """Round `x` (C, K) in place to integers that add up to `whole` (K,); return what bounds miss.

    Returns the number of counts beyond bounds, or infinity if no rounding adds up. `low`, `high`
    and `counted` have the shape (C, Q); `words` (C, K) order what costs the same.
    """
    n, cells = x.shape
    rows = low.shape[1]
    base = np.empty((n, cells))
    state = np.zeros((n, cells), dtype=np.int8)
    off, sums = np.zeros((n, rows)), np.zeros((n, rows))
    rest = whole.copy()
    for c in range(n):
        for k in range(cells):
            base[c, k] = np.floor(x[c, k] + 2.0**-21)
            part = np.rint((x[c, k] - base[c, k]) * 2.0**20) * 2.0**-20
            if part > 0.0:
                state[c, k] = _DOWN
            rest[k] -= base[c, k]
            for m in range(of.shape[1]):
                off[c, of[k, m]] -= part
    for k in range(cells):
        count = 0
        for c in range(n):
            count += state[c, k] == _DOWN
        if 0.0 <= rest[k] <= count:
            continue
        rise = rest[k]
        for c in range(n):
            here = base[c, k]
            if rise > count and state[c, k] == _KEPT and here + 1.0 <= high[c, k]:
                state[c, k] = _DOWN
            elif rise < 0.0 and here - 1.0 >= low[c, k]:
                base[c, k] -= 1.0
                state[c, k] = _DOWN
                rest[k] += 1.0
                for m in range(of.shape[1]):
                    off[c, of[k, m]] -= 1.0
        count = 0
        for c in range(n):
            count += state[c, k] == _DOWN
        if not 0.0 <= rest[k] <= count:
            return np.inf
    for c in range(n):
        for k in range(cells):
            for m in range(of.shape[1]):
                sums[c, of[k, m]] += base[c, k]
    order = _shuffled(words[0])
    for k in order:
        for _ in range(int(rest[k])):
            best, least = -1, np.inf
            for c in range(n):
                if state[c, k] == _DOWN:
                    cost = _one(c, k, 1.0, of, off, sums, low, high, counted)
                    if cost < least or (cost == least and words[c, k] < words[best, k]):
                        best, least = c, cost
            _put(best, k, 1.0, of, off, sums, state)
    _improve(of, order, low, high, counted, words, off, sums, state)
    missed = 0.0
    for c in range(n):
        for k in range(cells):
            x[c, k] = base[c, k] + (1.0 if state[c, k] == _UP else 0.0)
        for q in range(rows):
            missed += _beyond(sums[c, q], low[c, q], high[c, q])
    return missed


@njit(inner=True)
def _improve(
    of: np.ndarray,
    order: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    counted: np.ndarray,
    words: np.ndarray,
    off: np.ndarray,
    sums: np.ndarray,
    state: np.ndarray,
) -> None:
    """Move units between children as long as the cost falls."""
    n = state.shape[0]
    for _ in range(_MOST_ROUNDS):
        found = False
        for k in order:
            while True:
                # a unit of one cell from one child to another
                giver, given, taker, taken = -1, np.inf, -1, np.inf
                for c in range(n):
                    if state[c, k] == _UP:
                        cost = _one(c, k, -1.0, of, off, sums, low, high, counted)
                        if cost < given or (cost == given and words[c, k] < words[giver, k]):
                            giver, given = c, cost
                    elif state[c, k] == _DOWN:
                        cost = _one(c, k, 1.0, of, off, sums, low, high, counted)
                        if cost < taken or (cost == taken and words[c, k] < words[taker, k]):
                            taker, taken = c, cost
                if not given + taken < -_LEAST:
                    break
                _put(giver, k, -1.0, of, off, sums, state)
                _put(taker, k, 1.0, of, off, sums, state)
                found = True
            for j in order:
                if j == k:
                    continue
                # a unit of cell k from one child, of cell j to another, by way of a third or not
                one, first, other, second = -1, np.inf, -1, np.inf
                middle, between, end, last = -1, np.inf, -1, np.inf
                for c in range(n):
                    here, there = state[c, k], state[c, j]
                    if here == _UP and there == _DOWN:
                        cost = _two(c, k, j, of, off, sums, low, high, counted)
                        if cost < first or (cost == first and words[c, k] < words[one, k]):
                            one, first = c, cost
                    elif here == _DOWN and there == _UP:
                        cost = _two(c, j, k, of, off, sums, low, high, counted)
                        if cost < between or (cost == between and words[c, k] < words[middle, k]):
                            middle, between = c, cost
                    if here == _UP:
                        cost = _one(c, k, -1.0, of, off, sums, low, high, counted)
                        if cost < second or (cost == second and words[c, k] < words[other, k]):
                            other, second = c, cost
                    if there == _DOWN:
                        cost = _one(c, j, 1.0, of, off, sums, low, high, counted)
                        if cost < last or (cost == last and words[c, j] < words[end, j]):
                            end, last = c, cost
                if first + between < -_LEAST:
                    _put(one, k, -1.0, of, off, sums, state)
                    _put(one, j, 1.0, of, off, sums, state)
                elif other != end and second + between + last < -_LEAST:
                    _put(other, k, -1.0, of, off, sums, state)
                    _put(end, j, 1.0, of, off, sums, state)
                else:
                    continue
                _put(middle, k, 1.0, of, off, sums, state)
                _put(middle, j, -1.0, of, off, sums, state)
                found = True
        if not found:
            break
