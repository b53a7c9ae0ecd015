"""The datasets that guarantees compare; only guarantees that share neighbours are composed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from congenial.accounting.neighbours.counting import Counted, counting_all
from congenial.accounting.neighbours.joint_moves import check_neighbours
from congenial.accounting.neighbours.leeway import with_implied
from congenial.accounting.neighbours.single_moves import Neighbours
from congenial.domain.tree import Tree
from congenial.domain.workload import Workload
from congenial.errors import EmptyNeighbourhoodError, PrivacyError
from congenial.invariants.resolved import ResolvedInvariant
from congenial.types import BoolArray, FloatArray


@dataclass(frozen=True, eq=False)
class Compared:
    """The datasets that a guarantee compares, in numbers of records."""

    # Neighbours agree on its pins and equalities, which a union's alternatives have in common.
    resolved: ResolvedInvariant
    counted: Counted  # Where a record counts.
    grid: float  # Spacing of the values of the data, in records; 0 if there is no grid.
    fixed: BoolArray  # shape (n,): Pinned entries that records could change without the pin.

    def within(self, other: Compared) -> bool:
        """Whether everything fixed here is known to be fixed in the other guarantee too."""
        if not (self.fixed.any() or self.resolved.equalities[1].size):
            return True
        return (
            self.counts_like(other)
            and not (self.fixed & ~other.fixed).any()
            and _rows(*self.resolved.equalities) <= _rows(*other.resolved.equalities)
        )

    def counts_like(self, other: Compared) -> bool:
        """Whether the entries are the same by name; plain vectors of one length count as same."""
        one, two = self.counted, other.counted
        if one is two:
            return self.resolved.n == other.resolved.n
        if isinstance(one, Tree) and isinstance(two, Tree):
            return one.same_as(two) and one.names == two.names
        if isinstance(one, Workload) and isinstance(two, Workload):
            names = ([block.text for block in each.blocks] for each in (one, two))
            return one.same_as(two) and next(names) == next(names)
        return False


def in_records(
    resolved: ResolvedInvariant,
    counted: Counted,
    neighbours: Neighbours,
    *,
    change: float,
    grid: float,
) -> Compared:
    """Make a `Compared` of a resolved invariant in which a record counts for `change`."""
    fixed = resolved.pinned
    if neighbours == "substitute" and fixed.any():
        fixed = fixed.copy()
        fixed[counting_all(resolved.n, counted)] = False  # the number of records never changes
    if change != 1.0:
        resolved = resolved.in_units(change)
    return Compared(resolved, counted, grid / change, fixed)


def compared_by_all(
    each: Sequence[Compared | None], neighbours: Neighbours, *, at_once: bool = False
) -> Compared | None:
    """Find which datasets several guarantees all compare."""
    known = [one for one in each if one is not None]
    if not known:
        return None
    most = max(known, key=lambda one: (one.resolved.equalities[1].size, int(one.fixed.sum())))
    if not all(one.within(most) and (most.within(one) or not at_once) for one in known):
        raise PrivacyError(
            "the releases publish different things exactly, such as other counts or different "
            "fixed sums, so they may share no neighbouring datasets; let one of them publish "
            "all that the others do, of the same tree, table or vector."
        )
    merged = most
    for one in known:
        if one is not most and one.counts_like(merged):
            merged = _merged(merged, one)
    if merged is not most:
        resolved = with_implied(merged.resolved, merged.counted, grid=merged.grid)
        check_neighbours([resolved], merged.counted, neighbours)
    return merged


def _merged(one: Compared, other: Compared) -> Compared:
    """Take in the other's bounds, where they differ."""
    mine, theirs = one.resolved, other.resolved
    more = _rows(*theirs.inequalities) - _rows(*mine.inequalities)
    if not more and (mine.lo >= theirs.lo).all() and (mine.hi <= theirs.hi).all():
        return one
    low, high = np.maximum(mine.lo, theirs.lo), np.minimum(mine.hi, theirs.hi)
    if (low > high).any():
        raise EmptyNeighbourhoodError(
            "the bounds of the releases exclude each other, so no dataset is within all of them "
            "and a guarantee would say nothing; give them bounds that overlap."
        )
    (rows, values), (others, bounds) = mine.inequalities, theirs.inequalities
    both = np.vstack((rows, others)), np.concatenate((values, bounds))
    resolved = replace(mine, lo=low, hi=high, at_least=both, pairs=mine.relative)
    return replace(one, resolved=resolved, grid=min(one.grid, other.grid))


def _rows(matrix: FloatArray, values: FloatArray) -> set[bytes]:
    # zeros have no sign
    return {row.tobytes() for row in np.column_stack((matrix, values)) + 0.0}
