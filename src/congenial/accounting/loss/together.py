"""Entries that differ from each other by constants, so that they leave their true values together.

`proofs/inequalities.md` says what this saves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from congenial.invariants.resolved import ResolvedInvariant
from congenial.types import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Together:
    """Sets of entries whose values, or whose negated values, differ by constants."""

    # shape (n,): The first entry of the set of each entry. An entry that is a constant, or that no
    # sum of two links to another, is a set of its own.
    first: IntArray
    one_line: bool  # Whether all entries that are not constants form one set.

    def sum(self, cost: FloatArray) -> FloatArray:
        """Sum costs over the set of each entry, shape (n,)."""
        return np.asarray(np.bincount(self.first, cost, cost.size)[self.first])


def moving_together(resolved: ResolvedInvariant) -> Together:
    """Find the entries that an invariant links, one sum or equality at a time.

    A sum or an equality with two entries that are not constants, and with coefficients 1 or -1
    there, links these two. Every release that agrees with the data on what is published exactly
    satisfies it.
    """
    free = ~resolved.determined
    one, two = _links(resolved, free)
    first = np.arange(resolved.n)
    while one.size:
        before = first.copy()
        least = np.minimum(first[one], first[two])
        np.minimum.at(first, before[one], least)
        np.minimum.at(first, before[two], least)
        first = first[first]
        if (first == before).all():
            break
    kept = first[free]
    return Together(first, bool(kept.size and (kept == kept[0]).all()))


def together_in_union(alternatives: Sequence[ResolvedInvariant]) -> Together:
    """Find the entries that all alternatives of a union link, whatever their bounds."""
    common = replace(
        alternatives[0].exact_part,
        pinned=np.logical_and.reduce([resolved.pinned for resolved in alternatives]),
    )
    matrix, values = common.equalities
    same = all(
        np.array_equal(matrix, resolved.equalities[0])
        and np.array_equal(values, resolved.equalities[1])
        for resolved in alternatives
    )
    if not same:
        common = replace(common, equalities=(matrix[:0], values[:0]))
    return moving_together(common)


def _links(resolved: ResolvedInvariant, free: BoolArray) -> tuple[IntArray, IntArray]:
    """Pairs of free entries that are alone in a sum or an equality."""
    pairs = [np.zeros((0, 2), dtype=np.int64)]
    sums = resolved.sums
    if sums is not None and sums.totals.size:
        of_part, m = sums.sum_of_part, sums.totals.size
        parts, totals = free[sums.parts], free[sums.totals]
        two = np.bincount(of_part[parts], minlength=m) + totals == 2
        parts, totals = parts & two[of_part], totals & two
        entries = np.concatenate((sums.parts[parts], sums.totals[totals]))
        owner = np.concatenate((of_part[parts], np.flatnonzero(totals)))
        pairs.append(entries[np.argsort(owner, kind="stable")].reshape(-1, 2))
    for row in resolved.equalities[0]:
        at = np.flatnonzero((row != 0.0) & free)
        if at.size == 2 and abs(row[at[0]]) == abs(row[at[1]]):
            pairs.append(at[None, :])
    one, two = np.concatenate(pairs).T
    return np.asarray(one, dtype=np.int64), np.asarray(two, dtype=np.int64)
