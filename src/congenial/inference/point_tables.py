"""One tree of counts for many: the one of least expected absolute error."""

from __future__ import annotations

import numpy as np

from congenial.domain.tree import Tree
from congenial.imaging.closest import project
from congenial.invariants.written import bounds, consistent
from congenial.randomness import Randomness
from congenial.types import FloatArray, IntArray

# Distance from the median, in values, within which values are first tabulated singly.
_NEAR = 4


def least_absolute(
    tree: Tree, draws: IntArray, limits: tuple[FloatArray, FloatArray], source: Randomness
) -> IntArray:
    """Return the tree of integers of least absolute error, summed over nodes and draws.

    It is the L1 projection onto a larger tree: every node becomes a chain of as many nodes as the
    draws have values there, each with a value and how often it occurs as its weight. All nodes of
    a chain are equal where the larger tree adds up. Values far from the median are first taken as
    if they were nearer.
    """
    ordered = np.sort(draws.T, axis=1)
    first, last = ordered[:, 0], ordered[:, -1]
    middle = ordered[:, ordered.shape[1] // 2]
    reach = np.full(middle.size, _NEAR)
    while True:
        low, high = middle - reach, middle + reach
        # losses are convex: the least where none was changed is the least of all
        found = _least(tree, np.clip(ordered, low[:, None], high[:, None]), limits, source)
        beyond = ((found <= low) & (first < low)) | ((found >= high) & (last > high))
        if not beyond.any():
            return found
        reach[beyond] *= 4


def _least(
    tree: Tree, ordered: IntArray, limits: tuple[FloatArray, FloatArray], source: Randomness
) -> IntArray:
    """Return the tree of least absolute error, given each node's draws in order."""
    n, size = ordered.shape
    fresh = np.ones((n, size), dtype=np.bool_)
    fresh[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    targets = ordered[fresh]
    at = np.flatnonzero(fresh.ravel())
    counts = np.diff(np.append(at, n * size)).astype(np.float64)
    length = fresh.sum(axis=1)
    last = np.cumsum(length) - 1
    first = last - length + 1
    parents = np.arange(targets.size, dtype=np.int64) - 1
    above = tree.parents
    parents[first] = np.where(above >= 0, last[above], -1)
    low, high = np.full(targets.size, -np.inf), np.full(targets.size, np.inf)
    low[first], high[first] = limits
    known = consistent(Tree.from_parents(parents)) & bounds(low, high)
    found = project(targets, known, weights=counts, norm="l1", integer=True, rng=source)
    out: IntArray = np.asarray(found, dtype=np.int64)[first]
    return out
