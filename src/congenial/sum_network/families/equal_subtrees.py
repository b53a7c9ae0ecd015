"""Equal subtrees below one sum, merged: one stands for all, and tables are filled for it alone.

Most census blocks are empty, and most cells of others are.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from congenial.kernels.network import equal_subtrees as kernels
from congenial.sum_network import SharedUnary, SumForest
from congenial.sum_network.families.family_records import FamilySums
from congenial.sum_network.families.grouping import FamilyTree, families_of
from congenial.types import Indices, IntArray


class Merged(NamedTuple):
    """A forest in which one of equal members of each family stands for all.

    Leaves of families of leaves alone are not merged; such families have few different laws.
    """

    whole: FamilyTree  # The families before.
    forest: SumForest
    weights: SharedUnary
    times: IntArray  # For how many members of its family each variable stands.
    families: IntArray  # For how many sums each sum stands.
    # shapes (n,) and (m,) of the whole forest: Variables and sums that stand for each, -1 for
    # leaves of families of leaves for which another one stands.
    variable: Indices
    sum_of: Indices


def merge_equal(forest: SumForest, weights: SharedUnary) -> Merged:
    """Merge equal subtrees of a forest below each of its sums."""
    whole = families_of(forest, weights)
    n, m, of = forest.n, forest.m, whole.members
    kinds, owner = weights.unary.kind.size, forest.owner
    shape = of.start, of.member, owner
    class_of, ordered = weights.code.astype(np.int32), np.empty_like(of.member)
    top = np.where(owner >= 0, weights.code[owner], -1).astype(np.int32)
    seen = np.full(1 << int(2 * m).bit_length(), -1, dtype=np.int32)
    kernels.classify(whole.bottom_up, *shape, top, kinds, class_of, ordered, seen)
    family_of = np.where(whole.above < 0, np.arange(m), -1).astype(np.int32)
    variable_of: Indices = np.full(n, -1, dtype=np.int32)
    times = np.zeros(n, dtype=np.int32)
    down, laid = whole.bottom_up[::-1], (of.start, ordered, owner, of.of_leaves, whole.below)
    kernels.merge(down, *laid, class_of, family_of, variable_of, times)
    kept, sums = np.flatnonzero(times), np.flatnonzero(family_of == np.arange(m))
    number, number_of_sum = (np.full(k + 1, -1, dtype=np.int32) for k in (n, m))
    number[kept], number_of_sum[sums] = np.arange(kept.size), np.arange(sums.size)
    small = SumForest(
        number_of_sum[forest.above[kept]],
        number[owner[sums]],
        forest.sign[sums],
        forest.orientation[kept],
        forest.depth[sums],
    )
    family = number_of_sum[family_of]
    return Merged(
        whole,
        small,
        SharedUnary(weights.unary, weights.code[kept]),
        times[kept].astype(np.int64),
        np.bincount(family, minlength=sums.size),
        number[variable_of],
        family,
    )


def spread(sums: FamilySums, by: Merged) -> FamilySums:
    """Return tables of a merged forest as those of the whole one."""
    held = np.append(sums.tables.of, np.int32(-1))  # the last for variables of number -1
    tables = np.concatenate((held[by.variable], held[by.forest.n + by.sum_of]))
    order = by.whole.bottom_up[::-1]
    return sums.of_families(by.whole.members, order, number=by.sum_of, tables=tables)
