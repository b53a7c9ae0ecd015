"""What the parts of every node of a tree add up to at least, from a lower bound of every node."""

from __future__ import annotations

from congenial.kernels.compiling import njit


@njit()
def add_up_least(parents, bottom_up, is_leaf, lo, below):
    """Add up in `below` (n,), which comes in as zeros, what the children of every node reach.

    A node reaches its own bound or, where that is more, what its children reach together. Nodes
    are visited in the order of `bottom_up`, or the last first where it is empty.
    """
    n = parents.size
    for j in range(n):
        i = bottom_up[j] if bottom_up.size else n - 1 - j
        if parents[i] >= 0:
            least = lo[i]
            if not is_leaf[i] and below[i] > least:
                least = below[i]
            below[parents[i]] += least
