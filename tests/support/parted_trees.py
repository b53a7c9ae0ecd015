"""Random trees that are cut at a level: conditioned, or measured, at once and by parts."""

from __future__ import annotations

import numpy as np

import congenial as cg
from congenial.conditioning.parted import condition_by_parts

SCALES = (0.3, 1.0, 2.0, 6.0)


def random_tree(source, most):
    """Return a tree of at most `most` nodes and at least two levels."""
    n = int(source.integers(4, most))
    parents = [-1, *(int(source.integers(0, max(1, min(v, 1 + n // 3)))) for v in range(1, n))]
    if n > 4 and max(parents) == 0:
        parents[-1] = 1
    return cg.Tree.from_parents(parents)


def random_level(source, tree):
    """Return the depth of a level with nodes below it."""
    return int(source.integers(0, tree.depth - 1))


def random_parted(seed, most, *, scales=SCALES, mean=(0.0, 0.3, 2.0, 20.0)):
    """Return (tree, counts, the mechanism at once, and by parts); mostly nonnegative counts."""
    source = np.random.default_rng([5, seed])
    tree = random_tree(source, most)
    n = len(tree)
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
    level = random_level(source, tree)
    noisy = cg.Additive(law(scale), tree)
    whole = cg.condition(noisy, invariant, "exact")
    return tree, counts, whole, condition_by_parts(noisy, invariant, level)


def invariant_of(tree, whole):
    """Return the invariant of a mechanism of `random_parted`."""
    invariant = cg.consistent(tree)
    if np.isfinite(whole.resolved.lo).any():
        invariant &= cg.nonnegative()
    pinned = np.flatnonzero(whole.fixed).tolist()
    return invariant & cg.exactly(pinned) if pinned else invariant


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


def measured_parted(seed, most, *, scales=SCALES, mean=(0.0, 0.3, 2.0, 20.0), unmeasured=0.2):
    """Return (y, noise, invariant, level) of a posterior that can be drawn in parts.

    Counts are mostly nonnegative, some are exact or have bounds, and some are not measured.
    """
    source = np.random.default_rng([7, seed])
    tree = random_tree(source, most)
    n = len(tree)
    x = tree.roll_up(source.poisson(source.choice(mean), tree.leaves.size))
    scale = source.choice(scales, n) if source.random() < 0.5 else np.full(n, source.choice(scales))
    y = x + np.rint(source.laplace(0.0, scale)).astype(np.int64)
    law = cg.DiscreteLaplace if source.random() < 0.7 else cg.DiscreteGaussian
    level = random_level(source, tree)
    invariant = cg.consistent(tree)
    if bounded := source.random() < 0.8:
        invariant &= cg.nonnegative()
        if source.random() < 0.3:
            hi = np.where(source.random(n) < 0.2, x + source.integers(1, 5, n), np.inf)
            invariant &= cg.bounds(np.zeros(n), hi)
    pinned = np.zeros(0, dtype=np.int64)
    if source.random() < 0.4:
        pinned = source.choice(n, int(source.integers(1, 3)), replace=False)
        invariant &= cg.exactly(pinned.tolist())
        y[pinned] = x[pinned]
    if bounded and source.random() < 0.5:
        # the roots of parts stay measured, so that every part has a law of its own
        scale = np.where((source.random(n) < unmeasured) & (tree.level != level), np.inf, scale)
        scale[0] = 1.0
    return y, cg.Additive(law(scale), tree), invariant, level


def measured_wide(parts, blocks, *, exact, scale=13.0):
    """Return (y, noise, invariant) of many small counts whose noise is far larger."""
    source = np.random.default_rng(1)
    blocks = np.maximum(source.poisson(blocks, parts), 2)
    first = parts + 1 + blocks.sum()
    above = np.repeat(np.arange(1, parts + 1), blocks), np.repeat(np.arange(parts + 1, first), 16)
    tree = cg.Tree.from_parents(np.concatenate(([-1], np.zeros(parts, dtype=int), *above)))
    size = tree.leaves.size
    x = tree.roll_up(np.where(source.random(size) < 0.1, source.poisson(20, size), 0))
    noisy = cg.Additive(cg.DiscreteLaplace(scale), tree)
    y, invariant = noisy.sample(x, rng=cg.seeded(1)).copy(), cg.consistent(tree) & cg.nonnegative()
    if exact:
        y[0], invariant = x[0], invariant & cg.exactly([0])
    return y, noisy, invariant
