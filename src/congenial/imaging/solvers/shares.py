"""The L1 images of a sum: any shares of the gap between sum and total are equally close."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from congenial.errors import ArgumentError, UnsupportedError
from congenial.imaging.solvers.problem import TOLERANCE, Links
from congenial.invariants.resolved import ResolvedInvariant
from congenial.types import FloatArray, IntArray

Families = tuple[tuple[IntArray, IntArray], ...]


def families(links: Links, resolved: ResolvedInvariant) -> Families:
    """Return, for each fixed sum, its pinned entries and those that can move."""
    tree = links.tree
    fixed = np.concatenate((resolved.pinned, np.ones(len(tree) - resolved.n, dtype=np.bool_)))
    inner = ~tree.is_leaf
    if resolved.has_inequalities or not fixed[inner].all():
        raise UnsupportedError(
            "beta chooses among the L1 images of fixed sums of single entries, without bounds "
            "and with every sum published exactly; leave beta out for the image whose entries all "
            "move alike."
        )
    starts, children = tree.children
    found = []
    for v in np.flatnonzero(inner):
        members = children[starts[v] : starts[v + 1]]
        free = members[~fixed[members]]
        if free.size:
            found.append((np.concatenate(([v], members[fixed[members]])), np.sort(free)))
    return tuple(found)


def checked_shares(
    beta: npt.ArrayLike, sums: Families, resolved: ResolvedInvariant, weight: FloatArray
) -> FloatArray:
    """Return the share that each entry takes of its sum's gap, shape (n,)."""
    given = np.asarray(beta)
    if given.dtype.kind not in "iuf" or given.shape not in ((), (resolved.n,)):
        raise ArgumentError(
            f"beta has shape {given.shape} and dtype {given.dtype}; give a number for sums of two "
            f"entries, or {resolved.n} shares."
        )
    if not (np.isfinite(given).all() and (given >= 0).all() and (given <= 1).all()):
        raise ArgumentError(f"beta is {beta!r}; give numbers between 0 and 1.")
    shares = np.zeros(resolved.n)
    for _, free in sums:
        if given.ndim == 0:
            if free.size != 2:
                raise ArgumentError(
                    f"beta is {float(given):g} and a sum has {free.size} free entries; give one "
                    "share an entry."
                )
            shares[free] = 1.0 - float(given), float(given)
        else:
            shares[free] = given[free]
        total = math.fsum(shares[free])
        if abs(total - 1.0) > TOLERANCE:
            raise ArgumentError(
                f"beta adds up to {total:.12g} over a sum of {free.size} free entries; its shares "
                "must add up to 1."
            )
        heavy = free[(shares[free] > 0) & (weight[free] > weight[free].min())]
        if heavy.size:
            raise ArgumentError(
                f"beta moves {resolved.name(int(heavy[0]))}, which weighs more than another of its "
                "sum, so the result is not closest; give shares to entries of least weight only."
            )
    stray = np.flatnonzero(given.ravel() * (shares == 0)) if given.ndim else np.zeros(0)
    if stray.size:
        raise ArgumentError(
            f"beta moves {resolved.name(int(stray[0]))}, which is pinned or in no sum; give it the "
            "share 0."
        )
    return shares


def share_out(
    sums: Families, mandated: FloatArray, shares: FloatArray, y: FloatArray
) -> FloatArray:
    """Move a vector onto its sums, each entry by its share of its sum's gap.

    Notes
    -----
    Let d be the gap of a sum. Moves that add up to d cost at least |d|, and exactly |d| if no move
    has the opposite sign, that is, if they are shares of d. So these are all the L1 images.
    """
    z = y.copy()
    values = np.concatenate((y, mandated))
    for fixed, free in sums:
        missing = math.fsum([values[fixed[0]], *-values[fixed[1:]], *-y[free]])
        z[free] = y[free] + shares[free] * missing
    return z


def two_bin_factor(
    sums: Families, resolved: ResolvedInvariant, shares: FloatArray, *, whole: bool
) -> float:
    """Return the proved ratio of an image's loss to its noise's, for Laplace noise of one scale.

    Returns ``1 / (2 max(beta, 1 - beta))`` for two bins under one fixed total; 1 otherwise, and
    for noise on a grid unless one bin takes the whole gap.

    Notes
    -----
    With scale s the first bin of a release is ``x_1 + beta u_1 - (1 - beta) u_2``. Raising x_1 by 1
    has the effect of raising u_1 by 1 / beta, which changes the noise's density by a factor of at
    most ``exp(1 / (beta s))``, or of lowering u_2 by ``1 / (1 - beta)``. The smaller of these two
    losses, divided by the loss 2 / s of the noise, is the factor. On a grid u_1 cannot move by
    1 / beta, unless beta is 1. With three bins, some pair of bins takes at most half of the gap
    each, and nothing is gained. See proofs/l1-two-bins.md; Gong and Meng (2020), Theorem A.1.
    """
    if len(sums) != 1 or sums[0][1].size != 2 or int((~resolved.pinned).sum()) != 2:
        return 1.0
    largest = float(shares[sums[0][1]].max())
    if whole and largest < 1.0:
        return 1.0
    return min(1.0, 1.0 / (2.0 * largest))
