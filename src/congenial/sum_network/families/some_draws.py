"""Draws of some variables of a forest whose tables are those of families, without all others."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from congenial.sum_network.families.equal_families import ranges
from congenial.sum_network.families.family_records import FamilyMembers, FamilySums
from congenial.types import BoolArray, Indices, IntArray


def draws_of_some(sums: FamilySums, nodes: IntArray) -> FamilySums | None:
    """Return tables of some different variables, which are the first ones, in the order given.

    Only families on the ways down to these variables are drawn. What lies below other members is
    left out, and so are its probabilities of acceptance. So the law of a draw differs from that of
    whole draws by at most the probability with which these are rejected (total variation).
    Returns None if some variables follow from others.
    """
    if sums.freed is not None and sums.freed.follows[nodes].any():
        return None
    of, n = sums.families, sums.n
    chosen = sums.order[_on_the_way(sums, nodes)[sums.order]]
    size, owner = np.diff(of.start)[chosen], of.owner[chosen]
    member = of.member[ranges(of.start[chosen].astype(np.int64), size.astype(np.int64))]
    kept = np.concatenate((nodes, np.setdiff1d(np.append(member, owner[owner >= 0]), nodes)))
    number = np.full(n + 1, -1, dtype=np.int32)
    number[kept] = np.arange(kept.size)
    families = FamilyMembers(
        np.append(0, np.cumsum(size)).astype(np.int32),
        number[member],
        number[owner],
        of.root[chosen],
        of.of_leaves[chosen],
        of.lone[kept],
        of.gap[kept],
        of.least[kept],
    )
    tables = sums.tables.of[np.append(kept, n + chosen)]
    order = np.arange(chosen.size, dtype=np.int32)
    found = sums.of_families(families, order, number=chosen, tables=tables)
    return replace(found, variables=nodes.size, freed=None)


def _on_the_way(sums: FamilySums, nodes: IntArray) -> BoolArray:
    """Return which families are drawn before some variables are known, shape (m,)."""
    of, m = sums.families, sums.order.size
    above: Indices = np.full(sums.n, -1, dtype=np.int32)
    above[of.member] = np.repeat(np.arange(m, dtype=np.int32), np.diff(of.start))
    needed = np.zeros(m, dtype=np.bool_)
    # a root is drawn with the family below it
    needed[of.root & np.isin(of.owner, nodes)] = True
    front = above[nodes]
    while front.size:
        front = np.unique(front[front >= 0])
        front = front[~needed[front]]
        needed[front] = True
        owner = of.owner[front]
        front = above[owner[owner >= 0]]
    return needed
