"""The facts about parts that a certificate states, and those of the whole release."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import msgspec
import numpy as np

from congenial.domain.tree import Path, Tree
from congenial.plan.plan import Plan
from congenial.releases.accuracy import LevelAccuracy, compare_level, largest
from congenial.releases.certificate import Certificate
from congenial.releases.making.stand_in import found_leaf, named_leaves
from congenial.releases.specification import (
    LevelNodes,
    RecordMoves,
    Specification,
    SumsOfParts,
    WorstNeighbours,
)
from congenial.types import IntArray

Stated = TypeVar("Stated", Certificate, Specification)


@dataclass(frozen=True, eq=False)
class PartFacts:
    """Facts about one part, or several, that the certificate states; cut nodes are in the top."""

    nodes: IntArray  # shape (levels,): Number of nodes of each level.
    inner: int  # Number of nodes with children.
    margins: Mapping[int, int | None]  # Largest error margin of each level below the cut.
    # Path of each leaf here that the worst neighbours name, by the path of its stand-in.
    named: Mapping[Path, Path]


def facts_of(
    tree: Tree, level: IntArray, depth: int, margin: IntArray, named: Mapping[Path, Path]
) -> PartFacts:
    """Return the facts about the nodes of a tree below its roots, which are of the level `depth`.

    `level` is that of each node in the whole release, and `margin` its error margin.
    """
    nodes = np.bincount(level)
    nodes[depth] = 0
    margins = {d: largest(margin[level == d]) for d in range(depth + 1, nodes.size)}
    return PartFacts(nodes, int((~tree.is_leaf).sum()), margins, named)


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
        nodes[: one.nodes.size] += one.nodes
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
        guarantee=msgspec.structs.replace(
            made.guarantee, worst_neighbours=_named(worst, [one.named for one in facts])
        ),
    )


def _named(worst: WorstNeighbours, named: Iterable[Mapping[Path, Path]]) -> WorstNeighbours:
    """Return the worst neighbours with the names of the release's own leaves."""
    found: dict[Path | None, Path] = {name: path for one in named for name, path in one.items()}
    if isinstance(worst, RecordMoves):
        ends = {"origin": found.get(worst.origin), "destination": found.get(worst.destination)}
    else:
        ends = {"node": found.get(worst.node)}
    return msgspec.structs.replace(worst, **ends)
