"""The tree of counts of least expected absolute error under a law of the counts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from congenial.domain.tree import Tree
from congenial.errors import UnsupportedError
from congenial.kernels.projection import convex
from congenial.randomness import Randomness
from congenial.types import BoolArray, FloatArray, IntArray

# Probabilities that each count is at most each value of its window, given the windows' first values
# and sizes.
Chances = Callable[[IntArray, IntArray], FloatArray]

# Half width of the first window around the start, in counts.
_NEAR = 6
# Most entries of all windows together, 8 bytes each.
_MEMORY_LIMIT = 1 << 28


@dataclass(frozen=True, eq=False)
class Window:
    """Values of each node that are considered, from `low` to `high`; both of shape (n,)."""

    low: FloatArray
    high: FloatArray

    @classmethod
    def around(cls, start: IntArray, limits: tuple[FloatArray, FloatArray]) -> Window:
        """Return the first window around a consistent tree."""
        return cls(np.maximum(start - _NEAR, limits[0]), np.minimum(start + _NEAR, limits[1]))

    def widened(self, found: IntArray, limits: tuple[FloatArray, FloatArray]) -> Window | None:
        """Return a wider window for values at an end, if there are some."""
        below = (found <= self.low) & (self.low > limits[0])
        above = (found >= self.high) & (self.high < limits[1])
        if not (below.any() or above.any()):
            return None
        width = self.high - self.low
        low = np.where(below, np.maximum(self.low - 2.0 * width, limits[0]), self.low)
        high = np.where(above, np.minimum(self.high + 2.0 * width, limits[1]), self.high)
        return Window(low, high)


@dataclass(frozen=True, eq=False)
class Expected:
    """The expected absolute errors of the values of a tree, or of a piece of it."""

    tree: Tree
    chances: Chances
    window: Window
    limits: tuple[FloatArray, FloatArray]
    weights: FloatArray | None = None  # shape (n,): Factors of the errors; 1 by default.

    def settled(self, total: int, order: IntArray) -> tuple[IntArray, Expected]:
        """Return the best values of a part whose root has a given value.

        The part is returned with windows at whose ends no value lies.
        """
        part = self
        while True:
            below = part.below(total)
            values, _ = below.minimised(order)
            window = below.window.widened(values, below.limits)
            if window is None:
                return values, part
            part = replace(part, window=window)

    def below(self, total: int) -> Expected:
        """Return the part whose root has a given value."""
        low, high, *limits = (
            _with_first(each, total) for each in (self.window.low, self.window.high, *self.limits)
        )
        return replace(self, window=Window(low, high), limits=(limits[0], limits[1]))

    def costs(self, asked: Asked) -> tuple[FloatArray, Expected]:
        """Return the increments of a part's least cost as its root's value goes from low to high.

        The part is returned with its last windows.
        """
        part, low, high = self, asked.low, asked.high
        if asked.start is not None:
            _, part = part.settled(asked.start, part.tree.children[1])
        ends = _with_first(part.window.low, low), _with_first(part.window.high, high)
        wider = replace(part, window=Window(*ends))
        return wider.minimised(part.tree.children[1])[1][: high - low].copy(), part

    def minimised(
        self, order: IntArray, more: Mapping[int, FloatArray] | None = None
    ) -> tuple[IntArray, FloatArray]:
        """Return the best tree in the window, and the increments of the costs of all below a node.

        Children come in some order by parent, in which ties are broken. `more` has increments of
        nodes besides.
        """
        tree, n = self.tree, len(self.tree)
        upwards = tree.bottom_up if tree.bottom_up.size else np.arange(n - 1, -1, -1)
        first = self.window.low.astype(np.int64)
        size = (self.window.high - self.window.low).astype(np.int64)
        offset = np.concatenate(([0], np.cumsum(size))).astype(np.int64)
        if offset[-1] > _MEMORY_LIMIT:
            raise UnsupportedError(
                f"the best table needs {offset[-1] * 8 / 2**30:.1f} GiB, and the limit is "
                f"{_MEMORY_LIMIT * 8 / 2**30:.1f} GiB; use loss='l2', or measurements with less "
                "noise."
            )
        slopes = 2.0 * self.chances(first, size) - 1.0
        if self.weights is not None:
            slopes *= np.repeat(self.weights, size)
        for node, costs in ({} if more is None else more).items():
            slopes[offset[node] : offset[node + 1]] += costs
        found: IntArray = np.empty(n, dtype=np.int64)
        shape = tree.roots, tree.children[0], order, np.asarray(upwards, dtype=np.int64)
        convex.minimise(*shape, first, offset, slopes, found)
        return found, slopes


def _with_first(values: FloatArray, first: int) -> FloatArray:
    """Return values with another first one."""
    out = values.copy()
    out[0] = first
    return out


def shuffled(tree: Tree, source: Randomness) -> IntArray:
    """Return the children by parent; equally good trees are equally likely, so in random order."""
    children = tree.children[1]
    order = np.lexsort((source.bits(children.size), tree.parents[children]))
    return np.asarray(children[order])


def chances_of_draws(draws: IntArray) -> Chances:
    """Return the cumulative probabilities under equally likely draws, shape (size, n)."""

    def chances(first: IntArray, size: IntArray) -> FloatArray:
        offset = np.concatenate(([0], np.cumsum(size)))[:-1]
        counts = np.zeros(int(size.sum()))
        for row in draws:
            at = row - first
            inside = at < size
            np.add.at(counts, (offset + np.maximum(at, 0))[inside], 1.0)
        return _cumulated(counts, offset, size) / len(draws)

    return chances


def _cumulated(values: FloatArray, offset: IntArray, size: IntArray) -> FloatArray:
    """Return running sums within each node's entries."""
    sums = np.cumsum(values)
    before = np.where(offset > 0, sums[np.maximum(offset - 1, 0)], 0.0)
    return np.asarray(sums - np.repeat(before, size))


