"""Random trees, noise and invariants, compiled to sums and weights."""

from __future__ import annotations

import numpy as np

import congenial as cg


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
