"""Irreducible infeasible subsets of invariants, from an oracle for feasibility alone."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol


class Oracle(Protocol):
    """Decides whether invariants are feasible together."""

    def holds(self, kept: frozenset[int]) -> bool:
        """Whether the invariants in `kept` can hold together."""


def irreducible(oracle: Oracle, infeasible: Iterable[int]) -> frozenset[int]:
    """Reduce an infeasible set to an irreducible infeasible subset.

    References
    ----------
    Junker (2004), QuickXplain.
    """

    def explain(given: frozenset[int], fresh: bool, rest: list[int]) -> list[int]:
        if fresh and not oracle.holds(given):
            return []
        if len(rest) == 1:
            return rest
        half = len(rest) // 2
        second = explain(given | set(rest[:half]), True, rest[half:])
        first = explain(given | set(second), bool(second), rest[:half])
        return first + second

    listed = sorted(infeasible)
    if not oracle.holds(frozenset()):
        return frozenset()
    return frozenset(explain(frozenset(), False, listed))
