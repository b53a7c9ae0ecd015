"""Random trees that are cut at a level, conditioned at once and by parts."""

from __future__ import annotations

import numpy as np

import congenial as cg
from congenial.conditioning.parted import condition_by_parts

SCALES = (0.3, 1.0, 2.0, 6.0)


def random_parted(seed, most, *, scales=SCALES, mean=(0.0, 0.3, 2.0, 20.0)):
    """Return (tree, counts, the mechanism at once, and by parts); mostly nonnegative counts."""
    source = np.random.default_rng([5, seed])
    n = int(source.integers(4, most))
    parents = [-1, *(int(source.integers(0, max(1, min(v, 1 + n // 3)))) for v in range(1, n))]
    if n > 4 and max(parents) == 0:
        parents[-1] = 1
    tree = cg.Tree.from_parents(parents)
    counts = tree.roll_up(source.poisson(source.choice(mean), tree.leaves.size))
    scale = source.choice(scales, n) if source.random() < 0.5 else np.full(n, source.choice(scales))
    law = cg.DiscreteLaplace if source.random() < 0.7 else cg.DiscreteGaussian
    invariant = cg.consistent(tree)
    if source.random() < 0.8:
        invariant &= cg.nonnegative()
    if source.random() < 0.5:
        invariant &= cg.exactly([0])
    elif source.random() < 0.3:
        invariant &= cg.exactly(source.choice(n, 2, replace=False).tolist())
    level = int(source.integers(0, max(1, tree.depth - 1)))
    if tree.depth == 1 or level > tree.depth - 2:
        level = 0
    noisy = cg.Additive(law(scale), tree)
    whole = cg.condition(noisy, invariant, "exact")
    return tree, counts, whole, condition_by_parts(noisy, invariant, level)


def biased_parted(seed):
    """Return the same for a tree with many zero leaves, whose noise is pressed against its bounds.

    Levels may be unmeasured and the root exact, so that windows must be placed by the top.
    """
    source = np.random.default_rng([6, seed])
    depth = int(source.integers(2, 5))
    parents, last = [-1], [0]
    for d in range(depth):
        fresh = []
        for v in last:
            most = 30 if d == depth - 1 else (6, 5, 4)[d] + 1
            for _ in range(int(source.integers(1, most))):
                fresh.append(len(parents))
                parents.append(v)
        last = fresh
    tree = cg.Tree.from_parents(parents)
    counts = tree.roll_up(source.poisson(source.choice([0.0, 0.05, 0.3, 5.0]), tree.leaves.size))
    level = int(source.integers(0, tree.depth - 1))
    scale = source.choice([0.2, 1.0, 2.0, 10.0], tree.depth)
    unmeasured = source.random(tree.depth) < 0.25
    unmeasured[level] = unmeasured[-1] = False
    scale[unmeasured] = np.inf
    law = cg.DiscreteLaplace if source.random() < 0.7 else cg.DiscreteGaussian
    invariant = cg.consistent(tree) & cg.nonnegative()
    if source.random() < 0.7:
        invariant &= cg.exactly([0])
    noisy = cg.Additive(law(scale[tree.level]), tree)
    whole = cg.condition(noisy, invariant, "exact")
    return tree, counts, whole, condition_by_parts(noisy, invariant, level)
