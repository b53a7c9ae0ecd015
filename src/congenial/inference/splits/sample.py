"""The nodes of a large tree whose splits are fitted: its top, and an even choice of parts below."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple, TypeVar, cast

import numpy as np

from congenial.domain.tree import Tree
from congenial.inference.splits.messages import Evidence
from congenial.inference.splits.tree_pieces import TOP, Pieces, View
from congenial.types import BoolArray, FloatArray, IntArray

# Least number of families of a level that differ in alpha.
MANY = 30
# Most nodes of a tree that is fitted whole, and the number of nodes of the parts of a larger tree
# that are fitted; the second number is the limit if parts are few.
_NODES, _MOST_NODES = 12_000, 80_000
# Least number of parts of a large tree, so that the levels below have enough families.
_PARTS = 2 * MANY

_Column = TypeVar("_Column", FloatArray, IntArray)


class Sample(NamedTuple):
    """Some nodes of a tree, with their parents."""

    evidence: Evidence
    shape: FloatArray  # See `Pieces.shape`.
    level: IntArray  # In the whole tree.


def sample(pieces: Pieces) -> Sample:
    """Return the nodes that are fitted."""
    sizes, top = pieces.sizes, pieces.top
    cut, every = even_choice(sizes)
    if not pieces.roots.size and cut == sizes.size - 1:
        return Sample(top, pieces.shape(TOP), top.tree.level)
    rule, roots = _Rule(cut, every), pieces.roots
    first = rule.choose(pieces, TOP, 0, inside=False)
    # nodes at the cut of the sample are numbered over all pieces: those of the top, if any, alone
    seen = np.zeros(roots.size, dtype=np.int64)
    if cut > pieces.depth:
        seen[1:] = np.cumsum(pieces.sizes_at(cut))[:-1]
    inside = np.isin(roots, first.nodes[first.whole])
    given = {k: (rule, *one) for k, one in enumerate(zip(seen.tolist(), inside, strict=True))}
    return _joined(first, roots, pieces.run("choosing from", _choose, given))


def even_choice(sizes: IntArray) -> tuple[int, int]:
    """Return a level, and how many of its nodes there are for each below which all are fitted.

    All nodes down to the level are fitted. `sizes` has the number of nodes of each level.
    """
    n, so_far = int(sizes.sum()), np.cumsum(sizes)
    if n <= _NODES:
        return sizes.size - 1, 1
    fits = np.flatnonzero(so_far <= _NODES // 3)
    cut = int(fits[-1]) if fits.size else 0
    tops = int(sizes[cut])
    below = n / tops
    wanted = max(int((_NODES - so_far[cut]) / below), 1)
    wanted = max(wanted, min(_PARTS, int(_MOST_NODES / below)))
    return cut, max(tops // wanted, 1)


@dataclass(frozen=True, eq=False)
class _Chosen:
    """The nodes of a piece that are fitted, without the root of a part."""

    nodes: IntArray
    above: IntArray  # The place of each one's parent among them; -1 without one.
    columns: tuple[FloatArray | IntArray, ...]  # Of their evidence: kind, scale, y, lo and hi.
    shape: FloatArray
    level: IntArray
    whole: BoolArray  # Whether all below each one is fitted.


@dataclass(frozen=True)
class _Rule:
    """Down to a level all nodes are fitted; below it, those below some nodes of the level."""

    cut: int
    every: int  # How many nodes of the level there are for each below which all are fitted.

    def choose(self, view: View, number: int, seen: int, *, inside: bool) -> _Chosen:
        """Choose the nodes of a piece.

        `seen` nodes of the level come before. `inside` says of a part whether all below its root is
        fitted.
        """
        known = view.evidence(number)
        tree, level = known.tree, view.level(number, known)
        own, whole = np.ones(len(tree), dtype=np.bool_), np.zeros(len(tree), dtype=np.bool_)
        if number != TOP:
            own[0], whole[0] = False, inside
        starts = np.flatnonzero(own & (level == self.cut))
        whole[starts] = (seen + np.arange(starts.size)) % self.every == 0
        for depth in range(max(self.cut, int(level[0])) + 1, int(level.max()) + 1):
            at = np.flatnonzero(level == depth)
            whole[at] = whole[tree.parents[at]]
        nodes = np.flatnonzero(own & (whole | (level <= self.cut)))
        place = np.full(len(tree) + 1, -1, dtype=np.int64)  # the last for the parent -1
        place[nodes] = np.arange(nodes.size)
        columns = known.kind, known.scale, known.y, known.lo, known.hi
        return _Chosen(
            nodes,
            place[tree.parents[nodes]],
            tuple(column[nodes] for column in columns),
            view.shape(number)[nodes],
            level[nodes],
            whole[nodes],
        )


def _choose(parts: View, number: int, rule: _Rule, seen: int, inside: bool) -> _Chosen:
    return rule.choose(parts, number, seen, inside=inside)


def _joined(top: _Chosen, roots: IntArray, parts: list[_Chosen]) -> Sample:
    """Return the nodes of all pieces, depth first: those of a part after its root."""
    chosen = [top, *parts]
    sizes = np.array([one.nodes.size for one in chosen])
    begin = np.cumsum(sizes) - sizes
    number = np.repeat(np.arange(len(chosen)), sizes)
    # of the top: each node, or the root of its part
    node = np.concatenate((top.nodes, np.repeat(roots, sizes[1:])))
    root = np.full(max(int(top.nodes.max()), int(roots.max(initial=0))) + 1, -1, dtype=np.int64)
    root[top.nodes] = np.arange(top.nodes.size)
    above = np.concatenate(
        [
            np.where(one.above >= 0, start + one.above, outer)
            for one, start, outer in zip(chosen, begin, (-1, *root[roots]), strict=True)
        ]
    )
    order = np.lexsort((np.arange(number.size), number, node))

    def joined(columns: Iterable[_Column]) -> _Column:
        return cast(_Column, np.concatenate(list(columns))[order])

    place = np.full(order.size + 1, -1, dtype=np.int64)
    place[order] = np.arange(order.size)
    columns = [joined(column) for column in zip(*(one.columns for one in chosen), strict=True)]
    evidence = Evidence(Tree.from_parents(place[above[order]]), *columns)
    return Sample(
        evidence, joined(one.shape for one in chosen), joined(one.level for one in chosen)
    )
