"""Largest change between neighbouring datasets at each level of a tree: the unit of its noise."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from congenial.accounting.loss.inequalities import Pairs, sorted_pairs
from congenial.accounting.loss.together import moving_together
from congenial.accounting.neighbours.joint_moves import JointMoves, forced_moves
from congenial.accounting.neighbours.leeway import with_implied
from congenial.accounting.neighbours.single_moves import Neighbours, changed_entries, worst_move
from congenial.domain.tree import Tree
from congenial.domain.workload import Workload
from congenial.invariants.resolved import ResolvedInvariant
from congenial.types import BoolArray, FloatArray


@dataclass(frozen=True)
class LevelUnits:
    """Largest changes of the levels between neighbouring datasets."""

    # shape (depth,): Largest sum of the changes of a level's counts, or of their squares: 2 if one
    # record moves, 1 if one enters or leaves.
    largest: FloatArray
    joint: JointMoves | None  # The moves of several records if none can move alone.

    def of(self, share: FloatArray) -> FloatArray:
        """Units at given shares, shape (depth,), scaled so that some pair uses all of the budget.

        They are smaller than `largest` if no single joint move changes all levels the most.
        """
        if self.joint is None:
            return self.largest
        used = share * (self.joint.sums.max(axis=0) > 0)
        worst = float((self.joint.sums @ (share / self.largest)).max())
        return self.largest * (worst / used.sum()) if worst > 0.0 else self.largest


def joint_pairs(
    units: LevelUnits,
    joint: JointMoves,
    share: FloatArray,
    resolved: ResolvedInvariant,
    tree: Tree,
    counts: BoolArray | None,
) -> Pairs:
    """Pairs of neighbours that move several records, at a budget of 1."""
    rate = share / units.of(share)
    worst = float((joint.sums @ rate).max())
    if counts is None:
        return Pairs(worst, np.zeros(0), np.zeros(0), 0.0)
    cost = np.where(resolved.pinned, 0.0, rate[tree.level])
    through = np.where(joint.changes, worst, -np.inf)
    summed = moving_together(resolved).sum(cost)
    return sorted_pairs(summed, through, counts, steps=1.0)


def level_units(
    tree: Tree, resolved: ResolvedInvariant, neighbours: Neighbours, *, power: int = 1
) -> LevelUnits:
    """Find what neighbouring datasets change at each level of a tree."""
    cost = np.zeros(len(tree))

    def groups() -> FloatArray:
        inside = (tree.level[:, None] == np.arange(tree.depth)) & ~resolved.pinned[:, None]
        return np.asarray(inside, dtype=np.float64)

    joint = forced_moves(cost, resolved, tree, neighbours, power=power, groups=groups)
    units = np.full(tree.depth, 2.0 if neighbours == "substitute" else 1.0)
    if joint is not None:
        most = joint.sums.max(axis=0)
        units = np.where(most > 0.0, most, units)
    return LevelUnits(units, joint)


def changing_levels(
    domain: Tree | Workload,
    resolved: ResolvedInvariant,
    neighbours: Neighbours,
    *,
    one_sided: bool = False,
) -> list[int]:
    """Levels, or blocks, where some count differs between some neighbouring datasets.

    With `one_sided`, a substituted record may also enter or leave.
    """
    if isinstance(domain, Workload):
        counted: Tree | Workload = domain.tree or domain
        known = resolved = with_implied(resolved, counted)
    else:
        counted, known = domain, replace(resolved, pinned=resolved.determined)
    none = np.zeros(resolved.n)
    joint = None if one_sided else forced_moves(none, known, counted, neighbours)
    if joint is None:
        changes = changed_entries(resolved, counted, neighbours, one_sided=one_sided)
        if neighbours != "substitute" or not changes.any():
            worst_move(none, resolved, counted, neighbours)  # raises if there are no neighbours
    else:
        changes = joint.changes
    return [int(level) for level in np.unique(domain.level[changes & ~resolved.pinned])]
