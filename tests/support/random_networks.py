"""Random trees, noise and invariants, compiled to sums and weights."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import congenial as cg
from congenial.kernels.network.messages import MERGE


def conditioned_at_random(seed, *, scale=1.0):
    """Return a conditioned mechanism of a random tree, and counts; `scale` multiplies the noise."""
    rng = np.random.default_rng(seed)
    parents = [-1]
    while len(parents) < rng.integers(3, 14):
        parents.append(int(rng.integers(0, len(parents))))
    tree = cg.Tree.from_parents(parents)
    x = tree.roll_up(rng.integers(0, 6, tree.leaves.size).tolist())
    need = cg.consistent(tree)
    if seed % 4 in (0, 2):
        need &= cg.nonnegative()
    if seed % 4 in (1, 2):
        need &= cg.exactly(0)
    law = cg.DiscreteLaplace if seed % 3 else cg.DiscreteGaussian
    width = float(rng.choice([0.3, 1.0, 1.5, 3.0])) * scale
    return cg.condition(cg.Additive(law(width), tree), need), np.asarray(x)


def compiled_at_random(seed):
    """Return compiled sums of a random tree, see `congenial.sum_network.compile`."""
    released, x = conditioned_at_random(seed)
    return released._compiled(None if released.data_free else x)


def composed_at_random(seed):
    """Return a conditioned mechanism with runs of like siblings, and counts.

    Draws compose runs of Laplace noise without bounds or at their bounds, and of counts that have
    bounds and no noise.
    """
    rng = np.random.default_rng(seed)
    groups, each = int(rng.integers(1, 4)), int(rng.integers(4, 8))
    tree = cg.Tree.from_parents([-1, *[0] * groups, *np.repeat(np.arange(1, groups + 1), each)])
    leaves = rng.integers(0, 3, tree.leaves.size) if seed % 4 else np.zeros(groups * each, int)
    x = np.asarray(tree.roll_up(leaves.tolist()))
    scales = np.full(len(tree), float(rng.choice([0.4, 1.0, 2.5, 300.0])))
    scales[: groups + 1] = rng.choice([0.7, 1.5, 3.0], size=groups + 1)
    if seed % 5 == 0:
        scales[0] = np.inf
    need = cg.consistent(tree)
    if seed % 3 == 0:
        scales[groups + 1 :] = np.inf
    if seed % 3 == 0 or seed % 4 == 0:
        need &= cg.nonnegative()
    if seed % 2:
        need &= cg.exactly(0)
    return cg.condition(cg.Additive(cg.DiscreteLaplace(scales), tree), need), x


def linear_at_random(seed):
    """Return a conditioned mechanism of entries whose sums are fixed, and counts."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, 9))
    x = rng.integers(0, 5, n)
    cut = int(rng.integers(1, n - 1))
    rows = np.zeros((2, n), dtype=int)
    rows[0, : cut + 1], rows[1, cut:] = 1, rng.choice([-1, 1])
    need = cg.linear(rows, rows @ x)
    if seed % 2:
        need &= cg.nonnegative()
    law = cg.DiscreteLaplace if seed % 3 else cg.DiscreteGaussian
    scales = rng.choice([0.5, 1.0, 2.0], size=1 if seed % 4 else n)
    return cg.condition(cg.Additive(law(scales if seed % 4 == 0 else scales[0]), n), need), x


def with_larger_factors(of, seed):
    """Return envelopes that exceed all sums by factors, so that many attempts are refused."""
    rise = np.random.default_rng(seed).uniform(1.0, 1.6, of.factor.size)
    return replace(of, factor=np.where(of.network.ctype == MERGE, of.factor * rise, of.factor))
