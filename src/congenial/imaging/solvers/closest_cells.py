"""The closest point in L2 of tables whose margins cross, over a whole geography at once."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from congenial.domain.blocks import Block
from congenial.errors import UnsupportedError
from congenial.imaging.solvers.areas import Geography
from congenial.imaging.solvers.cell_descent import CellDescent, one_kind
from congenial.imaging.solvers.linked_tables import order_of
from congenial.imaging.solvers.problem import TOLERANCE
from congenial.invariants.resolved import ResolvedInvariant
from congenial.kernels.projection.crossing import Areas, descend_families
from congenial.types import FloatArray

_MOST_STEPS = 200


def crossing_tables(resolved: ResolvedInvariant, weight: FloatArray) -> CellDescent | None:
    """Set up the tables if margins cross, all cells are measured or known, and the rest is bounds.

    Returns None if exact margins cross: the general solver takes seconds there, and `solve_cells`
    takes a minute or does not end (the table of all counties under two exact margins).
    """
    workload = resolved.workload
    if workload is None or resolved.tree is not None:
        return None
    if resolved.equalities[1].size or resolved.n_inequalities:
        return None
    exact = [b for b in workload.blocks if resolved.pinned[b.start : b.stop].any()]
    for one, other in combinations(exact, 2):
        if one.table is other.table and not _nested(one, other):
            return None
    known = resolved.pinned | (resolved.lo == resolved.hi) | (weight > 0.0)
    if not known[workload.cells].all():
        return None
    return CellDescent(workload, resolved, weight, integer=False)


def linked_tables(resolved: ResolvedInvariant) -> CellDescent | None:
    """Set up tables whose counts are compared, to round a point of them; None for other conditions.

    Returns None if a table is compared with itself, or tables in a circle.
    """
    workload = resolved.workload
    if workload is None or resolved.equalities[1].size or resolved.at_least[1].size:
        return None
    if not len(resolved.linked):
        return None
    try:
        order_of(workload, resolved.linked)
    except UnsupportedError:
        return None
    return CellDescent(workload, resolved, np.ones(resolved.n), integer=True, repairs=True)


def _nested(one: Block, other: Block) -> bool:
    coarse, fine = sorted((one, other), key=lambda block: (block.level, len(block.margin)))
    return coarse.level <= fine.level and set(coarse.margin) <= set(fine.margin)


def solve_cells(descent: CellDescent, values: FloatArray) -> FloatArray | None:
    """Minimise ``sum(weight * (z - values)**2)`` over tables that keep pins and bounds.

    Returns ndarray of float64, shape (n,): sums hold up to rounding. None if the steps do not end
    at the optimum.
    """
    out = np.zeros(descent.resolved.n)
    for geography in descent.tables:
        areas = _whole(geography, descent, values)
        x = np.zeros((geography.parent.size, geography.cells))
        missed = np.zeros(areas.head.size)
        descend_families(areas, 0, missed.size, TOLERANCE, _MOST_STEPS, one_kind(), x, missed)
        if not (missed <= TOLERANCE).all():
            return None
        geography.roll_up(x)
        entries = geography.ids >= 0
        out[geography.ids[entries]] = geography.summed(x)[entries]
    return np.where(descent.resolved.pinned, values, out)


def _whole(geography: Geography, descent: CellDescent, values: FloatArray) -> Areas:
    """Each root with everything below it as one family."""
    low, high = descent.bounds(geography, descent.resolved, values, carry=False)
    weight, target = descent.measured(geography, values, below=False)
    root = np.arange(geography.parent.size)
    for level in range(1, geography.levels.size - 1):
        here = geography.at(level)
        root[here] = root[geography.parent[here]]
    members = np.argsort(root, kind="stable")
    heads, sizes = np.unique(root, return_counts=True)
    first = np.concatenate(([0], np.cumsum(sizes)))
    place = np.empty_like(members)
    place[members] = np.arange(members.size) - np.repeat(first[:-1], sizes)
    above = np.where(geography.parent[members] < 0, 0, place[geography.parent[members]])
    counted = geography.ids >= 0
    head = np.full(heads.size, -1)
    return Areas(first, members, above, head, geography.of, weight, target, low, high, counted)
