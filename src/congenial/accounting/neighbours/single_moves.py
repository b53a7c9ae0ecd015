"""Neighbouring datasets that differ in one record, under pinned values, and their changes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from congenial.accounting.neighbours.counting import Counted, Counting, counting
from congenial.accounting.neighbours.whole_sums import WholeArray, whole_sums
from congenial.domain.tree import Tree
from congenial.errors import ArgumentError, EmptyNeighbourhoodError, PrivacyError
from congenial.invariants.resolved import ResolvedInvariant
from congenial.kernels.numerics import trees
from congenial.kernels.numerics.trees import read_only
from congenial.types import BoolArray, FloatArray, IntArray

Neighbours = Literal["substitute", "add-remove"]
RELATIONS: tuple[Neighbours, ...] = ("substitute", "add-remove")
# Most cells compared with all others in the search for the farthest pair, and most numbers compared
# in it; beyond either limit, a bound replaces the search.
MOST_TRIES = 4096
MOST_COMPARED = 2**29
# Number of cells that are compared first; twice as many follow each time.
_BLOCK = 1 << 10
# Relative rounding error of two sums of the same costs.
_ROUNDING = 2.0**-44


@dataclass(frozen=True)
class WorstMove:
    """The neighbouring pair of datasets with the largest summed cost."""

    cost: float  # Sum of the per-unit costs of all queries that change by one.
    origin: int  # Entry that loses a record, or alone changes.
    destination: int | None  # Entry that gains it; None for add-remove.


def check_relation(neighbours: str) -> None:
    """Check the name of a neighbouring relation."""
    if neighbours not in RELATIONS:
        raise ArgumentError(f"neighbours is {neighbours!r}; give 'substitute' or 'add-remove'.")


def worst_move(
    cost: FloatArray, resolved: ResolvedInvariant, counted: Counted, neighbours: Neighbours
) -> WorstMove:
    """Find the neighbouring pair with the largest summed cost, among those that keep the pins.

    Substituting one record moves one unit from a leaf to another; their common ancestors keep their
    counts. Neighbours agree on every pinned node and every linear condition, so some records may be
    in no pair. If no pair remains, several records move at once (`joint_moves`).
    """
    check_relation(neighbours)
    matrix, _ = resolved.equalities
    if neighbours == "add-remove":
        if resolved.pinned.any() or matrix.shape[0]:
            fixed = "an exactly published count" if resolved.pinned.any() else "a fixed sum"
            raise EmptyNeighbourhoodError(
                f"neighbours = 'add-remove' is refused with {fixed}, or one that bounds determine: "
                "adding or removing a record would change this count; use neighbours = "
                "'substitute', or do not publish it exactly."
            )
        lay = counting(resolved.n, counted)
        path = lay.summed(cost)
        at = int(np.argmax(path))
        return WorstMove(float(path[at]), int(lay.cells[at]), None)
    if counted is None and ((matrix > 0).any(axis=1) & (matrix < 0).any(axis=1)).any():
        raise PrivacyError(
            "a fixed difference between entries of a plain vector means that one record counts "
            "in several of them, but not in which, so no guarantee is known; give the queries as a "
            "Tree or a Workload, or fix sums of entries that share no record."
        )
    if not isinstance(counted, Tree) or matrix.shape[0]:
        return _worst_between_columns(cost, resolved, counted)
    return _worst_in_tree(cost, resolved, counted)


def costs_through(
    cost: FloatArray,
    resolved: ResolvedInvariant,
    counted: Counted,
    neighbours: Neighbours,
    *,
    one_sided: bool = False,
) -> FloatArray:
    """Bound the summed cost of the neighbouring pairs that change each entry, shape (n,).

    The bound is -inf for an entry that no pair changes. On a tree without further linear conditions
    it is the largest cost; elsewhere it is the cost of the worst pair of all. With `one_sided`, a
    substituted record may also enter or leave.
    """
    if one_sided:
        through = costs_through(cost, resolved, counted, neighbours)
        return np.maximum(through, one_sided_costs(cost, resolved, counted))
    if neighbours == "add-remove":
        return one_sided_costs(cost, resolved, counted)
    if not isinstance(counted, Tree) or resolved.equalities[1].size:
        worst = worst_move(cost, resolved, counted, neighbours).cost
        return np.where(resolved.pinned, -np.inf, worst)
    tree, climbs = counted, _climbs(cost, resolved, counted)
    # cost that remains from a node until its pair is complete
    rest = np.empty(len(tree))
    found = climbs.reach, climbs.best, climbs.runner
    trees.complete(*climbs.shape, *found, rest)
    return np.asarray(climbs.reach[:-1] + rest)


def one_sided_costs(cost: FloatArray, resolved: ResolvedInvariant, counted: Counted) -> FloatArray:
    """Largest summed cost of the records whose entering or leaving changes each entry, shape (n,).

    -inf for an entry that no such record changes, because pins forbid it.
    """
    lay = counting(resolved.n, counted)
    path = lay.summed(np.where(resolved.pinned, -np.inf, cost))
    out = np.full(resolved.n, -np.inf)
    for entries in lay.chain:
        inside = entries >= 0
        np.maximum.at(out, entries[inside], path[inside])
    return out


def changed_entries(
    resolved: ResolvedInvariant,
    counted: Counted,
    neighbours: Neighbours,
    *,
    one_sided: bool = False,
) -> BoolArray:
    """Entries, shape (n,), that differ in some pair of neighbours that differ in one record."""
    free = np.zeros(resolved.n)
    if one_sided or neighbours == "add-remove":
        enters = np.isfinite(one_sided_costs(free, resolved, counted))
        if neighbours == "add-remove":
            return enters
        return enters | changed_entries(resolved, counted, neighbours)
    if isinstance(counted, Tree) and not resolved.equalities[1].size:
        return np.isfinite(costs_through(free, resolved, counted, neighbours))
    lay = counting(resolved.n, counted)
    order, starts, sizes = _groups(lay, resolved)
    out = np.zeros(resolved.n + 1, dtype=np.bool_)  # the last place is that of padding
    for entries in lay.chain[:, order]:
        # a record that moves within a group changes the entries that count only a part of the group
        apart = np.minimum.reduceat(entries, starts) != np.maximum.reduceat(entries, starts)
        out[entries[np.repeat(apart, sizes)]] = True
    return out[:-1]


def _groups(lay: Counting, resolved: ResolvedInvariant) -> tuple[IntArray, IntArray, IntArray]:
    """Order of the cells by groups that are alike, and the start and size of each group."""
    group = lay.alike(resolved)
    order = np.argsort(group, kind="stable")
    starts = np.flatnonzero(np.diff(group[order], prepend=-1))
    return order, starts, np.diff(np.append(starts, order.size))


@dataclass(frozen=True)
class _Climbs:
    """The costliest paths upwards from a leaf that meet no pinned node (climbs), `trees.climb`."""

    # The parents, their order, the pinned nodes and the costs, as kernels take them.
    shape: tuple[IntArray, IntArray, BoolArray, FloatArray]
    # shapes (n + 1,): The last place of `best` and `runner` is that of the roots; that of `reach`
    # is -inf, and -1, which stands for no child, finds it.
    reach: FloatArray
    leaf: IntArray
    best: IntArray
    runner: IntArray


def _climbs(cost: FloatArray, resolved: ResolvedInvariant, tree: Tree) -> _Climbs:
    parents, order = read_only(tree.parents), read_only(tree.bottom_up)
    pinned, costs = read_only(resolved.pinned), read_only(cost)
    reach = np.full(len(tree) + 1, -np.inf)
    leaf, best, runner = (np.full(len(tree) + 1, -1, dtype=np.int64) for _ in range(3))
    leaves = read_only(tree.is_leaf)
    trees.climb(parents, order, leaves, pinned, costs, reach, leaf, best, runner)
    return _Climbs((parents, order, pinned, costs), reach, leaf, best, runner)


def _worst_in_tree(cost: FloatArray, resolved: ResolvedInvariant, tree: Tree) -> WorstMove:
    """Costliest pair of leaves: two climbs that meet below a common parent, or end at two roots."""
    climbs = _climbs(cost, resolved, tree)
    pair = climbs.reach[climbs.best] + climbs.reach[climbs.runner]
    at = int(np.argmax(pair))
    if not np.isfinite(pair[at]):
        raise EmptyNeighbourhoodError(
            "the exactly published nodes, and those that bounds determine, leave no two leaves "
            "between which a record could move, so a guarantee would say nothing; publish fewer "
            "nodes exactly, or relax the bounds."
        )
    origin, destination = climbs.leaf[climbs.best[at]], climbs.leaf[climbs.runner[at]]
    return WorstMove(float(pair[at]), int(origin), int(destination))


def _worst_between_columns(
    cost: FloatArray, resolved: ResolvedInvariant, counted: Counted
) -> WorstMove:
    """Costliest pair of cells that contribute equally to every linear condition and pin."""
    lay = counting(resolved.n, counted)
    order, starts, size = _groups(lay, resolved)
    bound = np.full(1, np.inf)
    if starts.size > 1:
        bound = _group_bounds(cost, lay.chain[:, order], starts, size)
    best: WorstMove | None = None
    for g in np.argsort(-bound, kind="stable"):
        if size[g] < 2 or (best is not None and bound[g] <= best.cost):
            break
        members = order[starts[g] : starts[g] + size[g]]
        whole = members.size == order.size
        total, a, b = farthest_pair(cost, lay.chain if whole else lay.chain[:, members])
        if best is None or total > best.cost:
            pair = sorted((int(lay.cells[members[a]]), int(lay.cells[members[b]])))
            best = WorstMove(total, pair[0], pair[1])
    if best is None:
        raise EmptyNeighbourhoodError(
            "the fixed values leave no two entries between which one record could move; "
            "fix fewer values."
        )
    return best


def _group_bounds(
    cost: FloatArray, chain: IntArray, starts: IntArray, size: IntArray
) -> FloatArray:
    """Bound on the cost of a move within each group of cells in `chain`; -inf for a single cell.

    The bound is the cost of the two costliest cells, without entries that count the whole group.
    """
    own = np.zeros(chain.shape[1])
    for entries in chain:
        shared = np.minimum.reduceat(entries, starts) == np.maximum.reduceat(entries, starts)
        own += np.where(np.repeat(shared, size) | (entries < 0), 0.0, cost[entries])
    ranked = own[np.lexsort((-own, np.repeat(np.arange(size.size), size)))]
    second = ranked[np.minimum(starts + 1, ranked.size - 1)]
    return np.where(size > 1, ranked[starts] + second, -np.inf)


def farthest_pair(cost: FloatArray, chain: IntArray) -> tuple[float, int, int]:
    """Find the two cells between which a record's move costs most: the cost, and their positions.

    Beyond `MOST_TRIES` cells or `MOST_COMPARED` numbers, the cost is a bound.

    The cost of a cell, minus the cost of the entries that count all cells, bounds its part. Cells
    are tried in order of decreasing bounds until no further pair can cost more.
    """
    chain = chain[(chain != chain[:, :1]).any(axis=1)]
    each = np.append(cost, 0.0)  # the last place is that of padding
    own = np.zeros(chain.shape[1])
    for entries in chain:
        own += each[entries]
    order = np.argsort(-own, kind="stable")
    own = own[order]
    best, pair = -1.0, (0, 1)
    tries = min(own.size - 1, MOST_TRIES, MOST_COMPARED // max(1, chain.size))
    for a in range(tries):
        first, after, size = chain[:, order[a]], a + 1, _BLOCK
        # no later cell can form a costlier pair with this one
        while after < own.size and own[a] + own[after] > best * (1.0 + _ROUNDING):
            rest = chain[:, order[after : after + size]]
            both = np.where(rest != first[:, None], each[rest] + each[first][:, None], 0.0)
            change = both.sum(axis=0)
            at = int(np.argmax(change))
            if change[at] > best:
                best, pair = float(change[at]), (a, after + at)
            after, size = after + size, 2 * size
        if after == a + 1:
            break
    else:
        if own.size - 1 > tries:
            best = max(best, float(own[tries] + own[tries + 1]))
    return best, int(order[pair[0]]), int(order[pair[1]])


def fixed_sums(resolved: ResolvedInvariant, counted: Counted) -> tuple[FloatArray, WholeArray]:
    """Contribution of a record in each cell to every query (n, cells), and to every fixed sum.

    Fixed sums are multiplied until their coefficients are integers (`whole_sums`).
    """
    lay = counting(resolved.n, counted)
    rows = np.vstack((resolved.equalities[0], np.eye(resolved.n)[resolved.pinned]))
    return lay.dense(), whole_sums(rows, lay.on_cells)
