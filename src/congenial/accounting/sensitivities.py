"""How much the queries can change between neighbouring datasets."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from congenial.accounting.neighbours.counting import Counted, counting
from congenial.accounting.neighbours.joint_moves import JointMoves, forced_moves, joint_moves
from congenial.accounting.neighbours.leeway import with_implied
from congenial.accounting.neighbours.single_moves import Neighbours, check_relation, worst_move
from congenial.accounting.neighbours.whole_sums import WholeArray, alike_columns, whole_sums
from congenial.domain.tree import Tree
from congenial.domain.workload import Workload
from congenial.errors import ArgumentError, EmptyNeighbourhoodError
from congenial.invariants.resolved import ResolvedInvariant
from congenial.invariants.written import Invariant, resolve_invariant
from congenial.types import FloatArray, IntArray

Order = Literal[1, 2]
# Numbers in one block of differences between cells.
_BLOCK = 2**22


@dataclass(frozen=True)
class Sensitivity:
    """The largest change of the queries between neighbouring datasets.

    Attributes
    ----------
    value : float
        Its norm.
    norm : {1, 2}
    neighbours : {"substitute", "add-remove"}
    origin : int
        The cell (a leaf's node, an entry, or a column of the matrix) that loses a record in the
        first pair that attains the value.
    destination : int or None
        The cell that gains a record; None for add-remove.
    records : int
        More than 1 if fixed sums let no record move alone: the least number of records at once
        with which every free cell can change.
    move : tuple of pair of int
        If several records move: the cells that change in a pair that attains the value, and the
        gain of each.
    """

    value: float
    norm: Order
    neighbours: Neighbours
    origin: int
    destination: int | None
    records: int = 1
    move: tuple[tuple[int, int], ...] = ()

    def __float__(self) -> float:
        """Return the value."""
        return self.value

    @property
    def sentence(self) -> str:
        """The sensitivity and its worst pair as a sentence."""
        if self.move:
            out, into = (
                ", ".join(str(cell) for cell, gain in self.move for _ in range(sign * gain))
                for sign in (-1, 1)
            )
            return (
                f"L{self.norm} sensitivity {self.value:.6g}, attained by moving "
                f"{sum(gain for _, gain in self.move if gain > 0)} records at once, from cells "
                f"{out} to cells {into}."
            )
        what = (
            f"adding a record to cell {self.origin} or removing it"
            if self.destination is None
            else f"moving a record from cell {self.origin} to cell {self.destination}"
        )
        return f"L{self.norm} sensitivity {self.value:.6g}, attained by {what}."


def sensitivity(
    workload: Tree | Workload | int | npt.ArrayLike,
    *,
    neighbours: Neighbours,
    norm: Order = 1,
    invariant: Invariant | None = None,
) -> Sensitivity:
    """Return the global sensitivity of a workload of counting queries.

    Parameters
    ----------
    workload : Tree, Workload, int, or array_like of int, shape (m, n)
        A tree, all of whose nodes are counted; margins of tables; a number of disjoint cells; or a
        query matrix, whose entry (i, j) is what a record in cell j adds to query i.
    neighbours : {"substitute", "add-remove"}
    norm : {1, 2}
        1 for Laplace noise, 2 for Gaussian noise.
    invariant : Invariant, optional
        Facts about the queries on which neighbouring datasets agree. Pinned queries and linear
        equalities leave fewer neighbours; bounds do so only if they, with sums, leave one value.

    Returns
    -------
    Sensitivity

    Raises
    ------
    ArgumentError
        If an argument is not valid.
    EmptyNeighbourhoodError
        If the invariant leaves no neighbouring datasets. With add-remove neighbours, also if it
        fixes the records in some cells, because a guarantee would not cover those records.
    PrivacyError
        If a linear condition on disjoint cells does not say in which a record counts, rounding
        leaves open which records it distinguishes, or the moves of several records are too many
        to search.

    Notes
    -----
    Substituting one record changes the queries by the difference of two columns of the matrix, and
    adding or removing one by a column; a record may lie in any cell. Where fixed sums let no
    record move alone, several are replaced at once, as in the guarantee (`joint_moves`). Where one
    moves, a query of a tree or of disjoint cells changes by one at most, so the L2 norm is the
    square root of the L1 norm.

    References
    ----------
    Two Views, Proposition 2.7 (its Delta_1 and Delta_2); Gong and Meng (2020), Definition 1.1.

    Examples
    --------
    >>> import congenial as cg
    >>> tree = cg.Tree.from_paths([("city", "a"), ("city", "b")])
    >>> float(sensitivity(tree, neighbours="add-remove"))
    2.0
    >>> sensitivity([[1, 1, 0], [0, 1, 3]], neighbours="substitute").sentence
    'L1 sensitivity 4, attained by moving a record from cell 0 to cell 2.'
    """
    check_relation(neighbours)
    if isinstance(norm, bool) or norm not in (1, 2):
        raise ArgumentError(f"norm is {norm!r}; give 1 or 2.")
    if isinstance(workload, Tree | Workload):
        return _of_units(len(workload), workload, neighbours, norm, invariant)
    if isinstance(workload, int | np.integer) and not isinstance(workload, bool):
        if workload < 1:
            raise ArgumentError(f"workload is {workload}; give at least one cell.")
        return _of_units(int(workload), None, neighbours, norm, invariant)
    matrix = _checked_matrix(workload)
    resolved = None if invariant is None else _known(invariant, matrix.shape[0])
    if neighbours == "add-remove":
        return _of_columns(matrix, norm, resolved)
    return _of_pairs(matrix, norm, resolved)


def _known(invariant: Invariant | None, n: int, domain: Counted = None) -> ResolvedInvariant:
    given = Invariant(()) if invariant is None else invariant
    return with_implied(resolve_invariant(given, n, domain), _nested(domain))


def _nested(domain: Counted) -> Counted:
    """The tree of a workload that has one, else the domain itself."""
    return domain.tree or domain if isinstance(domain, Workload) else domain


def _of_units(
    n: int, domain: Counted, neighbours: Neighbours, norm: Order, invariant: Invariant | None
) -> Sensitivity:
    """Queries that one record changes by one each."""
    resolved, counted = _known(invariant, n, domain), _nested(domain)
    cost = np.where(resolved.pinned, 0.0, 1.0)
    joint = forced_moves(cost, resolved, counted, neighbours, power=norm)
    if joint is not None:
        return _at_once(joint, norm, counting(n, counted).cells)
    move = worst_move(cost, resolved, counted, neighbours)
    value = move.cost if norm == 1 else math.sqrt(move.cost)
    return Sensitivity(value, norm, neighbours, move.origin, move.destination)


def _at_once(joint: JointMoves, norm: Order, cells: IntArray) -> Sensitivity:
    return Sensitivity(
        joint.cost if norm == 1 else math.sqrt(joint.cost),
        norm,
        "substitute",
        int(cells[np.argmax(joint.move < 0)]),
        int(cells[np.argmax(joint.move > 0)]),
        joint.records,
        tuple((int(cells[i]), int(joint.move[i])) for i in np.flatnonzero(joint.move)),
    )


def _of_columns(matrix: IntArray, norm: Order, resolved: ResolvedInvariant | None) -> Sensitivity:
    if resolved is not None and _fixed_rows(matrix, resolved).any():
        raise EmptyNeighbourhoodError(
            "add-remove neighbours do not exist for records that count in a query published "
            "exactly, or in a fixed sum; use neighbours = 'substitute'."
        )
    sizes = np.linalg.norm(matrix.astype(np.float64), norm, axis=0)
    at = int(np.argmax(sizes))
    return Sensitivity(float(sizes[at]), norm, "add-remove", at, None)


def _of_pairs(matrix: IntArray, norm: Order, resolved: ResolvedInvariant | None) -> Sensitivity:
    """Search all pairs of different columns, group by group of those that keep the invariant."""
    groups: Iterable[npt.NDArray[np.intp]] = (np.arange(matrix.shape[1]),)
    if resolved is not None:
        fixed = _fixed_rows(matrix, resolved)
        group = alike_columns(fixed)
        if fixed.shape[0] and group.max() + 1 == group.size > 1:
            every = np.ones(matrix.shape[0])
            joint = joint_moves(every, matrix.astype(np.float64), fixed, power=norm)
            return _at_once(joint, norm, np.arange(group.size))
        groups = (np.flatnonzero(group == g) for g in range(int(group.max()) + 1))
    best: Sensitivity | None = None
    for members in groups:
        columns, first = np.unique(matrix[:, members], axis=1, return_index=True)
        if members.size < 2:
            continue
        if first.size == 1:  # records that no query distinguishes
            found = (0.0, int(members[0]), int(members[1]))
        else:
            value, a, b = _farthest(columns.astype(np.float64), norm)
            pair = sorted((int(members[first[a]]), int(members[first[b]])))
            found = (value, pair[0], pair[1])
        if best is None or found[0] > best.value:
            best = Sensitivity(found[0], norm, "substitute", found[1], found[2])
    if best is None:
        raise EmptyNeighbourhoodError(
            "no two cells are left between which a record could move, so a guarantee would say "
            "nothing; fix fewer values, or count more cells."
        )
    return best


def _farthest(columns: FloatArray, norm: Order) -> tuple[float, int, int]:
    """The two columns furthest apart, in blocks; there are at least two."""
    m, n = columns.shape
    width = max(1, _BLOCK // (m * n))
    best = (-1.0, 0, 0)
    for start in range(0, n, width):
        change = columns[:, start : start + width, None] - columns[:, None, :]
        apart = np.linalg.norm(change, norm, axis=0)
        at = int(np.argmax(apart))
        if apart.flat[at] > best[0]:
            best = (float(apart.flat[at]), start + at // n, at % n)
    return best


def _fixed_rows(matrix: IntArray, resolved: ResolvedInvariant) -> WholeArray:
    """Contribution of a record in each cell to every fixed sum, shape (fixed, n)."""
    rows = np.vstack((resolved.equalities[0], np.eye(resolved.n)[resolved.pinned]))
    return whole_sums(rows, lambda r: r @ matrix, lambda r: r @ np.abs(matrix))


def _checked_matrix(workload: npt.ArrayLike) -> IntArray:
    try:
        array = np.asarray(workload)
    except ValueError:  # rows of different lengths
        array = np.empty(0)
    if array.ndim != 2 or array.size == 0 or array.dtype.kind not in "iuf":
        raise ArgumentError(
            f"workload has shape {array.shape} and dtype {array.dtype}; give a Tree, a number of "
            "disjoint cells, or an integer matrix with one row a query and one column a cell."
        )
    if not (np.abs(array) <= 2.0**31).all() or (array != np.rint(array)).any():
        raise ArgumentError(
            "workload has an entry that is not an integer of at most 2^31 in size; give counts."
        )
    return array.astype(np.int64)
