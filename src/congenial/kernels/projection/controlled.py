"""Controlled rounding: integers next to given cells that keep the parent's and the margins.

Benchmark row: `cells`.

Each cell of each child of a family is rounded down or up, so that the children's cells add up to
the parent's. The cost is the summed change of all counted rows, cells and margins. A count beyond a
row's bounds costs more than all changes together. Units are first given out one by one where they
cost least. They then move between children, in one cell or in two, as long as the cost falls.
Rows are those of `interior`.
"""

from __future__ import annotations

import numpy as np

from congenial.kernels.numerics.compiling import njit

# States of a cell: not to be changed, rounded down, rounded up.
_KEPT, _DOWN, _UP = 0, 1, 2
# Cost of a count beyond a bound.
_BEYOND = 2.0**20
# Least improvement of the cost, below the grid of 2^-20 of all changes.
_LEAST = 2.0**-22
# Most rounds of moves over all cells.
_MOST_ROUNDS = 200


@njit(inner=True)
def _beyond(value, low, high):
    return max(low - value, 0.0) + max(value - high, 0.0)


@njit(inner=True)
def _change(c, row, by, off, sums, low, high, counted):
    """Cost of changing one row of one child."""
    cost = abs(off[c, row] + by) - abs(off[c, row]) if counted[c, row] else 0.0
    before = _beyond(sums[c, row], low[c, row], high[c, row])
    after = _beyond(sums[c, row] + by, low[c, row], high[c, row])
    return cost + _BEYOND * (after - before)


@njit(inner=True)
def _one(c, k, by, of, off, sums, low, high, counted):
    """Cost of changing one cell of one child."""
    total = 0.0
    for m in range(of.shape[1]):
        total += _change(c, of[k, m], by, off, sums, low, high, counted)
    return total


@njit(inner=True)
def _two(c, k, j, of, off, sums, low, high, counted):
    """Cost of moving a unit of one child from cell k to cell j."""
    total = 0.0
    for m in range(of.shape[1]):
        if of[k, m] != of[j, m]:
            total += _change(c, of[k, m], -1.0, off, sums, low, high, counted)
            total += _change(c, of[j, m], 1.0, off, sums, low, high, counted)
    return total


@njit(inner=True)
def _put(c, k, by, state, of, off, sums):
    """Round a cell of a child the other way."""
    for m in range(of.shape[1]):
        off[c, of[k, m]] += by
        sums[c, of[k, m]] += by
    state[c, k] = _UP if by > 0.0 else _DOWN


@njit(inner=True)
def _better(words, k, c, cost, best, least):
    """Return the cheaper of child c and the best so far, with its cost; words break ties."""
    if cost < least or (cost == least and words[c, k] < words[best, k]):
        return c, cost
    return best, least


@njit(inner=True)
def _shuffled(words):
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
def round_cells(of, x, whole, low, high, counted, words):
    """Round `x` (C, K) in place to integers that add up to `whole` (K,).

    Returns the number of counts beyond bounds, or infinity if no rounding adds up. `low`, `high`
    and `counted` have the shape (C, Q); `words` (C, K) order roundings of equal cost.
    """
    n, cells = x.shape
    base = np.empty((n, cells))
    state = np.zeros((n, cells), dtype=np.int8)
    off, sums = np.zeros(low.shape), np.zeros(low.shape)  # changes and values of the rounded rows
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
                    best, least = _better(words, k, c, cost, best, least)
            _put(best, k, 1.0, state, of, off, sums)
    _improve(order, words, state, of, off, sums, low, high, counted)
    missed = 0.0
    for c in range(n):
        for k in range(cells):
            x[c, k] = base[c, k] + (1.0 if state[c, k] == _UP else 0.0)
        for q in range(low.shape[1]):
            missed += _beyond(sums[c, q], low[c, q], high[c, q])
    return missed


@njit(inner=True)
def _improve(order, words, state, of, off, sums, low, high, counted):
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
                        giver, given = _better(words, k, c, cost, giver, given)
                    elif state[c, k] == _DOWN:
                        cost = _one(c, k, 1.0, of, off, sums, low, high, counted)
                        taker, taken = _better(words, k, c, cost, taker, taken)
                if not given + taken < -_LEAST:
                    break
                _put(giver, k, -1.0, state, of, off, sums)
                _put(taker, k, 1.0, state, of, off, sums)
                found = True
            for j in order:
                if j == k:
                    continue
                # units leave cell k and enter cell j in one child or two; another child reverses it
                one, first, other, second = -1, np.inf, -1, np.inf
                middle, between, end, last = -1, np.inf, -1, np.inf
                for c in range(n):
                    here, there = state[c, k], state[c, j]
                    if here == _UP and there == _DOWN:
                        cost = _two(c, k, j, of, off, sums, low, high, counted)
                        one, first = _better(words, k, c, cost, one, first)
                    elif here == _DOWN and there == _UP:
                        cost = _two(c, j, k, of, off, sums, low, high, counted)
                        middle, between = _better(words, k, c, cost, middle, between)
                    if here == _UP:
                        cost = _one(c, k, -1.0, of, off, sums, low, high, counted)
                        other, second = _better(words, k, c, cost, other, second)
                    if there == _DOWN:
                        cost = _one(c, j, 1.0, of, off, sums, low, high, counted)
                        end, last = _better(words, j, c, cost, end, last)
                if first + between < -_LEAST:
                    _put(one, k, -1.0, state, of, off, sums)
                    _put(one, j, 1.0, state, of, off, sums)
                elif other != end and second + between + last < -_LEAST:
                    _put(other, k, -1.0, state, of, off, sums)
                    _put(end, j, 1.0, state, of, off, sums)
                else:
                    continue
                _put(middle, k, 1.0, state, of, off, sums)
                _put(middle, j, -1.0, state, of, off, sums)
                found = True
        if not found:
            break
