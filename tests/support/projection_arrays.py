"""Trees as the kernels of projections take them."""

from __future__ import annotations

import numpy as np

from congenial.kernels.projection.forest import Forest
from congenial.kernels.projection.levels import lay_out


def words_of(values):
    """Return words as projections give them, read-only: kernels are compiled for that one kind."""
    words = np.array(values, dtype=np.uint64)
    words.setflags(write=False)
    return words


def random_parents(rng, n):
    """Return the parents of n nodes in scrambled order, of one root."""
    place = rng.permutation(n)
    parents = np.full(n, -1)
    for v in range(1, n):
        parents[place[v]] = place[rng.integers(0, v)]
    return parents


def linked(parents):
    """Return a forest as kernels take it."""
    n = parents.size
    members = [np.flatnonzero(parents == v) for v in range(n)]
    starts = np.concatenate([[0], np.cumsum([m.size for m in members])]).astype(np.int64)
    children = np.concatenate([*members, np.empty(0)]).astype(np.int64)
    downward = np.flatnonzero(parents < 0).tolist()
    for v in downward:
        downward += members[v].tolist()
    return Forest(starts, children, np.array(downward), parents < 0)


def laid(parents):
    """Return the rows of `lay_out` and the node at each place."""
    order = np.empty(parents.size, dtype=np.int64)
    return lay_out(linked(parents), order), order


def leaf_sums(parents):
    """Return which leaves each node is the sum of, shape (n, leaves)."""
    leaves = np.flatnonzero(~np.isin(np.arange(parents.size), parents))
    out = np.zeros((parents.size, leaves.size))
    for j, leaf in enumerate(leaves.tolist()):
        v = leaf
        while v >= 0:
            out[v, j] = 1.0
            v = parents[v]
    return out
