"""Smallest sets of statements that clash, from answers to "can these hold together?" alone."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from congenial.types import BoolArray

# Answers asked for, and branches of a search for hitting sets, before the fewest are given up.
_MOST_ASKED = 600
_MOST_BRANCHES = 20_000


class Oracle(Protocol):
    """Tells whether statements can hold together."""

    def holds(self, kept: frozenset[int]) -> BoolArray | None:
        """Which of all statements hold at some point where those kept do; None where they clash."""


@dataclass(frozen=True)
class Infeasible:
    """Statements that clash.

    Attributes
    ----------
    members : frozenset of int
        Any proper subset can hold.
    fewest : bool
        Whether no smaller set clashes.
    """

    members: frozenset[int]
    fewest: bool


def irreducible(oracle: Oracle, clashing: Iterable[int]) -> frozenset[int]:
    """Reduce statements that clash to some of them of which none can be spared.

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

    listed = sorted(clashing)
    if oracle.holds(frozenset()) is None:
        return frozenset()
    return frozenset(explain(frozenset(), False, listed))


def fewest(oracle: Oracle, size: int, clashing: Iterable[int]) -> Infeasible:
    """Find the fewest statements that clash among `size`, of which those given do.

    Notes
    -----
    Whatever clashes has a member outside of every set that can hold. A smallest set that meets the
    complements of all the sets found so far is tried: if it clashes, no smaller one does; if it can
    hold, it is made as large as it goes, and its complement is one more to meet.

    References
    ----------
    Ignatiev, Previti, Liffiton and Marques-Silva (2015), Smallest MUS extraction with minimal
    hitting set dualization.
    """
    best = irreducible(oracle, clashing)
    met: list[frozenset[int]] = []
    asked = 0
    for left in sorted(best):  # all but one of them can hold: cheap sets to begin with
        found, spent = _grown(oracle, best - {left}, size)
        if found is None or asked > _MOST_ASKED:  # rounding has spoken against itself, or too long
            return Infeasible(best, False)
        asked += spent
        met.append(frozenset(range(size)) - found)
    while asked <= _MOST_ASKED:
        tried = hitting_set(met, len(best))
        if tried is None:
            return Infeasible(best, False)
        if len(tried) >= len(best):
            return Infeasible(best, True)
        found, spent = _grown(oracle, tried, size)
        if found is None:
            return Infeasible(tried, True)
        asked += spent
        met.append(frozenset(range(size)) - found)
    return Infeasible(best, False)


def _grown(oracle: Oracle, kept: frozenset[int], size: int) -> tuple[frozenset[int] | None, int]:
    """Add statements to those kept until one more would clash; return them and the questions.

    None where those kept clash themselves.
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
        """Number of sets without a common member, each of which costs one."""
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
