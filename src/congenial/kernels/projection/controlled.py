"""Controlled rounding: integers next to given cells that keep the parent's and the margins.

Benchmark row: `cells`.

Each cell of each child of a family is rounded down or up, so that the children's cells add up to
the parent's. The cost is the summed change of all counted rows, cells and margins. A count beyond a
row's bounds costs more than all changes together. Units are first given out one by one where they
cost least. They then move between children, in one cell or in two, as long as the cost falls.
Rows are those of `interior`.
"""

from __future__ import annotations

from typing import NamedTuple

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


class Rounding(NamedTuple):
    """The roundings of a family's cells so far: C children, K cells, Q rows."""

    of: np.ndarray  # shape (K, M): The row of each cell in each margin.
    low: np.ndarray  # shape (C, Q)
    high: np.ndarray  # shape (C, Q)
    counted: np.ndarray  # shape (C, Q): Whether the change of a row has a cost.
    words: np.ndarray  # shape (C, K): They order roundings of equal cost.
    off: np.ndarray  # shape (C, Q): The change of each row by rounding.
    sums: np.ndarray  # shape (C, Q): The rows of the rounded cells.
    state: np.ndarray  # shape (C, K)


@njit(inner=True)
def _beyond(value, low, high):
    return max(low - value, 0.0) + max(value - high, 0.0)


@njit(inner=True)
def _change(to, c, row, by):
    """Cost of changing one row of one child."""
    cost = abs(to.off[c, row] + by) - abs(to.off[c, row]) if to.counted[c, row] else 0.0
    before = _beyond(to.sums[c, row], to.low[c, row], to.high[c, row])
    after = _beyond(to.sums[c, row] + by, to.low[c, row], to.high[c, row])
    return cost + _BEYOND * (after - before)


@njit(inner=True)
def _one(to, c, k, by):
    """Cost of changing one cell of one child."""
    total = 0.0
    for m in range(to.of.shape[1]):
        total += _change(to, c, to.of[k, m], by)
    return total


@njit(inner=True)
def _two(to, c, k, j):
    """Cost of moving a unit of one child from cell k to cell j."""
    total = 0.0
    for m in range(to.of.shape[1]):
        if to.of[k, m] != to.of[j, m]:
            total += _change(to, c, to.of[k, m], -1.0)
            total += _change(to, c, to.of[j, m], 1.0)
    return total


@njit(inner=True)
def _put(to, c, k, by):
    """Round a cell of a child the other way."""
    for m in range(to.of.shape[1]):
        to.off[c, to.of[k, m]] += by
        to.sums[c, to.of[k, m]] += by
    to.state[c, k] = _UP if by > 0.0 else _DOWN


@njit(inner=True)
def _better(to, k, c, cost, best, least):
    """Return the cheaper of child c and the best so far, with its cost; words break ties."""
    if cost < least or (cost == least and to.words[c, k] < to.words[best, k]):
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

    Returns the number of counts beyond bounds, or infinity if no rounding adds up. The other
    arguments are those of `Rounding`.
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
    to = Rounding(of, low, high, counted, words, off, sums, state)
    order = _shuffled(words[0])
    for k in order:
        for _ in range(int(rest[k])):
            best, least = -1, np.inf
            for c in range(n):
                if state[c, k] == _DOWN:
                    best, least = _better(to, k, c, _one(to, c, k, 1.0), best, least)
            _put(to, best, k, 1.0)
    _improve(to, order)
    missed = 0.0
    for c in range(n):
        for k in range(cells):
            x[c, k] = base[c, k] + (1.0 if state[c, k] == _UP else 0.0)
        for q in range(rows):
            missed += _beyond(sums[c, q], low[c, q], high[c, q])
    return missed


@njit(inner=True)
def _improve(to, order):
    """Move units between children as long as the cost falls."""
    state = to.state
    n = state.shape[0]
    for _ in range(_MOST_ROUNDS):
        found = False
        for k in order:
            while True:
                # a unit of one cell from one child to another
                giver, given, taker, taken = -1, np.inf, -1, np.inf
                for c in range(n):
                    if state[c, k] == _UP:
                        giver, given = _better(to, k, c, _one(to, c, k, -1.0), giver, given)
                    elif state[c, k] == _DOWN:
                        taker, taken = _better(to, k, c, _one(to, c, k, 1.0), taker, taken)
                if not given + taken < -_LEAST:
                    break
                _put(to, giver, k, -1.0)
                _put(to, taker, k, 1.0)
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
                        one, first = _better(to, k, c, _two(to, c, k, j), one, first)
                    elif here == _DOWN and there == _UP:
                        middle, between = _better(to, k, c, _two(to, c, j, k), middle, between)
                    if here == _UP:
                        other, second = _better(to, k, c, _one(to, c, k, -1.0), other, second)
                    if there == _DOWN:
                        end, last = _better(to, j, c, _one(to, c, j, 1.0), end, last)
                if first + between < -_LEAST:
                    _put(to, one, k, -1.0)
                    _put(to, one, j, 1.0)
                elif other != end and second + between + last < -_LEAST:
                    _put(to, other, k, -1.0)
                    _put(to, end, j, 1.0)
                else:
                    continue
                _put(to, middle, k, 1.0)
                _put(to, middle, j, -1.0)
                found = True
        if not found:
            break
