"""Expected proportions of categories, such as cells of a table by block, in each family of leaves.

Measured cells are added up to every node above them. From the roots down, a node's proportions are
those of its parent, moved towards its own sums as far as the level's nodes differ from their
parents in excess of noise (Morris 1983).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from congenial.domain.tree import Tree
from congenial.inference.splits.messages import Evidence
from congenial.inference.splits.tree_pieces import CENTER, SHAPE, TOP, Pieces, View
from congenial.kernels.numerics import laws
from congenial.types import BoolArray, FloatArray, IntArray

# Least expected proportion of a category.
_LEAST_SHARE = 1e-4


@dataclass(frozen=True)
class Categories:
    """The categories of the families of leaves of a tree, or of a part of it."""

    names: tuple[str, ...] | None  # None if families differ.
    families: int


def categories_of(tree: Tree) -> Categories:
    """Return the categories that the families of leaves of a tree have."""
    cells = _cells(tree)
    if cells is None or not tree.labels:
        return Categories(None, 0)
    size = cells.shape[1]
    first = [tree.labels[c] for c in cells[0]]
    same = all(tree.labels[c] == first[i % size] for i, c in enumerate(cells.ravel().tolist()))
    same = same and len(set(first)) == size
    return Categories(tuple(first) if same else None, len(cells))


def number_of_categories(found: Iterable[Categories]) -> int:
    """Return the number of categories that all families of some trees have; 0 if they differ."""
    found = list(found)
    names = found[0].names
    if names is None or any(one.names != names for one in found[1:]):
        return 0
    return len(names) if sum(one.families for one in found) >= 2 and len(names) >= 2 else 0


def _cells(tree: Tree) -> IntArray | None:
    """Return the leaves by family, shape (families, size); None if families differ in size."""
    leaf = np.flatnonzero(tree.level == tree.depth - 1)
    starts, children = tree.children
    families = np.unique(tree.parents[leaf])
    if families[0] < 0:
        return None
    counts = np.diff(starts)[families]
    if leaf.size != tree.leaves.size or not (counts == counts[0]).all():
        return None
    return np.asarray(children[starts[families][:, None] + np.arange(counts[0])])


def keep_shapes(pieces: Pieces) -> None:
    """Work out the expected proportions of all families, where families have the same categories.

    `CENTER` must hold approximate counts.
    """
    if not pieces.categories:
        return
    below = pieces.run("adding up", _sums_of_root)
    top, deepest = _Sums.of(pieces, TOP, pieces.roots, below), pieces.sizes.size - 1
    found: list[float] = []

    def given(*more: int) -> dict[int, tuple[object, ...]]:
        above = top.tree.parents[pieces.roots]
        ends = zip(top.out[pieces.roots], top.out[above], strict=True)
        return {k: (_Above(tuple(found), *end), *more) for k, end in enumerate(ends)}

    for depth in range(1, deepest - 1):
        terms = top.terms(depth)
        if depth > pieces.depth:
            terms = terms + sum(pieces.run("comparing", _terms, given(depth)))
        found.append(float(terms[0]) / max(float(terms[1]), 1e-300))
        top.move(depth, found[-1])
    pieces.keep(SHAPE, TOP, top.shape())
    pieces.run("comparing", _keep_shape, given())


class _Above(NamedTuple):
    """Numbers that decide about the proportions of a part."""

    differ: tuple[float, ...]  # How far nodes differ from their parents, of each level from 1 on.
    out: FloatArray  # shape (categories,): Proportions of its root.
    above: FloatArray  # shape (categories,): Those of the parent of its root.


def _sums_of_root(parts: View, number: int) -> tuple[FloatArray, FloatArray]:
    return _Sums.of(parts, number).of_root()


def _moved(parts: View, number: int, given: _Above) -> _Sums:
    """Return the sums of a part with all proportions that are known so far."""
    one = _Sums.of(parts, number)
    one.out[0], one.above[:] = given.out, given.above
    for depth, differ in enumerate(given.differ, start=1):
        one.move(depth, differ)
    return one


def _terms(parts: View, number: int, given: _Above, depth: int) -> FloatArray:
    return _moved(parts, number, given).terms(depth)


def _keep_shape(parts: View, number: int, given: _Above) -> None:
    parts.keep(SHAPE, number, _moved(parts, number, given).shape())


@dataclass(frozen=True, eq=False)
class _Sums:
    """Measured cells of a piece, added up to each node, and proportions that follow."""

    tree: Tree
    level: IntArray  # Of the whole tree.
    cells: IntArray | None  # None of a top whose leaves are in parts.
    sums: FloatArray  # shape (n, categories)
    variance: FloatArray  # shape (n, categories)
    total: FloatArray  # shape (n,)
    out: FloatArray  # shape (n, categories): Proportions.
    above: FloatArray  # shape (categories,): Those of the parent of a part's root.

    @classmethod
    def of(
        cls,
        view: View,
        number: int,
        roots: IntArray | None = None,
        below: Sequence[tuple[FloatArray, FloatArray]] = (),
    ) -> _Sums:
        """Return the sums of a piece; those of the top are given the sums below its cut nodes."""
        known = view.evidence(number)
        tree, size = known.tree, view.categories
        n = len(tree)
        sums, variance = np.zeros((n, size)), np.zeros((n, size))
        cells = None
        if below:
            sums[roots] = [one for one, _ in below]
            variance[roots] = [one for _, one in below]
        else:
            cells = _cells(tree)
            if cells is None:
                raise AssertionError("all families of leaves have the same categories")
            _add_cells(known, cells, sums, variance)
        for depth in range(tree.depth - 1, 0, -1):
            at = np.flatnonzero((tree.level == depth) & ~_is_cell(n, cells))
            np.add.at(sums, tree.parents[at], sums[at])
            np.add.at(variance, tree.parents[at], variance[at])
        out = np.zeros((n, size))
        if number == TOP:
            roots = np.flatnonzero(tree.parents < 0)
            out[roots] = np.maximum(sums[roots], 0.5)
            out[roots] /= out[roots].sum(axis=1, keepdims=True)
        total = np.maximum(view.values(CENTER, number), 1.0)
        level = view.level(number, known)
        return cls(tree, level, cells, sums, variance, total, out, np.full(size, 1.0 / size))

    def of_root(self) -> tuple[FloatArray, FloatArray]:
        """Return the sums of a part, and their variance."""
        return self.sums[0], self.variance[0]

    def terms(self, depth: int) -> FloatArray:
        """Return two numbers whose ratio says how far a level's nodes differ from their parents."""
        at = self._nodes(depth)
        error, off, room = self._off(at)
        sure = 1.0 / np.maximum(error, 1e-300) ** 2
        return np.array([((off**2 - error) * sure).sum(), (room * sure).sum()])

    def move(self, depth: int, differ: float) -> None:
        """Work out the proportions of a level's nodes."""
        at = self._nodes(depth)
        if not at.size:
            return
        above = self.out[self.tree.parents[at]]
        error, off, room = self._off(at)
        own = max(differ, 1e-6) * room
        self.out[at] = np.maximum(above + own / (own + error) * off, _LEAST_SHARE)
        self.out[at] /= self.out[at].sum(axis=1, keepdims=True)

    def shape(self) -> FloatArray:
        """Return the proportion of each cell, times their number; 1 of other nodes."""
        out = np.ones(len(self.tree))
        if self.cells is not None:
            of = self.tree.parents[self.tree.parents[self.cells[:, 0]]]
            found = np.where((of >= 0)[:, None], self.out[np.maximum(of, 0)], self.above)
            out[self.cells] = found * self.cells.shape[1]
        return out

    def _nodes(self, depth: int) -> IntArray:
        return np.flatnonzero((self.level == depth) & (self.tree.parents >= 0))

    def _off(self, at: IntArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the error of nodes' shares, their distance from their parents', and its unit."""
        above = self.out[self.tree.parents[at]]
        error = self.variance[at] / self.total[at, None] ** 2
        return error, self.sums[at] / self.total[at, None] - above, above * (1.0 - above)


def _add_cells(known: Evidence, cells: IntArray, sums: FloatArray, variance: FloatArray) -> None:
    """Write the measured cells of each family, and the variance of their noise."""
    seen, families = known.kind[cells] != laws.FLAT, known.tree.parents[cells[:, 0]]
    sums[families] = np.where(seen, known.y[cells], 0.0)
    variance[families] = np.where(seen, known.variance[cells], 0.0)


def _is_cell(n: int, cells: IntArray | None) -> BoolArray:
    found = np.zeros(n, dtype=np.bool_)
    if cells is not None:
        found[cells] = True
    return found
