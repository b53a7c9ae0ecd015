"""Systems of sums with entries -1, 0, 1, brought into a form with fewer cycles.

No step changes the set of integer solutions. A row that contains most of another is replaced by
their difference (a total becomes the rest of the total). Entries that occur in the same rows, or
that two rows share, are joined into one *block sum*, a new variable without noise. A row that
follows from the others is dropped. An inequality between several entries becomes a sum with one
more variable without noise: its *slack*, the excess over its bound.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from heapq import heapify, heappop, heappush
from itertools import combinations
from typing import TypeVar

import numpy as np

from congenial.invariants.resolved import ResolvedInvariant
from congenial.invariants.sparse_rows import invariant_rows, sparse_rows, structure_rows
from congenial.sum_network.forest import SumForest, of_rows, of_tree
from congenial.types import BoolArray, IntArray

Row = dict[int, int]
Number = TypeVar("Number", int, Fraction)
# Most rows among which rows that follow from others are searched for.
_MOST_CORE = 400
# Most entries of a workload's chain in which crossing sums are compared.
_MOST_CHAIN = 2**12


@dataclass(frozen=True, eq=False)
class SumSystem:
    """The sums that the noise must satisfy: each row adds up to zero."""

    n: int  # Entries of the mechanism.
    slacks: int  # Inequalities; the slack of number k is variable n + k.
    size: int  # Entries and, after them, slacks and block sums.
    # Entry -> -1 or 1; the rows are independent if the search for dependent ones was affordable.
    rows: tuple[Row, ...]
    # shape (n + slacks,): Entries and slacks that keep the value of the data; no row has them.
    fixed: BoolArray
    forest: SumForest | None  # The arrangement of all variables; None if the rows have a cycle.
    implied: tuple[Row, ...] = ()  # Further sums, which follow from the rows.

    @property
    def every_fixed(self) -> BoolArray:
        """Which variables keep the value of the data, shape (size,)."""
        return np.append(self.fixed, np.zeros(self.size - self.fixed.size, dtype=np.bool_))

    @property
    def free(self) -> list[int]:
        """Variables that do not keep the value of the data, block sums included."""
        return np.flatnonzero(~self.every_fixed).tolist()

    def name(self, v: int) -> str:
        """Name a slack or a block sum."""
        past = v - self.n - self.slacks
        return f"slack of inequality {past + self.slacks}" if past < 0 else f"block sum {past}"


def sum_system(resolved: ResolvedInvariant) -> SumSystem:
    """Collect and simplify all the sums of an invariant, inequalities with their slacks."""
    n, slacks = resolved.n, resolved.n_inequalities
    plain = not resolved.equalities[1].size and not slacks
    if plain and resolved.tree is not None:
        return SumSystem(n, 0, n, (), resolved.pinned, of_tree(resolved.tree))
    listed = invariant_rows(resolved)
    # several sums together may determine an entry that none of them determines alone; the data may
    # still violate bounds, which therefore determine nothing here
    unbounded = np.full(n, np.inf)
    fixed = replace(resolved, lo=-unbounded, hi=unbounded).determined.copy()
    while alone := [i[~fixed[i]][0] for i, _ in listed if np.count_nonzero(~fixed[i]) == 1]:
        fixed[alone] = True
    rows = _free_rows(listed, fixed)
    exceeding = [
        row | {n + k: -1} if row else {}  # the sum equals its slack
        for k, row in enumerate(_free_parts(sparse_rows(resolved.inequalities[0]), fixed))
    ]
    rows += [row for row in exceeding if row]
    fixed = np.append(fixed, [not row for row in exceeding]).astype(np.bool_)
    size, implied = n + slacks, list[Row]()
    if cycle_closers(rows, range(size)):
        rows, implied, size = _simplest(rows, size, _across(resolved, fixed))
        while single := {v for row in rows if len(row) == 1 for v in row if v < n + slacks}:
            fixed[list(single)] = True
            rows, implied = _without(rows, single), _without(implied, single)
    forest = None if cycle_closers(rows, range(size)) else of_rows(as_arrays(rows), size)
    return SumSystem(n, slacks, size, tuple(rows), fixed, forest, tuple(implied))


def _without(rows: list[Row], left_out: set[int]) -> list[Row]:
    """Return rows without some entries; rows that then have none are left out, too."""
    fewer = [{v: a for v, a in row.items() if v not in left_out} for row in rows]
    return [row for row in fewer if row]


def sums_of(resolved: ResolvedInvariant) -> SumSystem:
    """Return all the sums of an invariant as rows, those of a tree included."""
    system = sum_system(resolved)
    if resolved.sums is None or system.rows:
        return system
    return replace(system, rows=tuple(_free_rows(structure_rows(resolved), system.fixed)))


def _free_parts(listed: list[tuple[IntArray, IntArray]], fixed: BoolArray) -> list[Row]:
    """Return the entries of each row that are not fixed; some rows may have none."""
    return [{int(v): int(a) for v, a in zip(i, s, strict=True) if not fixed[v]} for i, s in listed]


def _free_rows(listed: list[tuple[IntArray, IntArray]], fixed: BoolArray) -> list[Row]:
    return [row for row in _free_parts(listed, fixed) if row]


def as_arrays(rows: list[Row]) -> list[tuple[IntArray, IntArray]]:
    """Return rows as (indices, signs)."""
    return [
        (np.fromiter(row, np.int64, len(row)), np.fromiter(row.values(), np.int64, len(row)))
        for row in rows
    ]


def cycle_closers(rows: Sequence[Row], order: range | list[int]) -> list[int]:
    """Return the variables that close a cycle when variables are added in `order`.

    The remaining variables form a forest (Kruskal 1956). If every variable occurs in at most two
    rows and the order is from wide to narrow, no other such set has a smaller product of widths.
    """
    touching = rows_touching(rows)
    above = list(range(len(rows)))

    def top(k: int) -> int:
        while above[k] != k:
            above[k] = above[above[k]]
            k = above[k]
        return k

    closers = []
    for v in order:
        tops = [top(k) for k in touching.get(v, ())]
        if len(set(tops)) < len(tops):
            closers.append(v)
            continue
        for k in tops[1:]:
            above[top(k)] = top(tops[0])
    return closers


def on_cycles(rows: tuple[Row, ...], most: int) -> list[int]:
    """Return up to `most` rows on cycles, first those whose removal leaves the fewest cycles."""
    order = range(max((v for row in rows for v in row), default=-1) + 1)
    tried = pruned(rows, lambda shared, _: shared < 2)[: 4 * most]
    closers = {
        k: len(cycle_closers([row for j, row in enumerate(rows) if j != k], order)) for k in tried
    }
    return sorted(tried, key=lambda k: (closers[k], len(rows[k]), k))[:most]


def _simplest(rows: list[Row], n: int, further: list[Row]) -> tuple[list[Row], list[Row], int]:
    """Return simplified rows; rows that follow from them are added if that leaves fewer cycles.

    An added row may be shorter than one that it replaces.
    """
    plain = simplified(rows, n)
    further = [row for row in further if row not in rows]
    if not further or len(rows) + len(further) > _MOST_CORE:
        return plain
    more = simplified(rows + further, n)
    fewer, each = (len(cycle_closers(rows, range(size))) for rows, _, size in (more, plain))
    return more if fewer < each else plain


def _across(resolved: ResolvedInvariant, fixed: BoolArray) -> list[Row]:
    """Return sums of one margin's entries that another, exact margin fixes.

    Entries of two crossing margins that share cells, directly or through other entries, count the
    same records. If all these entries of one margin are fixed, so is their sum in the other.
    """
    workload = resolved.workload
    if workload is None or resolved.sums is None or workload.chain.size > _MOST_CHAIN:
        return []
    rows: list[Row] = []
    for exact in workload.chain[fixed[workload.chain].any(axis=1)]:
        for other in workload.chain[~fixed[workload.chain].all(axis=1)]:
            inside = (exact >= 0) & (other >= 0)
            rows += [
                {v: 1 for v in sorted({v for _, v in group}) if not fixed[v]}
                for group in _connected(exact[inside], other[inside])
                if all(fixed[v] for v, _ in group)
            ]
    return [row for k, row in enumerate(rows) if len(row) > 1 and row not in rows[:k]]


def _connected(one: IntArray, other: IntArray) -> list[set[tuple[int, int]]]:
    """Return the pairs of entries that share a cell, grouped by connection."""
    pairs = set(zip(one.tolist(), other.tolist(), strict=True))
    touching: dict[int, list[tuple[int, int]]] = {}
    for pair in pairs:
        for v in set(pair):
            touching.setdefault(v, []).append(pair)
    groups = []
    while pairs:
        waiting = [pairs.pop()]
        group = set(waiting)
        while waiting:
            for v in waiting.pop():
                fresh = [pair for pair in touching.pop(v, ()) if pair in pairs]
                pairs.difference_update(fresh)
                group.update(fresh)
                waiting += fresh
        groups.append(group)
    return groups


def simplified(rows: list[Row], n: int) -> tuple[list[Row], list[Row], int]:
    """Return rows with the same solutions and fewer cycles, implied ones, and the variables."""
    rows = _differences([dict(row) for row in rows])
    rows, size = _blocks(rows, n)
    rows, size = _shared(rows, size)
    dropped = _dependent(rows)
    kept = [row for k, row in enumerate(rows) if k not in dropped]
    return kept, [rows[k] for k in sorted(dropped)], size


def _differences(rows: list[Row]) -> list[Row]:
    """Replace rows by their difference (or sum) with another while that leaves fewer entries."""
    touching = {v: set(of) for v, of in rows_touching(rows).items()}
    waiting = sorted(range(len(rows)), key=lambda k: len(rows[k]))
    while waiting:
        k = waiting.pop(0)
        shared: Counter[int] = Counter()
        agree: Counter[int] = Counter()
        for v, a in rows[k].items():
            for j in touching[v]:
                if j != k:
                    shared[j] += 1
                    agree[j] += a * rows[j][v]
        for j in sorted(shared):
            if abs(agree[j]) != shared[j] or 2 * shared[j] <= len(rows[k]):
                continue
            sign = 1 if agree[j] > 0 else -1
            for v, a in rows[k].items():
                if v in rows[j]:
                    del rows[j][v]
                    touching[v].discard(j)
                else:
                    rows[j][v] = -sign * a
                    touching[v].add(j)
            waiting = [i for i in waiting if i not in (j, k)] + [j, k]
            break
    return [row for row in rows if row]


def _blocks(rows: list[Row], n: int) -> tuple[list[Row], int]:
    """Join entries that occur in the same rows, with the same signs or all opposite ones."""
    columns: dict[int, list[tuple[int, int]]] = {}
    for k, row in enumerate(rows):
        for v, a in row.items():
            columns.setdefault(v, []).append((k, a))
    groups: dict[tuple[tuple[int, int], ...], list[int]] = {}
    for v, column in columns.items():
        lead = column[0][1]
        groups.setdefault(tuple((k, a * lead) for k, a in column), []).append(v)
    size = n
    fresh = []
    for pattern, members in groups.items():
        if len(members) < 2 or len(pattern) < 2:
            continue
        fresh.append({size: -1} | {v: columns[v][0][1] for v in members})
        for k, a in pattern:
            for v in members:
                del rows[k][v]
            rows[k][size] = a
        size += 1
    return rows + fresh, size


def _shared(rows: list[Row], size: int) -> tuple[list[Row], int]:
    """Join entries that two rows share, whatever else they occur in: the largest sets first.

    s entries in two rows close s - 1 cycles; their sum, as one variable, closes none.
    """
    touching = {v: set(of) for v, of in rows_touching(rows).items()}
    pairs = Counter(pair for of in touching.values() for pair in combinations(sorted(of), 2))
    waiting = [(-count, pair) for pair, count in pairs.items() if count > 1]
    heapify(waiting)
    while waiting:
        _, (k, j) = heappop(waiting)
        both = rows[k].keys() & rows[j].keys()
        alike = {v for v in both if rows[k][v] == rows[j][v]}
        members = max(alike, both - alike, key=len)
        if len(members) < 2:
            continue
        if len(both) - len(members) > 1:  # the rest of them later
            heappush(waiting, (len(members) - len(both), (k, j)))
        sign = 1 if members <= alike else -1
        lead = {v: rows[k][v] for v in members}
        for v in members:
            del rows[k][v], rows[j][v]
            touching[v] -= {k, j}
        rows[k][size], rows[j][size] = 1, sign
        for other, count in Counter(i for v in members for i in touching[v]).items():
            if count > 1:
                heappush(waiting, (-count, (other, len(rows))))
        for v in members:
            touching[v].add(len(rows))
        touching[size] = {k, j, len(rows)}
        rows.append({size: -1} | lead)
        size += 1
    return rows, size


def _dependent(rows: list[Row]) -> set[int]:
    """Return the rows that follow from shorter ones, by elimination in fractions."""
    # a row with an entry that no other row has is independent of the others
    inner = pruned(rows, lambda shared, entries: shared < entries)
    dropped = set[int]()
    if len(inner) > _MOST_CORE:
        return dropped
    reduced: dict[int, dict[int, Fraction]] = {}  # pivot -> row
    occurs = Counter(v for k in inner for v in rows[k])
    for k in sorted(inner, key=lambda k: len(rows[k])):
        row = {v: Fraction(a) for v, a in rows[k].items()}
        while row:
            pivot = next((v for v in row if v in reduced), None)
            if pivot is None:  # a rare entry as pivot keeps the elimination sparse
                reduced[min(row, key=lambda v: (occurs[v], v))] = row
                break
            other = reduced[pivot]
            factor = row[pivot] / other[pivot]
            for v, a in other.items():
                row[v] = row.get(v, Fraction(0)) - factor * a
                if not row[v]:
                    del row[v]
        if not row:
            dropped.add(k)
    return dropped


def pruned(rows: Sequence[Row], leave: Callable[[int, int], bool]) -> list[int]:
    """Return the rows that remain after repeatedly removing those that `leave`.

    `leave` takes a row's number of entries that other remaining rows have, and of all its entries.
    """
    count = Counter(v for row in rows for v in row)
    left = set(range(len(rows)))
    while off := [k for k in left if leave(sum(count[v] > 1 for v in rows[k]), len(rows[k]))]:
        for k in off:
            left.discard(k)
            count.subtract(rows[k].keys())
    return sorted(left)


def substitute(
    row: dict[int, Number],
    v: int,
    equals: Mapping[int, Number],
    touching: dict[int, set[int]],
    k: int,
) -> int:
    """Substitute the expression of v in row k; return the number of entries that this adds."""
    before = len(row)
    times = row.pop(v)
    for w, a in equals.items():
        row[w] = row[w] + times * a if w in row else times * a
        if row[w]:
            touching[w].add(k)
        else:
            del row[w]
            touching[w].discard(k)
    return len(row) - before


def rows_touching(rows: Sequence[Mapping[int, object]]) -> dict[int, list[int]]:
    """Return the rows that have each variable."""
    touching: dict[int, list[int]] = {}
    for k, row in enumerate(rows):
        for v in row:
            touching.setdefault(v, []).append(k)
    return touching
