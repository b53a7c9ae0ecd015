"""The nodes of a large tree whose splits are fitted: its top, and an even choice of parts below."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple, TypeVar, cast

import numpy as np

from congenial.domain.tree import Tree
from congenial.inference.splits.messages import Evidence
from congenial.inference.splits.tree_pieces import TOP, Pieces
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
    sizes, top = pieces.sizes(), pieces.top
    cut, every = even_choice(sizes)
    if not pieces.roots.size and cut == sizes.size - 1:
        return Sample(top, pieces.shape(TOP), top.tree.level)
    chosen, seen, size = list[_Chosen](), 0, 0
    for number in pieces.numbers:
        known = pieces.evidence(number)
        tree, level = known.tree, pieces.level(number, known)
        own, whole, place = np.ones(len(tree), np.bool_), *_nothing(len(tree))
        if number != TOP:
            root = pieces.roots[number]
            own[0], whole[0], place[0] = False, chosen[0].whole[root], chosen[0].place[root]
        starts = np.flatnonzero(own & (level == cut))
        whole[starts] = (seen + np.arange(starts.size)) % every == 0
        for depth in range(max(cut, int(level[0])) + 1, int(level.max()) + 1):
            at = np.flatnonzero(level == depth)
            whole[at] = whole[tree.parents[at]]
        nodes = np.flatnonzero(own & (whole | (level <= cut)))
        place[nodes] = size + np.arange(nodes.size)
        node = nodes if number == TOP else np.full(nodes.size, pieces.roots[number])
        shape = pieces.shape(number)[nodes]
        chosen.append(_Chosen(known, nodes, node, shape, level[nodes], whole, place))
        seen, size = seen + starts.size, size + nodes.size
    return _joined(chosen)


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
    """The nodes of a piece that are fitted."""

    known: Evidence
    nodes: IntArray
    node: IntArray  # Of the top: itself, or the root of the part.
    shape: FloatArray
    level: IntArray
    whole: BoolArray  # Whether all below each node of the piece is fitted.
    place: IntArray  # The place of each node of the piece among all that are fitted.

    @property
    def above(self) -> IntArray:
        """The place of each chosen node's parent; -1 of a root."""
        parents = self.known.tree.parents[self.nodes]
        return np.where(parents >= 0, self.place[parents], -1)


def _nothing(n: int) -> tuple[BoolArray, IntArray]:
    return np.zeros(n, dtype=np.bool_), np.zeros(n, dtype=np.int64)


def _joined(chosen: list[_Chosen]) -> Sample:
    """Return the nodes of all pieces, depth first: those of a part after its root."""
    number = np.repeat(np.arange(len(chosen)), [one.nodes.size for one in chosen])
    node = np.concatenate([one.node for one in chosen])
    order = np.lexsort((np.arange(number.size), number, node))

    def joined(columns: Iterable[_Column]) -> _Column:
        return cast(_Column, np.concatenate(list(columns))[order])

    place = np.full(order.size + 1, -1, dtype=np.int64)
    place[order] = np.arange(order.size)
    evidence = Evidence(
        Tree.from_parents(place[joined(one.above for one in chosen)]),
        joined(one.known.kind[one.nodes] for one in chosen),
        joined(one.known.scale[one.nodes] for one in chosen),
        joined(one.known.y[one.nodes] for one in chosen),
        joined(one.known.lo[one.nodes] for one in chosen),
        joined(one.known.hi[one.nodes] for one in chosen),
    )
    return Sample(
        evidence, joined(one.shape for one in chosen), joined(one.level for one in chosen)
    )
