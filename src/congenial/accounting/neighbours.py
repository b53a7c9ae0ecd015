"""Neighbouring datasets that remain once values are pinned, and the change they make."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from congenial.accounting.whole_sums import WholeArray, alike_columns, whole_sums
from congenial.errors import ArgumentError, EmptyNeighbourhoodError, PrivacyError
from congenial.invariants import Requirements
from congenial.tree import Tree

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
Neighbours = Literal["substitute", "add-remove"]
RELATIONS: tuple[Neighbours, ...] = ("substitute", "add-remove")


@dataclass(frozen=True)
class WorstMove:
    """The neighbouring pair of datasets with the largest summed cost.

    Attributes
    ----------
    cost : float
        Sum of the per-unit costs of all queries that change by one.
    origin, destination : int or None
        Entries that lose and gain a record; `origin` alone for add-remove.
    """

    cost: float
    origin: int
    destination: int | None


def worst_move(
    cost: FloatArray, need: Requirements, tree: Tree | None, neighbours: Neighbours
) -> WorstMove:
    """Find the neighbouring pair with the largest summed cost, among those that keep the pins.

    Parameters
    ----------
    cost : ndarray of float64, shape (n,)
        Cost of a change by one at each query; additive over queries.
    need : Requirements
    tree : Tree or None
        The tree of the queries; None for a plain vector, where a record counts in one entry.
    neighbours : {"substitute", "add-remove"}

    Returns
    -------
    WorstMove

    Raises
    ------
    ArgumentError
        If the relation is unknown.
    EmptyNeighbourhoodError
        If the pins leave no neighbouring pair, or under add-remove take away the neighbours of
        some record.
    PrivacyError
        If a linear condition on a plain vector has entries of both signs, or rounding leaves it in
        doubt which records it tells apart.

    Notes
    -----
    Substituting one record takes one unit from a leaf and adds one to another; ancestors that the
    two leaves share keep their counts. The pair stays possible where every pinned node and every
    linear condition keeps its value. Where such pairs exist for some records only, the others are
    in no pair. Where there is none at all, `congenial.accounting.joint_moves` moves several.
    """
    if neighbours not in RELATIONS:
        raise ArgumentError(f"neighbours is {neighbours!r}; give 'substitute' or 'add-remove'.")
    matrix, _ = need.equalities
    if neighbours == "add-remove":
        if need.pinned.any() or matrix.shape[0]:
            what = "an exactly published count" if need.pinned.any() else "a mandated sum"
            raise EmptyNeighbourhoodError(
                f"add-remove neighbours do not exist together with {what}: nobody can be added to "
                "or removed from it, so a guarantee would say nothing about its records; use "
                "neighbours = 'substitute', or do not publish it exactly."
            )
        path = _path_cost(cost, tree)
        entries = tree.leaves if tree is not None else np.arange(need.n)
        at = int(entries[np.argmax(path[entries])])
        return WorstMove(float(path[at]), at, None)
    if tree is None and ((matrix > 0).any(axis=1) & (matrix < 0).any(axis=1)).any():
        raise PrivacyError(
            "a mandated difference between entries of a plain vector says that one record counts "
            "in several of them, and not in which, so no guarantee can be given; give the queries "
            "as a Tree, or mandate sums of entries that share no record."
        )
    if tree is None or matrix.shape[0]:
        return _worst_between_columns(cost, need, tree)
    return _worst_in_tree(cost, need, tree)


def costs_through(
    cost: FloatArray, need: Requirements, tree: Tree | None, neighbours: Neighbours
) -> FloatArray:
    """Bound the summed cost of the neighbouring pairs in which each entry changes.

    Parameters
    ----------
    cost, need, tree, neighbours
        As for `worst_move`, which has shown that there are neighbours.

    Returns
    -------
    ndarray of float64, shape (n,)
        -inf for an entry that no pair changes. The largest cost itself on a tree without further
        linear conditions; elsewhere that of the worst pair of all.
    """
    if neighbours == "add-remove":
        return one_sided_costs(cost, need, tree)
    if tree is None or need.equalities[1].size:
        worst = worst_move(cost, need, tree, neighbours).cost
        return np.where(need.pinned, -np.inf, worst)
    climbs = _climbs(cost, need, tree)
    # what a climb that has reached a node adds until its pair is complete
    rest = np.full(len(tree), -np.inf)
    for depth in range(tree.depth):
        nodes = np.flatnonzero(tree.level == depth)
        above = tree.parents[nodes]
        best, runner = climbs.first[above], climbs.second[above]
        sibling = np.where(climbs.best_child[above] == nodes, runner, best)
        onward = np.where(above >= 0, rest[above] + cost[above], -np.inf)
        blocked = (above >= 0) & need.pinned[above]
        rest[nodes] = np.maximum(sibling, np.where(blocked, -np.inf, onward))
    return np.asarray(climbs.reach + rest)


def one_sided_costs(cost: FloatArray, need: Requirements, tree: Tree | None) -> FloatArray:
    """Largest summed cost of one record that enters or leaves, among those that change each entry.

    Parameters
    ----------
    cost, need, tree
        As for `worst_move`.

    Returns
    -------
    ndarray of float64, shape (n,)
        -inf for an entry that no such record changes, because pins forbid it.
    """
    path = _path_cost(np.where(need.pinned, -np.inf, cost), tree)
    if tree is not None:
        path[~tree.is_leaf] = -np.inf
        for depth in range(tree.depth - 1, 0, -1):
            nodes = np.flatnonzero(tree.level == depth)
            np.maximum.at(path, tree.parents[nodes], path[nodes])
    return path


def _path_cost(cost: FloatArray, tree: Tree | None) -> FloatArray:
    """Cost of one record in each entry: the entry and all its ancestors."""
    total = cost.astype(np.float64).copy()
    if tree is not None:
        for depth in range(1, tree.depth):
            nodes = np.flatnonzero(tree.level == depth)
            total[nodes] += total[tree.parents[nodes]]
    return total


@dataclass(frozen=True)
class _Climbs:
    """The dearest climbs of a tree: changes by one from a leaf up, meeting no pinned node.

    Attributes
    ----------
    reach : ndarray of float64, shape (n,)
        Largest cost of a climb that ends at each node.
    first, second : ndarray of float64, shape (n + 1,)
        Largest costs of climbs that end at two children; in the last place, at two roots.
    first_leaf, second_leaf, best_child : ndarray of int64, shape (n + 1,)
        The leaves where those two start, and the child where the first ends.
    """

    reach: FloatArray
    first: FloatArray
    second: FloatArray
    first_leaf: IntArray
    second_leaf: IntArray
    best_child: IntArray


def _climbs(cost: FloatArray, need: Requirements, tree: Tree) -> _Climbs:
    """Find the dearest climbs by one pass from the leaves up."""
    n = len(tree)
    reach = np.full(n, -np.inf)
    source = np.full(n, -1, dtype=np.int64)
    first, second = np.full(n + 1, -np.inf), np.full(n + 1, -np.inf)
    first_at, second_at, best_child = (np.full(n + 1, -1, dtype=np.int64) for _ in range(3))
    for depth in range(tree.depth - 1, -1, -1):
        nodes = np.flatnonzero(tree.level == depth)
        leaf = tree.is_leaf[nodes]
        best = np.where(leaf, 0.0, first[nodes])
        origin = np.where(leaf, nodes, first_at[nodes])
        reach[nodes] = np.where(need.pinned[nodes], -np.inf, best + cost[nodes])
        source[nodes] = origin
        order = nodes[np.lexsort((-reach[nodes], tree.parents[nodes]))]
        parents = tree.parents[order]
        new = np.concatenate(([True], parents[1:] != parents[:-1]))
        top = order[new]
        first[parents[new]] = reach[top]
        first_at[parents[new]] = source[top]
        best_child[parents[new]] = top
        follows = np.concatenate(([False], new[:-1])) & ~new
        runner = order[follows]
        second[parents[follows]] = reach[runner]
        second_at[parents[follows]] = source[runner]
    return _Climbs(reach, first, second, first_at, second_at, best_child)


def _worst_in_tree(cost: FloatArray, need: Requirements, tree: Tree) -> WorstMove:
    """Best pair of leaves: two climbs meet below a common parent, or nowhere, from two roots."""
    climbs = _climbs(cost, need, tree)
    pair = climbs.first + climbs.second
    at = int(np.argmax(pair))
    if not np.isfinite(pair[at]):
        raise EmptyNeighbourhoodError(
            "the exactly published nodes leave no two leaves between which a record could move, so "
            "a guarantee would say nothing; publish fewer nodes exactly."
        )
    return WorstMove(float(pair[at]), int(climbs.first_leaf[at]), int(climbs.second_leaf[at]))


def _worst_between_columns(cost: FloatArray, need: Requirements, tree: Tree | None) -> WorstMove:
    """Best pair of entries that enter every linear condition and every pin alike."""
    incidence = _incidence(need.n, tree)
    entries = tree.leaves if tree is not None else np.arange(need.n)
    _, constant = fixed_sums(need, tree)
    group = alike_columns(constant)
    best: WorstMove | None = None
    for g in range(int(group.max()) + 1):
        members = entries[np.flatnonzero(group == g)]
        for a in range(members.size):
            for b in range(a + 1, members.size):
                change = np.abs(incidence[:, members[a]] - incidence[:, members[b]])
                total = float(change @ np.where(change > 0, cost, 0.0))
                if best is None or total > best.cost:
                    best = WorstMove(total, int(members[a]), int(members[b]))
    if best is None:
        raise EmptyNeighbourhoodError(
            "the mandated values leave no two entries between which one record could move; "
            "mandate fewer values."
        )
    return best


def fixed_sums(need: Requirements, tree: Tree | None) -> tuple[FloatArray, WholeArray]:
    """What a record in each leaf or entry adds to every query, and to everything that is fixed.

    Parameters
    ----------
    need : Requirements
    tree : Tree or None

    Returns
    -------
    ndarray of float64, shape (n, cells)
    ndarray of float64 or object, shape (m, cells)
        Of each fixed sum a multiple, so that all are whole numbers: `whole_sums`.

    Raises
    ------
    PrivacyError
        If rounding leaves it in doubt which sums are equal.
    """
    entries = tree.leaves if tree is not None else np.arange(need.n)
    counted = _incidence(need.n, tree)[:, entries]
    rows = np.vstack((need.equalities[0], np.eye(need.n)[need.pinned]))
    return counted, whole_sums(rows, counted)


def _incidence(n: int, tree: Tree | None) -> FloatArray:
    incidence = np.eye(n)
    if tree is not None:
        for depth in range(tree.depth - 1, 0, -1):
            for v in np.flatnonzero(tree.level == depth):
                incidence[tree.parents[v]] += incidence[v]
        inner = ~tree.is_leaf
        incidence[:, inner] = 0.0
    return incidence
