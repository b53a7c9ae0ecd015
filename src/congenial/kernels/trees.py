"""Sums over trees given by the parent of every node, -1 for a root."""

from __future__ import annotations

import numpy as np

from congenial.kernels.compiling import njit


def read_only(array: np.ndarray) -> np.ndarray:
    """Return a contiguous view that cannot be written, so that kernels see arrays of one type."""
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view


@njit()
def add_up(parents, bottom_up, total):
    """Add the value of every node to its parent's, in place.

    Nodes are visited in the order of `bottom_up`, or the last first where it is empty.
    """
    n = parents.size
    for j in range(n):
        i = bottom_up[j] if bottom_up.size else n - 1 - j
        if parents[i] >= 0:
            total[parents[i]] += total[i]


@njit()
def adds_up(parents, is_leaf, values, total):
    """Whether every inner node has the sum of its children; `total` (n,) comes in as zeros.

    Children are added in the same order as `add_up` has them.
    """
    for i in range(parents.size - 1, -1, -1):
        if parents[i] >= 0:
            total[parents[i]] += values[i]
    same = True
    for i in range(parents.size):
        if not is_leaf[i]:
            same &= total[i] == values[i]
    return same


@njit()
def mark_implied(parents, is_leaf, fixed, lo, below, implied):
    """Mark in `implied` the nodes whose lower bounds follow from those of their children.

    `lo` has one entry, or one a node; bounds of fixed nodes say nothing. `below` and `implied`,
    both (n,), come in as zeros.
    """
    step = 1 if lo.size > 1 else 0
    for i in range(parents.size):
        if parents[i] >= 0:
            below[parents[i]] += -np.inf if fixed[i] else np.ceil(lo[step * i])
    for i in range(parents.size):
        bound = np.ceil(lo[step * i])
        bounded = bound > -np.inf and not fixed[i] and not is_leaf[i]
        implied[i] = bounded and below[i] >= bound
