"""A small tree below each cut node, from which the claims of a release in parts follow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from congenial.domain.names import KIND, Names
from congenial.domain.tree import Path, Tree
from congenial.plan.fields import refuse
from congenial.releases.making.cut import PARTS, Cut
from congenial.releases.specification import RecordMoves, WorstNeighbours
from congenial.types import IntArray

# Children of each node that stands for those below the cut. With three, a record can move in every
# way in which it can move in any larger tree.
_CHILDREN = 3
# Most nodes that stand for others.
_MOST = 5_000_000


def stand_in(top: Tree, cut: Cut) -> Tree:
    """Return the top with a small tree below each cut node, which stands for all that may be there.

    Each level has one scale. So the loss between two neighbours depends on the levels of the counts
    that they change, and all sets of such levels that a larger tree has occur here.
    """
    deep = len(cut.plan.hierarchy.levels) - cut.depth
    size, is_cut = nodes_of_stand_in(1, deep), top.level == cut.depth
    if size * int(is_cut.sum()) > _MOST:
        refuse(PARTS, f"is {cut.level!r}, with {deep} levels below it", "cut at a deeper level")
    below, numbers = _small_tree(deep)
    before = np.cumsum(is_cut) - is_cut
    place = np.arange(len(top)) + size * before
    parents = np.full(len(top) + size * int(is_cut.sum()), -1, dtype=np.int64)
    labels = np.empty(parents.size, dtype=KIND)
    parents[place] = np.where(top.parents < 0, -1, place[top.parents])
    labels[place] = top.names.array
    roots = place[is_cut][:, None]
    inside = roots + 1 + np.arange(size)
    parents[inside] = np.where(below < 0, roots, roots + 1 + below)
    labels[inside] = numbers
    return Tree.from_parents(parents, Names(labels))


def nodes_of_stand_in(parts: int, deep: int) -> int:
    """Return the number of nodes that stand for those of parts with some levels below the cut."""
    return parts * int(_CHILDREN ** (deep + 1) - _CHILDREN) // 2


def _small_tree(deep: int) -> tuple[IntArray, Sequence[str]]:
    """Return the parents, -1 for the root, and the names of all nodes below a root, depth first.

    A node's name is its number among its siblings, from 0.
    """
    parents: list[int] = []
    names: list[str] = []

    def grow(parent: int, left: int) -> None:
        for number in range(_CHILDREN if left else 0):
            parents.append(parent)
            names.append(str(number))
            grow(len(parents) - 1, left - 1)

    grow(-1, deep)
    return np.array(parents, dtype=np.int64), names


def named_leaves(worst: WorstNeighbours) -> Iterator[Path]:
    """Yield the leaves that a pair of neighbours names, if any, as the stand-in names them."""
    ends = (worst.origin, worst.destination) if isinstance(worst, RecordMoves) else (worst.node,)
    return (end for end in ends if end is not None)


def found_leaf(tree: Tree, numbers: Sequence[str], node: int = 0) -> Path:
    """Return the names below a node down to the one with these numbers among its siblings."""
    (starts, children), names = tree.children, []
    for number in map(int, numbers):
        node = int(children[min(starts[node] + number, starts[node + 1] - 1)])
        names.append(tree.names[node])
    return tuple(names)
