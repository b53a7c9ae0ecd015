"""Random problems of projection on trees that are cut at a level."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import congenial as cg

WEIGHTS = {
    "plain": (0.0, 1e-3, 0.5, 1.0, 1.0, 7.3, 1e3),
    "sparse": (0.0, 0.0, 0.0, 1.0, 1.0, 7.3),
    "apart": (0.0, 1e-12, 1e-9, 1e-6, 1e-3, 1.0, 7.3),
    "measured": (1e-2, 0.5, 1.0, 3.0),
}
# Distances of bounds from counts that satisfy them.
SLACK = (0.0, 1.0, 2.5, 10.0, np.inf, np.inf, np.inf)


@dataclass(frozen=True)
class CutProblem:
    """Noisy values of a tree, an invariant that some counts satisfy, weights, and a level."""

    tree: cg.Tree
    y: np.ndarray
    invariant: cg.Invariant
    weight: np.ndarray
    level: int
    bounded: bool

    @property
    def size(self):
        """Largest number of the problem, the unit of rounding errors."""
        return max(1.0, float(np.abs(self.y).max()))


def random_cut(seed, most=14, weights="plain", largest=30):
    """Return a random problem of at most `most` nodes, counts below `largest` at the leaves."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, most))
    roots = rng.random(n) < 0.05
    roots[0], roots[1] = True, False
    parents = np.array([-1 if roots[i] else rng.integers(max(0, i - 5), i) for i in range(n)])
    order = rng.permutation(n)
    place = np.argsort(order)
    tree = cg.Tree.from_parents([-1 if parents[v] < 0 else place[parents[v]] for v in order])
    x = tree.roll_up(rng.integers(0, largest, tree.leaves.size))
    pinned = rng.random(n) < 0.2
    y = np.where(pinned, x, x + rng.normal(0.0, rng.choice([1, 10, 100]), n))
    lo, hi = x - rng.choice(SLACK, n), x + rng.choice(SLACK, n)
    kind = int(rng.integers(4))
    invariant = cg.consistent(tree)
    if kind == 0:
        invariant = invariant & cg.bounds(lo, hi)
    elif kind == 1:
        invariant = invariant & cg.nonnegative()
    elif kind == 2:
        invariant = invariant & cg.bounds(lo, np.inf)
    if pinned.any():
        invariant = invariant & cg.exactly(np.flatnonzero(pinned))
    weight = rng.choice(WEIGHTS[weights], n)
    level = int(rng.integers(0, tree.depth - 1))
    return CutProblem(tree, y, invariant, weight, level, kind < 3)


def scaled_cut(seed):
    """Return a random problem whose counts, noise, weights and bounds differ by many powers of 10.

    Up to 29 nodes; often most of them are not measured.
    """
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 30))
    further = (
        -1 if rng.random() < 0.05 else int(rng.integers(max(0, i - 6), i)) for i in range(2, n)
    )
    tree = cg.Tree.from_parents([-1, 0, *further])
    sizes = 10.0 ** rng.uniform(-1, rng.choice([2, 4, 6]), tree.leaves.size)
    x = tree.roll_up(sizes.astype(np.int64))
    noisy = rng.random(n) < rng.random()
    y = x + np.where(noisy, rng.normal(0, 1, n) * 10.0 ** rng.uniform(-1, 5, n), 0.0)
    pinned = rng.random(n) < rng.choice([0.0, 0.1, 0.3])
    y = np.where(pinned, x, y)
    weight = 10.0 ** rng.uniform(-rng.choice([0, 2, 6, 12]), 0, n)
    weight *= rng.random(n) < rng.choice([0.2, 0.5, 1.0])
    slack = 10.0 ** rng.uniform(-1, 5, (2, n)) * (rng.random((2, n)) < 0.8)
    slack[rng.random((2, n)) < rng.random((2, 1))] = np.inf
    invariant = cg.consistent(tree) & cg.bounds(x - slack[0], x + slack[1])
    if pinned.any():
        invariant = invariant & cg.exactly(np.flatnonzero(pinned))
    level = int(rng.integers(0, tree.depth - 1))
    return CutProblem(tree, y, invariant, weight, level, bounded=True)
