"""Wide families, divided into groups whose sums are variables without weights.

A draw of a family of k members takes about sqrt(k) attempts, each of k values
(`kernels.network.family_draws`). In groups of sqrt(k), it takes sqrt(k) draws of sqrt(k) members.
The tables of groups are shorter than those of all members together, too.
"""

from __future__ import annotations

import numpy as np

from congenial.kernels.numerics import laws
from congenial.sum_network import SharedUnary, SumForest, Unary
from congenial.sum_network.families.wide_noise import scales_are_wide
from congenial.types import Indices, IntArray

# Most members of a family that is not divided.
_MOST = 64


def narrowed(forest: SumForest, weights: SharedUnary) -> tuple[SumForest, SharedUnary]:
    """Return `divided` where the noise is wide, else the forest and its weights as they are.

    Under narrow noise the tilts of a family and of its members differ much. A group has no weight,
    so its tilt is that of its family, and tables of its members would be filled many times.
    """
    return divided(forest, weights) if scales_are_wide(forest, weights) else (forest, weights)


def divided(forest: SumForest, weights: SharedUnary) -> tuple[SumForest, SharedUnary]:
    """Return a forest without wide families, and its weights.

    The sums of groups come after the variables and the sums of the given forest. Families of leaves
    alone stay as they are.
    """
    n, m, owner, above = forest.n, forest.m, forest.owner, forest.above
    size = np.bincount(above[above >= 0], minlength=m)
    top = above[owner[owner >= 0]]
    wide = (size > _MOST) & (np.bincount(top[top >= 0], minlength=m) > 0)
    if not wide.any():
        return forest, weights
    member = np.flatnonzero((above >= 0) & wide[above])
    member = member[np.argsort(above[member], kind="stable")]
    family = above[member]
    rank = np.arange(member.size) - np.searchsorted(family, family)
    number = np.where(wide, np.ceil(np.sqrt(size)), 0.0).astype(np.int64)
    begins = np.cumsum(number) - number
    group = begins[family] + rank * number[family] // size[family]
    groups = np.arange(int(number.sum()))
    of = np.repeat(np.arange(m), number)
    inside = np.concatenate((above, of)).astype(np.int32)
    inside[member] = m + group
    owners = np.concatenate((owner, n + groups)).astype(np.int32)
    one = np.ones(groups.size, dtype=np.int8)
    narrow = SumForest(
        inside,
        owners,
        np.concatenate((forest.sign, one)),
        np.concatenate((forest.orientation, one)),
        _depths(forest, inside, of),
    )
    unary = weights.unary
    flat = laws.FLAT, np.inf, 0.0, -np.inf, np.inf
    columns = unary.kind, unary.scale, unary.center, unary.lo, unary.hi
    with_flat = (np.append(column, value) for column, value in zip(columns, flat, strict=True))
    code = np.append(weights.code, np.full(groups.size, unary.kind.size, dtype=np.int32))
    return narrow, SharedUnary(Unary(*with_flat), code)


def _depths(forest: SumForest, above: Indices, of: IntArray) -> Indices:
    """Return the depths of all sums; `of` has the family of each group."""
    m = forest.m
    depth = np.zeros(m + of.size, dtype=np.int32)
    for d in range(int(forest.depth.max()) + 1):
        here = np.flatnonzero(forest.depth == d)
        owner = forest.owner[here]
        over = np.where(owner >= 0, above[owner], -1)
        depth[here] = np.where(over >= 0, depth[over] + 1, 0)
        mine = forest.depth[of] == d
        depth[m:][mine] = depth[of[mine]] + 1
    return depth
