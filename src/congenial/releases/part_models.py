"""Models of the parts of a release: of the claims, of the counts down to a level, of those below.

The claims follow from a small tree, which has a few nodes below each node of the level at which the
release is cut.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import msgspec
import numpy as np

from congenial.domain.names import KIND, Names
from congenial.domain.tree import Path, Tree
from congenial.invariants.written import consistent, exactly, nonnegative, resolve_invariant
from congenial.noise.additive import Additive
from congenial.noise.law import find_law
from congenial.plan.cut import PARTS, Cut
from congenial.plan.fields import refuse
from congenial.plan.plan import Plan
from congenial.releases.accuracy import LevelAccuracy, compare_level, largest
from congenial.releases.certificate import Certificate
from congenial.releases.model import Model, invariant_of
from congenial.releases.specification import (
    LevelNodes,
    RecordMoves,
    Specification,
    SumsOfParts,
    WorstNeighbours,
)
from congenial.types import BoolArray, FloatArray, IntArray

Stated = TypeVar("Stated", Certificate, Specification)

# Children of each node that stands for those below the cut. With three, a record can move in every
# way in which it can move in any larger tree.
_CHILDREN = 3
# Most nodes that stand for others.
_MOST = 5_000_000


def stand_in(top: Tree, cut: Cut, chains: BoolArray | None = None) -> Tree:
    """Return the top with a small tree below each cut node, which stands for all that may be there.

    Each level has one scale. So the loss between two neighbours depends on the levels of the counts
    that they change, and all sets of such levels that a larger tree has occur here. Below `chains`,
    shape (top,), each node has one part: any tree there has at least its loss.
    """
    deep = len(cut.plan.hierarchy.levels) - cut.depth
    is_cut = top.level == cut.depth
    alone = np.zeros(len(top), dtype=np.bool_) if chains is None else chains & is_cut
    kinds = ((is_cut & ~alone, _CHILDREN), (alone, 1))
    if sum(nodes_of_stand_in(int(here.sum()), deep, each) for here, each in kinds) > _MOST:
        refuse(PARTS, f"is {cut.level!r}, with {deep} levels below it", "cut at a deeper level")
    size = np.zeros(len(top), dtype=np.int64)
    for here, children in kinds:
        size[here] = nodes_of_stand_in(1, deep, children) if here.any() else 0
    place = np.arange(len(top)) + np.cumsum(size) - size
    parents = np.full(len(top) + int(size.sum()), -1, dtype=np.int64)
    labels = np.empty(parents.size, dtype=KIND)
    parents[place] = np.where(top.parents < 0, -1, place[top.parents])
    labels[place] = top.names.array
    for here, children in (kind for kind in kinds if kind[0].any()):
        below, numbers = _small_tree(deep, children)
        roots = place[here][:, None]
        inside = roots + 1 + np.arange(below.size)
        parents[inside] = np.where(below < 0, roots, roots + 1 + below)
        labels[inside] = numbers
    return Tree.from_parents(parents, Names(labels))


def nodes_of_stand_in(parts: int, deep: int, children: int = _CHILDREN) -> int:
    """Return the number of nodes that stand for those of parts with some levels below the cut."""
    return parts * sum(int(children**level) for level in range(1, deep + 1))


def _small_tree(deep: int, children: int) -> tuple[IntArray, Sequence[str]]:
    """Return the parents, -1 for the root, and the names of all nodes below a root, depth first.

    A node's name is its number among its siblings, from 0.
    """
    parents: list[int] = []
    names: list[str] = []

    def grow(parent: int, left: int) -> None:
        for number in range(children if left else 0):
            parents.append(parent)
            names.append(str(number))
            grow(len(parents) - 1, left - 1)

    grow(-1, deep)
    return np.array(parents, dtype=np.int64), names


@dataclass(frozen=True)
class PartShape:
    """The shape of one part."""

    nodes: int  # Number of nodes below the cut node.
    children: int  # Number of these that are parts of the cut node.
    # Whether each level from the cut on has a node with a sibling, and with several parts or none.
    full: bool

    def stands_alone(self, *, fixed: bool) -> bool:
        """Whether each level has a count that changes alone; `fixed`: the cut node's never does.

        Under bounds, counts that only change together lose less.
        """
        return self.full and self.children >= 2 + fixed


def shape_of(tree: Tree) -> PartShape:
    """Return the shape of a part, the tree from a cut node on."""
    parts = np.bincount(tree.parents + 1, minlength=len(tree) + 1)[1:]
    alone = (parts[tree.parents] != 1) & (parts != 1)
    alone[0] = parts[0] != 1
    full = np.isin(np.arange(tree.depth), tree.level[alone]).all()
    return PartShape(len(tree) - 1, int(parts[0]), bool(full))


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


def top_model(model: Model, top: Tree) -> Model:
    """Return the model of the counts down to the cut."""
    invariant = invariant_of(model.plan, top)
    resolved = resolve_invariant(invariant, len(top), top)
    scales = np.where(resolved.pinned, np.inf, level_scales(model)[top.level])
    mechanism = Additive(find_law(model.plan.privacy.noise)(scales), top)
    return replace(model, domain=top, mechanism=mechanism, invariant=invariant, resolved=resolved)


def below_model(plan: Plan, scale: FloatArray, forest: Tree, exact: IntArray) -> Model:
    """Return the model of the counts below cut nodes, which are the roots of a forest.

    `scale` is that of each level of the forest. Those counts named `exact` are fixed.
    """
    invariant = consistent(forest) & nonnegative()
    if exact.size:
        invariant = invariant & exactly(exact.tolist())
    resolved = resolve_invariant(invariant, len(forest), forest)
    scales = np.where(resolved.pinned, np.inf, scale[forest.level])
    mechanism = Additive(find_law(plan.privacy.noise)(scales), forest)
    return Model(plan, forest, mechanism, invariant, resolved, {})


def level_scales(model: Model) -> FloatArray:
    """Return the scale of the noise of each level; inf for one that is not measured."""
    return np.array([np.inf if each.scale is None else each.scale for each in model.levels])


@dataclass(frozen=True)
class PartFacts:
    """Facts about one part, or several, that the certificate states; cut nodes are in the top."""

    nodes: tuple[int, ...]  # Number of nodes of each level.
    inner: int  # Number of nodes with children.
    margins: dict[int, int | None]  # Largest error margin of each level below the cut, by depth.
    # Path of each leaf here that the worst neighbours name, after the path of its stand-in.
    named: tuple[tuple[Path, Path], ...]
    odd_names: tuple[str, ...] = ()  # Sentences about names that could be taken for others.


def facts_of(
    tree: Tree, level: IntArray, depth: int, margin: IntArray, named: Mapping[Path, Path]
) -> PartFacts:
    """Return the facts about the nodes of a tree below its roots, which are of the level `depth`.

    `level` is that of each node in the whole release, and `margin` its error margin.
    """
    nodes = np.bincount(level)
    nodes[depth] = 0
    margins = {d: largest(margin[level == d]) for d in range(depth + 1, nodes.size)}
    return PartFacts(
        tuple(nodes.tolist()), int((~tree.is_leaf).sum()), margins, tuple(named.items())
    )


def named_below(tree: Tree, node: int, path: Path, worst: WorstNeighbours) -> dict[Path, Path]:
    """Return the path of each leaf below a cut node that the worst neighbours name.

    `path` is that of the node in the release, and of its stand-in.
    """
    at = len(path)
    below = [leaf for leaf in named_leaves(worst) if leaf[:at] == path]
    return {leaf: (*path, *found_leaf(tree, leaf[at:], node)) for leaf in below}


def levels_of_all(
    plan: Plan, level: IntArray, margin: IntArray, facts: Sequence[PartFacts]
) -> tuple[LevelAccuracy, ...]:
    """State the error margins of all levels, given the levels and the margins of the top."""
    out = []
    for depth, name in enumerate(plan.place_names):
        here = margin[level == depth]
        each = [largest(here)] if here.size else []
        each += [one.margins[depth] for one in facts if depth in one.margins]
        known = [one for one in each if one is not None]
        most = max(known) if len(known) == len(each) else None
        out.append(compare_level(plan, name, most))
    return tuple(out)


def of_all(made: Stated, top: Tree, facts: Sequence[PartFacts], worst: WorstNeighbours) -> Stated:
    """Return a statement with the numbers and the names of the release's own nodes."""
    size = len(made.domain.levels)
    nodes = np.bincount(top.level, minlength=size)
    for one in facts:
        nodes[: len(one.nodes)] += one.nodes
    inner = int((~top.is_leaf).sum()) + sum(one.inner for one in facts)
    levels = tuple(
        LevelNodes(level.name, number, level.published_exactly)
        for level, number in zip(made.domain.levels, nodes.tolist(), strict=True)
    )
    mandates = tuple(
        SumsOfParts(inner) if isinstance(one, SumsOfParts) else one for one in made.invariants
    )
    return msgspec.structs.replace(
        made,
        domain=msgspec.structs.replace(made.domain, levels=levels),
        invariants=mandates,
        guarantee=msgspec.structs.replace(made.guarantee, worst_neighbours=_named(worst, facts)),
    )


def _named(worst: WorstNeighbours, facts: Iterable[PartFacts]) -> WorstNeighbours:
    """Return the worst neighbours with the names of the release's own leaves."""
    found: dict[Path | None, Path] = dict(pair for one in facts for pair in one.named)
    if isinstance(worst, RecordMoves):
        ends = {"origin": found.get(worst.origin), "destination": found.get(worst.destination)}
    else:
        ends = {"node": found.get(worst.node)}
    return msgspec.structs.replace(worst, **ends)
