"""Irreducible infeasible subsets of invariants, from an oracle for feasibility alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable


def irreducible(
    holds: Callable[[frozenset[int]], bool], infeasible: Iterable[int]
) -> frozenset[int]:
    """Reduce an infeasible set to an irreducible infeasible subset (QuickXplain; Junker 2004).

    `holds` decides whether some of its members can hold together.
    """

    def explain(given: frozenset[int], fresh: bool, rest: list[int]) -> list[int]:
        if fresh and not holds(given):
            return []
        if len(rest) == 1:
            return rest
        half = len(rest) // 2
        second = explain(given | set(rest[:half]), True, rest[half:])
        first = explain(given | set(second), bool(second), rest[:half])
        return first + second

    if not holds(frozenset()):
        return frozenset()
    return frozenset(explain(frozenset(), False, sorted(infeasible)))
