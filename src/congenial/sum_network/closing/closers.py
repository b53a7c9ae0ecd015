"""Choose variables that close the cycles of sums, and follow from all others.

Without these *closers*, and without the sums that determine them, the sums are a forest. A closer
may have sums below it, which no other variable of a cycle has; its own tree is drawn given it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from congenial.sum_network.cutset.systems import (
    Row,
    SumSystem,
    as_arrays,
    cycle_closers,
    pruned,
    rows_touching,
)
from congenial.sum_network.forest import SumForest, of_rows
from congenial.types import IntArray

# Most sums on cycles, and entries of them, among which closers are searched for.
_MOST_SUMS, _MOST_ENTRIES = 200, 4_000
# Closers above which further searches are made; most searches, and entries squared of all, seconds.
_FEW, _MOST_TRIED, _MOST_WORK = 4, 16, 200_000
# Multiples of a stride, modulo a prime, put variables into other orders.
_STRIDE, _PRIME = 7_919, 10_007


@dataclass(frozen=True, eq=False)
class ClosingPart:
    """Some variables and the sums that join them."""

    variables: IntArray  # shape (k,): The closer comes first in its tree.
    forest: SumForest  # Of these, numbered 0..k-1.
    closer: bool = False  # Whether it is the tree of a closer.


@dataclass(frozen=True, eq=False)
class Closing:
    """Closers of connected sums, and the forests that remain without what determines them."""

    free: ClosingPart  # Variables that are drawn first.
    trees: tuple[ClosingPart, ...]  # Of each closer, itself and what is below it.
    # shape (closers, free): A closer is the sum of these multiples of the free variables.
    multiples: IntArray
    nested: bool  # Whether other sums hang below those of the cycles.

    @property
    def closers(self) -> IntArray:
        """The closers, shape (c,)."""
        return np.array([int(tree.variables[0]) for tree in self.trees], dtype=np.int64)

    @property
    def owns_sums(self) -> bool:
        """Whether each closer, and each variable that one follows from, has sums below it."""
        owns = np.zeros(self.free.variables.size, dtype=np.bool_)
        owns[self.free.forest.owner[self.free.forest.owner >= 0]] = True
        followed = (self.multiples != 0).any(axis=0)
        return bool(owns[followed].all()) and all(tree.forest.m for tree in self.trees)

    @property
    def variables(self) -> IntArray:
        """All variables: the free ones, then those of each tree."""
        return np.concatenate([part.variables for part in (self.free, *self.trees)])


def find_closings(system: SumSystem) -> tuple[Closing, ...] | None:
    """Choose closers for all sums with cycles, each connected set of sums apart.

    As few are chosen as a greedy search finds. All variables without a cycle are free, in a closing
    of their own. Returns None if some sums have no closers that the others determine.
    """
    plain, cyclic = _apart(system)
    found = list[Closing]()
    for sums in cyclic:
        one = _closing_of(sums)
        if one is None:
            return None
        found.append(one)
    if plain.variables:
        free = _part(plain.variables, plain.rows)
        nothing = np.zeros((0, free.variables.size), dtype=np.int64)
        found.append(Closing(free, (), nothing, nested=False))
    return tuple(found)


def sums_of_forest(forest: SumForest) -> list[Row]:
    """Return the sums of a forest as rows, in its signs: summands less their owner."""
    own = [dict[int, int]() for _ in range(forest.m)]
    for v, k in enumerate(forest.above.tolist()):
        if k >= 0:
            own[k][v] = 1
    for k, v in enumerate(forest.owner.tolist()):
        if v >= 0:
            own[k][v] = -int(forest.sign[k])
    return own


def forest_of(closings: Sequence[Closing], size: int) -> SumForest:
    """Return all variables of a system, and the sums that no closer follows from."""
    rows = list[Row]()
    for part in (part for one in closings for part in (one.free, *one.trees)):
        variables, signs = part.variables.tolist(), part.forest.orientation.tolist()
        rows += [
            {variables[v]: a * signs[v] for v, a in row.items()}
            for row in sums_of_forest(part.forest)
        ]
    return of_rows(as_arrays(rows), size)


class _Connected(NamedTuple):
    """Connected sums, and their variables."""

    variables: list[int]
    rows: list[Row]
    implied: list[Row]


def _apart(system: SumSystem) -> tuple[_Connected, list[_Connected]]:
    """Return all that has no cycle, and each connected set of sums with cycles."""
    rows = [*system.rows, *system.implied]
    touching, left = rows_touching(rows), set(system.free)
    plain, cyclic = _Connected([], [], []), list[_Connected]()
    for start in system.free:
        if start not in left:
            continue
        variables, seen = [start], dict.fromkeys(touching.get(start, ()))
        left.discard(start)
        for k in (waiting := list(seen)):
            for v in rows[k].keys() & left:
                left.discard(v)
                variables.append(v)
                fresh = [j for j in touching[v] if j not in seen]
                seen.update(dict.fromkeys(fresh))
                waiting += fresh
        own = [rows[k] for k in sorted(seen) if k < len(system.rows)]
        implied = [rows[k] for k in sorted(seen) if k >= len(system.rows)]
        if cycle_closers(own, sorted(variables)):
            cyclic.append(_Connected(sorted(variables), own, implied))
        else:
            plain.variables.extend(variables)
            plain.rows.extend(own)
    plain.variables.sort()
    return plain, cyclic


def _closing_of(sums: _Connected) -> Closing | None:
    """Choose closers of connected sums, the fewest of several searches."""
    every = [*sums.rows, *sums.implied]
    inner = pruned(every, lambda shared, _: shared < 2)
    entries = sum(len(every[k]) for k in inner)
    if len(inner) > _MOST_SUMS or entries > _MOST_ENTRIES:
        return None
    on_cycle = set(inner)
    cyclic = [every[k] for k in inner]
    outer = [row for k, row in enumerate(every) if k not in on_cycle]
    found = [_chosen(cyclic, 0)]
    if found[0] is not None and len(found[0][0]) > _FEW:
        tries = min(_MOST_TRIED, _MOST_WORK // entries**2)
        found += [_chosen(cyclic, turn) for turn in range(1, tries)]
    for closers, kept in sorted(
        (one for one in found if one is not None), key=lambda of: len(of[0])
    ):
        rest = [*outer, *(cyclic[k] for k in kept)]
        solved = _solved([row for k, row in enumerate(cyclic) if k not in kept], closers)
        # as many independent sums as before, all of which follow from them, have the same
        # solutions; without a cycle, sums of two variables or more are independent
        alone = any(len(row) < 2 for row in rest)
        if solved is None or alone or len(rest) + len(closers) != len(sums.rows):
            continue
        made = _arranged(sums.variables, rest, closers, solved)
        if made is not None:
            return replace(made, nested=bool(outer))
    return None


def _chosen(rows: list[Row], turn: int) -> tuple[list[int], set[int]] | None:
    """Return closers, and the rows that none of them is in; these have no cycle.

    Of several variables that leave equally few cycles, another one comes first at each turn.
    """
    touching = rows_touching(rows)
    kept, closers = set(range(len(rows))), list[int]()
    column = {v: i for i, v in enumerate(touching)}
    matrix = np.zeros((len(rows), len(column)), dtype=np.float64)
    for k, row in enumerate(rows):
        matrix[k, [column[v] for v in row]] = list(row.values())

    def rank(of: set[int]) -> int:
        return int(np.linalg.matrix_rank(matrix[sorted(of)])) if of else 0

    def cycles(of: set[int]) -> int:
        return len(cycle_closers([rows[k] for k in sorted(of)], list(column)))

    while cycles(kept):
        left = {v: kept.difference(touching[v]) for v in touching if kept.intersection(touching[v])}
        order = sorted(
            left, key=lambda v: (cycles(left[v]), (v + 1) * (turn * _STRIDE + 1) % _PRIME)
        )
        before = rank(kept)
        # a closer takes the place of one sum: all others that it is in must follow from the rest
        v = next((v for v in order if rank(left[v]) == before - 1), None)
        if v is None:
            return None
        closers.append(v)
        kept = left[v]
    return closers, kept


def _solved(rows: Sequence[Row], closers: list[int]) -> list[dict[int, Fraction]] | None:
    """Express each closer in other variables; None if the rows do not determine all of them."""
    left = [{v: Fraction(a) for v, a in row.items()} for row in rows]
    out = list[dict[int, Fraction]]()
    for d in closers:
        row = next((row for row in left if row.get(d)), None)
        if row is None:
            return None
        left.remove(row)
        lead = row.pop(d)
        equals = {v: -a / lead for v, a in row.items()}
        for other in [*left, *out]:
            times = other.pop(d, Fraction(0))
            for v, a in equals.items():
                other[v] = other.get(v, Fraction(0)) + times * a
        out.append(equals)
    return out


def _arranged(
    variables: list[int], rows: list[Row], closers: list[int], solved: list[dict[int, Fraction]]
) -> Closing | None:
    """Arrange the forest and the trees of all closers; None if closers follow from no integers."""
    touching = rows_touching(rows)
    trees, taken = list[ClosingPart](), set[int]()
    for d in closers:
        inside, below = [d], list[int]()
        for v in inside:
            fresh = [k for k in touching.get(v, ()) if k not in taken]
            below += fresh
            taken.update(fresh)
            inside += sorted({w for k in fresh for w in rows[k]} - {v})
        trees.append(_tree(inside, [rows[k] for k in below]))
    drawn = {v for tree in trees for v in tree.variables.tolist()}
    free = [v for v in variables if v not in drawn]
    place = {v: i for i, v in enumerate(free)}
    multiples = np.zeros((len(closers), len(free)), dtype=np.int64)
    for i, equals in enumerate(solved):
        for v, a in equals.items():
            if not a:
                continue
            if v not in place or a.denominator != 1:
                return None
            multiples[i, place[v]] = int(a)
    remaining = [row for k, row in enumerate(rows) if k not in taken]
    return Closing(_part(free, remaining), tuple(trees), multiples, nested=False)


def _part(variables: list[int], rows: list[Row]) -> ClosingPart:
    place = {v: i for i, v in enumerate(variables)}
    placed = [{place[v]: a for v, a in row.items()} for row in rows]
    return ClosingPart(np.array(variables, dtype=np.int64), of_rows(as_arrays(placed), len(place)))


def _tree(variables: list[int], rows: list[Row]) -> ClosingPart:
    """Arrange a tree below the first variable."""
    # one more sum, of this variable alone, comes first and is then taken away
    whole = _part(variables, [{variables[0]: 1}, *rows])
    of = whole.forest
    above, depth = of.above - np.int32(1), of.depth[1:] - np.int32(1)
    below = SumForest(above, of.owner[1:], of.sign[1:], of.orientation, depth)
    return replace(whole, forest=below, closer=True)
