"""A table over its geography as the kernels for crossing margins read it: nodes, cells and rows."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from congenial.domain.blocks import Block
from congenial.domain.table import Table
from congenial.types import BoolArray, FloatArray, IntArray

Refined = tuple[slice, slice, IntArray]
# Most rounds of propagating bounds between the margins of one area.
_ROUNDS = 16
# Most joins of bounded margins whose bounds are derived.
_MOST_JOINS = 24


@dataclass(frozen=True, eq=False)
class Geography:
    """The nodes of a table's geography, level by level, and the rows of each: N nodes, Q rows.

    The first K rows of a node are its cells; the classes of the margins follow, margin by margin.
    """

    table: Table
    levels: IntArray  # shape (levels + 1,): Where the nodes of each level begin.
    parent: IntArray  # shape (N,): -1 for a root.
    of: IntArray  # shape (K, M): The row of each cell in each margin; the first are the cells.
    ids: IntArray  # shape (N, Q): The entry of each row; -1 for a row that is no entry.
    possible: BoolArray  # shape (N, Q): Whether a record can count in a row.
    starts: IntArray  # shape (M + 1,): Where the rows of each margin begin.

    @property
    def cells(self) -> int:
        """The number of cells."""
        return int(self.of.shape[0])

    @cached_property
    def families(self) -> tuple[IntArray, IntArray, IntArray]:
        """Where families begin in the list of members, the members, and the head of each family.

        A root is a family of its own, with the head -1. Families are in the order of their heads.
        """
        roots = np.flatnonzero(self.parent < 0)
        below = np.flatnonzero(self.parent >= 0)
        below = below[np.argsort(self.parent[below], kind="stable")]
        heads, sizes = np.unique(self.parent[below], return_counts=True)
        first = np.concatenate(([0], np.cumsum(np.append(np.ones_like(roots), sizes))))
        members = np.concatenate((roots, below))
        return first, members, np.concatenate((np.full(roots.size, -1), heads))

    @property
    def stages(self) -> list[tuple[int, int]]:
        """Begin and end of the families of each level; a level needs the ones above it."""
        head = self.families[2]
        edges = np.concatenate(([0], np.searchsorted(head, self.levels)))
        return [(a, b) for a, b in itertools.pairwise(edges.tolist()) if a < b]

    @cached_property
    def refined(self) -> list[Refined]:
        """The margins that refine each other: rows, finer rows, and the row that holds each."""
        found = []
        for a in range(1, self.of.shape[1]):
            for b in range(self.of.shape[1]):
                coarse, fine = self.of[:, a] - self.starts[a], self.of[:, b] - self.starts[b]
                above = np.zeros(self.starts[b + 1] - self.starts[b], dtype=np.int64)
                above[fine] = coarse
                wider = above.size > self.starts[a + 1] - self.starts[a]
                if wider and np.array_equal(above[fine], coarse):
                    found.append((self._rows(a), self._rows(b), above))
        # coarse margins first
        return sorted(found, key=lambda one: one[0].stop - one[0].start)

    def _rows(self, margin: int) -> slice:
        return slice(int(self.starts[margin]), int(self.starts[margin + 1]))

    def summed(self, cells: FloatArray) -> FloatArray:
        """Rows of all nodes, shape (N, Q), for their cells (N, K)."""
        out = np.zeros((cells.shape[0], self.ids.shape[1]))
        for m in range(self.of.shape[1]):
            for k in range(self.cells):
                out[:, self.of[k, m]] += cells[:, k]
        return out

    def read(self, vector: IntArray) -> FloatArray:
        """Cells of all nodes, shape (N, K), from the entries of a vector that adds up."""
        x = np.zeros((self.parent.size, self.cells))
        finest = slice(int(self.levels[-2]), None)
        ids = self.ids[finest, : self.cells]
        x[finest] = np.where(ids >= 0, vector[ids], 0)
        self.roll_up(x)
        return x

    def at(self, level: int) -> slice:
        """The nodes of a level."""
        return slice(int(self.levels[level]), int(self.levels[level + 1]))

    def roll_up(self, x: FloatArray) -> None:
        """Set the cells (N, K) of all levels but the finest to the sums of those below."""
        for level in range(self.levels.size - 3, -1, -1):
            x[self.at(level)] = self.rolled_up(x, level)

    def rolled_up(self, values: FloatArray, level: int) -> FloatArray:
        """Sums of the nodes below those of a level, shape (nodes, ...)."""
        begin, end, stop = self.levels[level : level + 3]
        out = np.zeros((end - begin, *values.shape[1:]))
        np.add.at(out, self.parent[end:stop] - begin, values[end:stop])
        return out

    def carried(
        self, low: FloatArray, high: FloatArray, slack: float
    ) -> tuple[FloatArray, FloatArray, int]:
        """Tighten the bounds of all rows so that the nodes below can satisfy them.

        Returns shapes (N, Q): at least as tight as the row's own bounds and as the sums of the
        bounds below it, without bounds that others imply; and a node whose bounds exclude each
        other by more than the slack, or -1.

        Notes
        -----
        Bounds are propagated along all sums of an area, from the finest level up. Every table
        within the result can then be divided among the children, margin by margin. If bounded
        margins cross, all margins together may still leave no table.
        """
        low, high = low.copy(), high.copy()
        tight_low, tight_high = low.copy(), high.copy()
        for level in range(self.levels.size - 2, -1, -1):
            here = self.at(level)
            if level + 2 < self.levels.size:
                low[here] = np.maximum(low[here], self.rolled_up(tight_low, level))
                high[here] = np.minimum(high[here], self.rolled_up(tight_high, level))
            tight_low[here], tight_high[here] = self.within(low[here], high[here])
        wrong = np.argwhere(tight_low > tight_high + slack)
        high = np.maximum(low, high)
        self._drop(low, high)
        return low, high, int(wrong[0, 0]) if wrong.size else -1

    def loosened(self, low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Drop bounds that other bounds of the area imply, or the same row's bounds below."""
        low, high = low.copy(), high.copy()
        reached = low.copy(), high.copy()
        for level in range(self.levels.size - 3, -1, -1):
            here = self.at(level)
            below = [self.rolled_up(one, level) for one in reached]
            loose = low[here] < high[here]
            for one, end, sums in zip((low, high), reached, below, strict=True):
                tighter = np.maximum if one is low else np.minimum
                end[here] = tighter(end[here], sums)
                worst = -np.inf if one is low else np.inf
                one[here] = np.where(loose & (end[here] == sums), worst, one[here])
        self._drop(low, high)
        return low, high

    def within(self, low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Propagate bounds along the sums of each of some areas until they stay."""
        low, high = low.copy(), high.copy()
        for _ in range(_ROUNDS):
            before = low.copy(), high.copy()
            for coarse, fine, above in self.refined:
                count = coarse.stop - coarse.start
                for one, other, sign in ((low, high, 1.0), (high, low, -1.0)):
                    tighter = np.maximum if sign > 0 else np.minimum
                    sums = _sums(one[:, fine], above, count)
                    one[:, coarse] = tighter(one[:, coarse], sums)
                    rest = one[:, coarse][:, above] - _others(other[:, fine], above, count)
                    one[:, fine] = tighter(one[:, fine], rest)
            if np.array_equal(before[0], low) and np.array_equal(before[1], high):
                break
        return low, high

    def _drop(self, low: FloatArray, high: FloatArray) -> None:
        """Drop bounds that others imply, in place, except those of rows with a fixed value."""
        loose = low < high
        for coarse, fine, above in self.refined:
            count = coarse.stop - coarse.start
            with np.errstate(invalid="ignore"):
                rest = high[:, coarse][:, above] - _others(low[:, fine], above, count)
                implied = loose[:, fine] & (high[:, fine] >= rest)
            high[:, fine] = np.where(implied, np.inf, high[:, fine])
        for coarse, fine, above in reversed(self.refined):
            count = coarse.stop - coarse.start
            free = loose[:, coarse]
            for one, worst in ((low, -np.inf), (high, np.inf)):
                sums = _sums(one[:, fine], above, count)
                implied = one[:, coarse] <= sums if worst < 0 else one[:, coarse] >= sums
                one[:, coarse] = np.where(free & implied, worst, one[:, coarse])


def _sums(values: FloatArray, above: IntArray, count: int) -> FloatArray:
    """Sums of the columns of each class, shape (n, count); infinite ones have one sign."""
    out = np.zeros((values.shape[0], count))
    for column, at in enumerate(above):
        out[:, at] += values[:, column]
    return out


def _others(values: FloatArray, above: IntArray, count: int) -> FloatArray:
    """Sums of the other columns of the class of each column; infinite ones have one sign."""
    finite = np.isfinite(values)
    ends = np.where(finite, values, 0.0)
    total, missing = _sums(ends, above, count), _sums((~finite).astype(float), above, count)
    left = missing[:, above] - ~finite
    sign = np.where(finite, 0.0, values).min() + np.where(finite, 0.0, values).max()
    return np.where(left > 0, sign, total[:, above] - ends)


def _classes(table: Table, block: Block) -> IntArray:
    return np.unique(table.classes(block.margin), return_inverse=True)[1].astype(np.int64)


def _in_order(classes: IntArray) -> IntArray:
    """Number classes in the order in which they first occur."""
    _, first, inverse = np.unique(classes, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[inverse].astype(np.int64)


def _joins(bounded: list[IntArray], cells: int) -> list[IntArray]:
    """Classes of cells that one or more margins distinguish together, each once."""
    found = {one.tobytes(): one for one in map(_in_order, bounded)}
    new = list(found.values())
    for one in new:
        for other in bounded:
            both = _in_order(one * cells + other)
            if both.tobytes() not in found and both.max() + 1 < cells and len(found) < _MOST_JOINS:
                found[both.tobytes()] = both
                new.append(both)
    return list(found.values())


def lay_out(table: Table, blocks: list[Block], bounded: list[Block]) -> Geography:
    """Lay out the blocks of one table.

    If bounded margins cross, the classes that they distinguish together are rows too. Bounds of
    these rows follow from those of the margins, and parents must keep their sums.
    """
    cells = int(np.prod(table.sizes))
    classes = {tuple(table.axes): np.arange(cells)}
    for block in blocks:
        classes.setdefault(block.margin, _classes(table, block))
    known = {_in_order(one).tobytes() for one in classes.values()}
    for join in _joins([_classes(table, block) for block in bounded], cells):
        if join.tobytes() not in known:
            classes[(f"join {len(classes)}",)] = join
    levels = range(len(table.level_names))
    counts = [table.nodes(level).size for level in levels]
    begins = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
    parent = np.full(int(begins[-1]), -1, dtype=np.int64)
    tree = table.geography
    for level in list(levels)[1:]:
        above = table.nodes(level - 1)
        if tree is not None:
            at = np.searchsorted(above, tree.parents[table.nodes(level)])
            parent[begins[level] : begins[level + 1]] = begins[level - 1] + at
    widths = [int(one.max()) + 1 for one in classes.values()]
    starts = np.concatenate(([0], np.cumsum(widths))).astype(np.int64)
    of = np.stack(
        [one + start for one, start in zip(classes.values(), starts[:-1], strict=True)], 1
    )
    rows = int(starts[-1])
    ids = np.full((parent.size, rows), -1, dtype=np.int64)
    place = {margin: slice(int(starts[i]), int(starts[i + 1])) for i, margin in enumerate(classes)}
    for block in blocks:
        here = slice(int(begins[block.level]), int(begins[block.level + 1]))
        ids[here, place[block.margin]] = block.ids
    possible = np.zeros((parent.size, rows), dtype=np.bool_)
    for level in levels:
        held = begins[level] + table.holders(level)
        area, cell = np.nonzero(table.possible)
        for m in range(of.shape[1]):
            possible[held[area], of[cell, m]] = True
    return Geography(table, begins, parent, of, ids, possible, starts)