def level_weights(tree: Tree, pinned: BoolArray) -> FloatArray:
    """Return weights under which all levels have the same total weight, shape (n,).

    A node's weight is the size of the largest level over that of its own level, without counts that
    are published exactly.
    """
    number = np.maximum(np.bincount(tree.level[~pinned], minlength=tree.depth), 1)
    return np.asarray(number.max() / number[tree.level], dtype=np.float64)


def least_absolute(
    tree: Tree,
    chances: Chances,
    start: IntArray,
    limits: tuple[FloatArray, FloatArray],
    source: Randomness,
    weights: FloatArray | None = None,
) -> IntArray:
    """Return the tree of integers of least expected absolute error, summed over the nodes.

    `weights`, shape (n,) and positive, multiply the errors. `start` is a consistent tree within the
    limits. Expected errors are convex in each node's value. The best tree within windows around
    `start` is therefore the best of all, unless a value lies at an end of its window.

    Raises UnsupportedError if windows would not fit in memory.
    """
    top = Expected(tree, chances, Window.around(start, limits), limits, weights)
    none = np.zeros(0, dtype=np.int64)
    return least_absolute_in_parts(top, start, none, _no_parts, _no_parts, source)


def _no_parts(given: Mapping[int, object]) -> list[Any]:
    """Stand for the parts of a whole tree."""
    return [None for _ in given]


class Asked(NamedTuple):
    """A question to a part: its least expected error for each value of its root."""

    low: int  # The first value.
    high: int  # The last one.
    start: int | None  # Near this value its windows are to be widened first; None if they were.


def least_absolute_in_parts(
    top: Expected,
    start: IntArray,
    roots: IntArray,
    costs_of: Callable[[Mapping[int, Asked]], Sequence[FloatArray]],
    settle: Callable[[Mapping[int, int]], Sequence[bool]],
    source: Randomness,
) -> IntArray:
    """Return the values of the top in the tree of integers of least expected absolute error.

    `least_absolute`, part by part: a part sends the least expected error of its counts as a
    function of its root's value, which is convex.

    Parameters
    ----------
    top : Expected
        The nodes down to the cut.
    start : ndarray of int64, shape (top,)
        Its values in a consistent tree within all windows.
    roots : ndarray of int64, shape (parts,)
        The cut nodes, in the top.
    costs_of : callable
        Returns the costs that some parts, by their numbers, are asked for (`Expected.costs`). The
        weight of a part's root is 0.
    settle : callable
        Keeps the best values of some parts, given those of their roots. Says of each part whether
        its windows became wider (`Expected.settled`).
    source : Randomness
        Breaks ties of the top.

    Raises
    ------
    UnsupportedError
        If windows of a piece would not fit in memory.
    """
    order, nodes = shuffled(top.tree, source), roots.tolist()
    costs: dict[int, FloatArray] = {}
    last: dict[int, int] = {}
    again = set(range(roots.size))
    while True:
        asked = {}
        for k in sorted(again):
            low, high = (int(end[nodes[k]]) for end in (top.window.low, top.window.high))
            # near its start, the part will be asked for its values
            asked[k] = Asked(low, high, None if k in last else int(start[nodes[k]]))
        costs.update(zip(asked, costs_of(asked), strict=True))
        found, _ = top.minimised(order, {nodes[k]: each for k, each in costs.items()})
        totals = dict(enumerate(found[roots].tolist()))
        moved = {k: total for k, total in totals.items() if last.get(k) != total}
        # costs of these were computed in narrower windows
        again = {k for k, wider in zip(moved, settle(moved), strict=True) if wider}
        last.update(moved)
        window = top.window.widened(found, top.limits)
        if window is not None:
            other = (window.low != top.window.low) | (window.high != top.window.high)
            again |= set(np.flatnonzero(other[roots]).tolist())
            top = replace(top, window=window)
        elif not again:
            return found
