"""Smallest infeasible subsets of invariants, from an oracle for feasibility alone."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from congenial.types import BoolArray

# Most calls of the oracle in the search for a smallest subset; then an irreducible one is returned.
_MOST_ASKED = 600
# Most branches in one search for a hitting set.
_MOST_BRANCHES = 20_000


class Oracle(Protocol):
    """Decides whether invariants are feasible together."""

    def holds(self, kept: frozenset[int]) -> BoolArray | None:
        """The invariants that hold at a point where those in `kept` hold; None if infeasible."""


@dataclass(frozen=True)
class IrreducibleInfeasibleSubset:
    """A subset of the invariants that no point satisfies."""

    members: frozenset[int]  # Any proper subset can hold.
    fewest: bool  # Whether no smaller subset is infeasible.


def irreducible(oracle: Oracle, infeasible: Iterable[int]) -> frozenset[int]:
    """Reduce an infeasible set to an irreducible infeasible subset.

    References
    ----------
    Junker (2004), QuickXplain.
    """

    def explain(given: frozenset[int], fresh: bool, rest: list[int]) -> list[int]:
        if fresh and oracle.holds(given) is None:
            return []
        if len(rest) == 1:
            return rest
        half = len(rest) // 2
        second = explain(given | set(rest[:half]), True, rest[half:])
        first = explain(given | set(second), bool(second), rest[:half])
        return first + second

    listed = sorted(infeasible)
    if oracle.holds(frozenset()) is None:
        return frozenset()
    return frozenset(explain(frozenset(), False, listed))


def fewest(oracle: Oracle, size: int, infeasible: Iterable[int]) -> IrreducibleInfeasibleSubset:
    """Find a smallest infeasible subset of `size` invariants, given an infeasible set of them.

    Notes
    -----
    Every infeasible subset has a member outside each feasible set. Try a smallest set that meets
    the complements of all feasible sets found so far. If it is infeasible, no smaller one is. If
    it is feasible, grow it until no invariant can be added; its complement is one more to meet.

    References
    ----------
    Ignatiev, Previti, Liffiton and Marques-Silva (2015), Smallest MUS extraction with minimal
    hitting set dualization.
    """
    best = irreducible(oracle, infeasible)
    met: list[frozenset[int]] = []
    asked = 0
    for left in sorted(best):  # sets without one invariant are feasible, and cheap to begin with
        found, spent = _grown(oracle, best - {left}, size)
        if (
            found is None or asked > _MOST_ASKED
        ):  # the oracle was inconsistent by rounding, or the search too long
            return IrreducibleInfeasibleSubset(best, False)
        asked += spent
        met.append(frozenset(range(size)) - found)
    while asked <= _MOST_ASKED:
        tried = hitting_set(met, len(best))
        if tried is None:
            return IrreducibleInfeasibleSubset(best, False)
        if len(tried) >= len(best):
            return IrreducibleInfeasibleSubset(best, True)
        found, spent = _grown(oracle, tried, size)
        if found is None:
            return IrreducibleInfeasibleSubset(tried, True)
        asked += spent
        met.append(frozenset(range(size)) - found)
    return IrreducibleInfeasibleSubset(best, False)


def _grown(oracle: Oracle, kept: frozenset[int], size: int) -> tuple[frozenset[int] | None, int]:
    """Add invariants to those kept until no other is feasible; return them and the number of calls.

    None where those kept are infeasible themselves.
    """
    held = oracle.holds(kept)
    if held is None:
        return None, 1
    asked = 1
    out = kept | set(np.flatnonzero(held).tolist())
    for k in range(size):
        if k in out:
            continue
        held = oracle.holds(out | {k})
        asked += 1
        if held is not None:
            out = out | {k} | set(np.flatnonzero(held).tolist())
    return out, asked


def hitting_set(sets: list[frozenset[int]], limit: int) -> frozenset[int] | None:
    """Return a smallest set that meets all of `sets`, or any of size `limit` if none is smaller.

    Returns None where the search grows too large.
    """
    branches = 0
    best: frozenset[int] = frozenset(range(-limit, 0))

    def apart(left: list[frozenset[int]]) -> int:
        """Number of disjoint sets: a lower bound on the size of a hitting set."""
        count = 0
        seen: set[int] = set()
        for one in sorted(left, key=len):
            if seen.isdisjoint(one):
                count += 1
                seen |= one
        return count

    def search(chosen: frozenset[int], left: list[frozenset[int]], barred: frozenset[int]) -> bool:
        nonlocal branches, best
        branches += 1
        if branches > _MOST_BRANCHES:
            return False
        if not left:
            if len(chosen) < len(best):
                best = chosen
            return True
        if len(chosen) + apart(left) >= len(best):
            return True
        pivot = min(left, key=len)
        often = {k: sum(k in one for one in left) for k in pivot - barred}
        for k in sorted(often, key=lambda k: (-often[k], k)):
            rest = [one - {k} for one in left if k not in one]
            rest = [one - barred for one in rest]
            if all(rest) and not search(chosen | {k}, rest, barred):
                return False
            barred = barred | {k}
        return True

    return best if search(frozenset(), list(sets), frozenset()) else None
