"""Noise on trees, conditioned on lower bounds of leaves."""

from __future__ import annotations

import numpy as np

import congenial as cg

LAWS = {"laplace": cg.DiscreteLaplace, "gaussian": cg.DiscreteGaussian}


def released_by(parents, kind, scales, *, pinned=(), lo=0.0):
    """Return the mechanism under lower bounds of leaves."""
    tree = cg.Tree.from_parents(parents)
    invariant = cg.consistent(tree) & cg.bounds(lo=np.where(tree.is_leaf, lo, -np.inf))
    if len(pinned):
        invariant &= cg.exactly(list(pinned))
    return cg.condition(cg.Additive(LAWS[kind](scales), tree), invariant)
