"""The tree of counts of least expected absolute error under a law of the counts."""

from __future__ import annotations

from collections.abc import Callable

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
    n = len(tree)
    starts, children = tree.children
    # equally good trees are equally likely: ties go to children in a random order
    order = np.lexsort((source.bits(children.size), tree.parents[children]))
    shape = np.flatnonzero(tree.parents < 0), starts, children[order]
    upwards = tree.bottom_up if tree.bottom_up.size else np.arange(n - 1, -1, -1)
    low = np.maximum(start - _NEAR, limits[0])
    high = np.minimum(start + _NEAR, limits[1])
    found: IntArray = np.empty(n, dtype=np.int64)
    while True:
        first, size = low.astype(np.int64), (high - low).astype(np.int64)
        offset = np.concatenate(([0], np.cumsum(size))).astype(np.int64)
        if offset[-1] > _MEMORY_LIMIT:
            raise UnsupportedError(
                f"the best table needs {offset[-1] * 8 / 2**30:.1f} GiB, and the limit is "
                f"{_MEMORY_LIMIT * 8 / 2**30:.1f} GiB; use loss='l2', or measurements with less "
                "noise."
            )
        slopes = 2.0 * chances(first, size) - 1.0
        if weights is not None:
            slopes *= np.repeat(weights, size)
        convex.minimise(*shape, np.asarray(upwards, dtype=np.int64), first, offset, slopes, found)
        below = (found <= low) & (low > limits[0])
        above = (found >= high) & (high < limits[1])
        if not (below.any() or above.any()):
            return found
        width = high - low
        low = np.where(below, np.maximum(low - 2.0 * width, limits[0]), low)
        high = np.where(above, np.minimum(high + 2.0 * width, limits[1]), high)
