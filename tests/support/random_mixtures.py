"""Random unions and mixtures over small trees, with the laws of their parts."""

from __future__ import annotations

import numpy as np

import congenial as cg
from support.enumeration import enumerate_law, rows_of

INF = np.inf
LAWS = {"laplace": cg.DiscreteLaplace, "gaussian": cg.DiscreteGaussian}


def mixture_at_random(seed):
    """A union or a mixture over a small tree, its counts, and the laws of its parts."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 6))
    parents = [-1] + [int(rng.integers(0, v)) for v in range(1, n)]
    tree = cg.Tree.from_parents(parents)
    x = np.asarray(tree.roll_up(rng.integers(0, 5, tree.leaves.size)))
    floor = 0.0 if seed % 3 else -INF
    need = cg.consistent(tree) & cg.exactly(0)
    if floor == 0.0:
        need &= cg.nonnegative()
    scales, rows = rng.choice([0.5, 1.0, 1.6], size=(2, n)), rows_of(parents)
    if seed % 2:
        kind = "laplace" if seed % 4 == 1 else "gaussian"
        v = int(rng.integers(1, n))
        lo, hi = np.full((2, n), -INF), np.full((2, n), INF)
        hi[0, v], lo[1, v] = x[v], x[v] + 1
        one, other = (need & cg.bounds(*ends) for ends in zip(lo, hi, strict=True))
        made = cg.condition(cg.Additive(LAWS[kind](scales[0]), tree), one | other)
        with np.errstate(divide="ignore"):  # of nothing
            found = [
                enumerate_law(rows, kind, scales[0], x, [0], np.maximum(low, floor), high)
                for low, high in zip(lo, hi, strict=True)
            ]
        return made, x, [law for law in found if law.states.size], (1.0, 1.0)
    kinds = ("laplace", "gaussian") if seed % 4 else ("laplace", "laplace")
    parts = [cg.Additive(LAWS[kind](own), tree) for kind, own in zip(kinds, scales, strict=True)]
    weights = (0.35, 0.65)
    found = [
        enumerate_law(rows, kind, own, x, [0], floor)
        for kind, own in zip(kinds, scales, strict=True)
    ]
    return cg.condition(cg.mixture(parts, weights), need), x, found, weights
