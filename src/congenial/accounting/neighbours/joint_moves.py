"""Neighbouring datasets where sums leave no single record free: several move at once."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain, combinations_with_replacement

import numpy as np

from congenial.accounting.neighbours.counting import Counted
from congenial.accounting.neighbours.scope import crossing
from congenial.accounting.neighbours.single_moves import Neighbours, fixed_sums, worst_move
from congenial.accounting.neighbours.whole_sums import WholeArray
from congenial.errors import EmptyNeighbourhoodError, PrivacyError
from congenial.invariants.resolved import ResolvedInvariant
from congenial.types import BoolArray, FloatArray, IntArray

# Most records that are moved at once in the search.
MOST_RECORDS = 4
# Limits of the search: cells, sets of cells, and numbers computed while sets are compared.
MOST_CELLS = 400
MOST_SETS = 2**20
MOST_NUMBERS = 2**26
# Largest coefficient; sums of larger ones might round.
MOST_COEFFICIENT = 2.0**40
# Numbers in one block of moves.
_BLOCK = 2**22
# Base of the keys of sums; it is odd, so its powers never vanish modulo 2^64.
_FACTOR = 0x9E3779B97F4A7C15


@dataclass(frozen=True)
class JointMoves:
    """All moves of at most `records` records, the least number that lets every free cell change."""

    records: int  # That number.
    cost: float  # Largest cost of such a move.
    largest: int  # Largest change of a query in such a move, in records.
    changes: BoolArray  # shape (n,): Queries that some such move changes.
    move: IntArray  # shape (cells,): Gain of each cell in a move of the largest cost.
    # shape (k, groups): Distinct costs of the moves by group of queries, at cost 1 per unit.
    sums: FloatArray


def forced_moves(
    cost: FloatArray,
    resolved: ResolvedInvariant,
    counted: Counted,
    neighbours: Neighbours,
    *,
    power: int = 1,
    groups: Callable[[], FloatArray] | None = None,
) -> JointMoves | None:
    """Find the joint moves of a guarantee if sums let no record move alone under "substitute".

    Returns None if some record can move alone. `groups` gives those of `joint_moves`.
    """
    if neighbours != "substitute":
        return None
    if not (resolved.equalities[1].size or crossing(resolved, counted)):
        return None
    try:
        worst_move(cost, resolved, counted, neighbours)
    except EmptyNeighbourhoodError:
        incidence, fixed = fixed_sums(resolved, counted)
    else:
        return None
    asked = None if groups is None else groups()
    return joint_moves(cost, incidence, fixed, power=power, groups=asked)


def check_neighbours(
    alternatives: Sequence[ResolvedInvariant], counted: Counted, neighbours: Neighbours
) -> None:
    """Check that within some alternative there are neighbouring datasets."""
    for i, resolved in enumerate(alternatives):
        cost = np.zeros(resolved.n)
        try:
            if forced_moves(cost, resolved, counted, neighbours) is None:
                worst_move(cost, resolved, counted, neighbours)
        except EmptyNeighbourhoodError:
            if i + 1 == len(alternatives):
                raise
        else:
            return


def joint_moves(
    cost: FloatArray,
    incidence: FloatArray,
    fixed: WholeArray,
    *,
    power: int = 1,
    groups: FloatArray | None = None,
) -> JointMoves:
    """Find the least number of records whose joint move keeps all fixed sums, and its largest cost.

    `proofs/noise.md`, statement 5. A move of k records is an integer vector over the cells with
    sum 0 and sum of positive parts k that keeps every fixed sum. `records` is the least k such that
    moves of at most k records change every cell that can change. Moves follow from the sums alone,
    not from their values or from bounds.
    """
    if (np.abs(fixed) > MOST_COEFFICIENT).any() or (fixed != np.rint(fixed)).any():
        raise PrivacyError(
            "the fixed sums leave no single record free to move, and one has a coefficient that "
            "is no integer of at most 2^40, nor a small multiple of it, so joint moves are not "
            "searched; give integer coefficients."
        )
    sums = np.vstack((np.ones(fixed.shape[1]), fixed)).astype(np.int64)
    free = free_cells(sums)
    cells = np.flatnonzero(free)
    if not cells.size:
        raise EmptyNeighbourhoodError(
            "the fixed values leave no entry that could change, so a guarantee would say "
            "nothing; fix fewer values."
        )
    if cells.size > MOST_CELLS:
        raise _too_large(int(cells.size), 2)
    sums, counted = sums[:, cells], incidence[:, cells]
    if groups is None:
        groups = np.ones((counted.shape[0], 1))
    best, largest, dearest = -1.0, 0, np.zeros(cells.size)
    totals: dict[bytes, FloatArray] = {}
    changes = np.zeros(incidence.shape[0], dtype=np.bool_)
    reached = np.zeros(cells.size, dtype=np.bool_)
    for records in range(2, MOST_RECORDS + 1):
        for move in _moves(sums, records, max(counted.shape)):
            change = np.abs(move @ counted.T)
            # an unmeasured or pinned query costs nothing, however large its change
            paid = change**power
            costs = paid @ cost
            at = int(np.argmax(costs))
            if costs[at] > best:
                best, dearest = float(costs[at]), move[at]
            totals |= {row.tobytes(): row for row in np.unique(paid @ groups, axis=0)}
            largest = max(largest, int(change.max()))
            changes |= change.any(axis=0)
            reached |= move.any(axis=0)
        if reached.all():
            whole = np.zeros(incidence.shape[1], dtype=np.int64)
            whole[cells] = dearest
            return JointMoves(records, best, largest, changes, whole, np.array([*totals.values()]))
    raise PrivacyError(
        f"the fixed sums let an entry change only with more than {MOST_RECORDS} records at "
        "once, which is not searched; fix fewer values."
    )


def free_cells(sums: IntArray) -> BoolArray:
    """Cells that some integer move changes while it keeps all sums, in exact arithmetic.

    A rational move times its common denominator is a move of integers. In the reduced echelon form,
    a cell is free if it has no pivot, or if the row of its pivot has another entry.
    """
    reduced: list[tuple[int, dict[int, Fraction]]] = []
    for values in sums:
        row = {int(j): Fraction(int(values[j])) for j in np.flatnonzero(values)}
        for pivot, known in reduced:
            _subtract(row, known, row.get(pivot, Fraction(0)))
        if not row:
            continue
        at = min(row)
        lead = row[at]
        row = {j: value / lead for j, value in row.items()}
        for _, known in reduced:
            _subtract(known, row, known.get(at, Fraction(0)))
        reduced.append((at, row))
    free = np.ones(sums.shape[1], dtype=np.bool_)
    for pivot, row in reduced:
        free[pivot] = len(row) > 1
    return free


def _subtract(row: dict[int, Fraction], other: dict[int, Fraction], factor: Fraction) -> None:
    """Subtract a multiple of another row, in place, and drop what vanishes."""
    if not factor:
        return
    for j, value in other.items():
        left = row.get(j, Fraction(0)) - factor * value
        if left:
            row[j] = left
        else:
            row.pop(j, None)


def _moves(sums: IntArray, records: int, width: int) -> Iterator[FloatArray]:
    """Yield all moves of at most `records` records, one of each opposite pair, in blocks of rows.

    Both sides of a move are multisets of cells with the same sums. If the sides share a record,
    the move is one of fewer records. Sets with equal sums have equal keys, so only sets with equal
    keys are compared.
    """
    n = sums.shape[1]
    count = math.comb(n + records - 1, records)
    if count > MOST_SETS:
        raise _too_large(n, records)
    sets = np.fromiter(
        chain.from_iterable(combinations_with_replacement(range(n), records)),
        dtype=np.int64,
        count=count * records,
    ).reshape(count, records)
    # wraps modulo 2^64 on purpose
    weights = np.array([pow(_FACTOR, r + 1, 2**64) for r in range(len(sums))], dtype=np.uint64)
    keys = (sums.astype(np.uint64) * weights[:, None]).sum(axis=0, dtype=np.uint64)
    key = keys[sets].sum(axis=1, dtype=np.uint64)
    order = np.argsort(key, kind="stable")
    key, sets = key[order], sets[order]
    starts = np.flatnonzero(np.concatenate(([True], key[1:] != key[:-1])))
    sizes = np.diff(np.append(starts, key.size))
    if int((sizes * (sizes - 1) // 2).sum()) * width > MOST_NUMBERS:
        raise _too_large(n, records)
    step = max(1, _BLOCK // width)
    for apart in range(1, int(sizes.max())):
        first = np.flatnonzero(key[apart:] == key[:-apart])
        for at in range(0, first.size, step):
            one = first[at : at + step]
            rows = np.arange(one.size)[:, None]
            move = np.zeros((one.size, n))
            np.add.at(move, (rows, sets[one]), -1.0)
            np.add.at(move, (rows, sets[one + apart]), 1.0)
            keeps = ~(move @ sums.T.astype(np.float64)).any(axis=1)
            if keeps.any():
                yield move[keeps]


def _too_large(cells: int, records: int) -> PrivacyError:
    return PrivacyError(
        f"the fixed sums leave no single record free to move, and {cells} cells are too many to "
        f"search all moves of {records} records at once; fix fewer values."
    )
