"""A tree as wide as a city."""

from __future__ import annotations

import numpy as np

from congenial.domain.tree import Tree


def city(leaves, depth, seed):
    """A tree of random shape, its leaves at any depth, and noisy counts."""
    rng = np.random.default_rng(seed)
    parents = [-1]
    ends = [0]
    for _ in range(depth):
        fans = rng.integers(1, 2 * max(2, int(leaves ** (1 / depth))), len(ends))
        begin = len(parents)
        parents += np.repeat(ends, fans).tolist()
        ends = [v for v in range(begin, len(parents)) if rng.random() < 0.9]
    place = rng.permutation(len(parents))
    mixed = np.empty(len(parents), dtype=np.int64)
    mixed[place] = [-1 if v < 0 else place[v] for v in parents]
    tree = Tree.from_parents(mixed)
    x = tree.roll_up(rng.poisson(2.0, tree.leaves.size))
    return tree, x, rng
