"""Variables grouped into families, and what their weights say of them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from congenial.kernels.network import equal_families as equality
from congenial.kernels.network import families as grouping
from congenial.kernels.numerics import laws
from congenial.sum_network import SharedUnary, SumForest
from congenial.sum_network.families.family_records import FamilyMembers
from congenial.types import FloatArray, Indices, IntArray


@dataclass(frozen=True, eq=False)
class FamilyTree:
    """The m families of a forest of n variables."""

    members: FamilyMembers
    bottom_up: Indices  # shape (m,): Each sum after all sums below it.
    above: IntArray  # shape (m,): Family of which the owner is a member, -1 for none.
    below: Indices  # shape (n,): Family that each variable owns, -1 for none.
    inverse: FloatArray  # shape (n,): Inverse scales of Laplace noise, else 0.
    rate: FloatArray  # shape (m,): Least of these in a family.
    reach: IntArray  # shape (m,): Largest distance of a member that is a leaf from its bound.

    @property
    def size(self) -> IntArray:
        """Number of members of each family, shape (m,)."""
        return np.diff(self.members.start).astype(np.int64)


def families_of(forest: SumForest, weights: SharedUnary) -> FamilyTree:
    """Return the families of a forest."""
    n, m, owner = forest.n, forest.m, forest.owner
    unary, code = weights.unary, weights.code
    start, bottom_up = np.empty(m + 1, dtype=np.int32), np.empty(m, dtype=np.int32)
    member = np.empty(n, dtype=np.int32)
    begin = grouping.families(forest.above, owner, forest.depth, start, member, bottom_up)
    member = member[: start[-1]]
    if begin >= 0:
        member = np.arange(begin, begin + start[-1], dtype=np.int32)
    below: Indices = np.full(n, -1, dtype=np.int32)
    holds = owner >= 0
    below[owner[holds]] = np.flatnonzero(holds)
    leaf, lo = below < 0, np.where(np.isfinite(unary.lo), unary.lo, 0.0)
    least = np.where(leaf, lo.astype(np.int64)[code], 0)
    gap = np.where(leaf, np.maximum(unary.center - lo, 0.0).astype(np.int64)[code], 0)
    inverse = np.where(unary.kind == laws.LAPLACE, 1.0 / unary.scale, 0.0)[code]
    above = np.where(holds, forest.above[owner], -1).astype(np.int64)
    of_leaves, rate, reach = np.empty(m, dtype=np.bool_), np.empty(m), np.empty(m, dtype=np.int64)
    equality.find_leaves(start, member, ~leaf, inverse, gap, of_leaves, rate, reach)
    lone = leaf & (forest.above >= 0) & ~of_leaves[np.maximum(forest.above, 0)]
    root = holds & (above < 0)
    members = FamilyMembers(start, member, owner, root, of_leaves, lone, gap, least)
    return FamilyTree(members, bottom_up, above, below, inverse, rate, reach)


def leave_free(families: FamilyTree, v: int) -> FamilyTree:
    """Leave out the sum above variable v, whose own sum is no root then and is drawn first."""
    of, f = families.members, int(families.below[v])
    over = int(families.above[f])
    root, lone, above = of.root.copy(), of.lone.copy(), families.above.copy()
    if over >= 0:
        lone[of.member[of.start[over] : of.start[over + 1]]] = False
    root[f], above[f] = False, f  # so the table has the tilt of its own sum
    return replace(
        families,
        members=of._replace(root=root, lone=lone),
        bottom_up=families.bottom_up[families.bottom_up != over],
        above=above,
    )
