"""The least tree of integers under convex costs, against all trees."""

from __future__ import annotations

from itertools import product

import numpy as np

import congenial as cg
from congenial.kernels.projection.convex import minimise
from support.seeds import for_each_seed

SHAPES = ([-1, 0, 0], [-1, 0, 0, 1, 1], [-1, 0, 1, 1, 0], [-1, -1, 0, 0, 1], [-1, 0, 0, 0])


@for_each_seed(400)
def test_no_tree_of_integers_costs_less(seed):
    rng = np.random.default_rng(seed)
    tree = cg.Tree.from_parents(SHAPES[rng.integers(len(SHAPES))])
    n, leaf = len(tree), tree.leaves
    inside = tree.roll_up(rng.integers(-2, 3, leaf.size))
    first = inside - rng.integers(0, 4, n)
    size = inside - first + rng.integers(0, 4, n)
    offset = np.concatenate(([0], np.cumsum(size)))
    # whole numbers, of which many are equal
    slopes = np.concatenate([np.sort(rng.integers(-3, 4, k)) for k in size]).astype(float)
    costs = [
        np.concatenate(([0.0], np.cumsum(slopes[offset[v] : offset[v + 1]]))) for v in range(n)
    ]

    def cost(values):
        at = values - first
        if (at < 0).any() or (at > size).any():
            return np.inf
        return sum(costs[v][at[v]] for v in range(n))

    leaves = [range(first[v], first[v] + size[v] + 1) for v in leaf]
    best = min(cost(tree.roll_up(np.array(values))) for values in product(*leaves))
    starts, children = tree.children
    upwards = np.arange(n - 1, -1, -1)
    roots, found = np.flatnonzero(tree.parents < 0), np.empty(n, dtype=np.int64)
    minimise(roots, starts, children, upwards, first, offset, slopes, found)
    assert tree.is_consistent(found)
    assert cost(found) == best
