"""Some counts of a release, side by side: one margin at one level, places by cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from congenial.domain.table import Margin, margin_names
from congenial.domain.tree import Path, Tree
from congenial.domain.workload import MarginLike, Workload
from congenial.errors import ArgumentError
from congenial.exhibits.exhibit import Exhibit
from congenial.plan.cross_table import BY, TOTAL, margin_text
from congenial.types import IntArray
from congenial.wording import nearest, one_of, show


@dataclass(frozen=True, eq=False)
class MarginView:
    """The counts of one margin at one level."""

    title: str
    places: tuple[Path, ...]  # Path of each row, from the root down.
    cells: tuple[str, ...]  # Name of each column, such as "F, 0-17".
    # shape (places, cells): Index of each count in the release, -1 where no record can be.
    entries: IntArray = field(repr=False)


def view_of(
    domain: Tree | Workload,
    level_names: Sequence[str],
    margin: MarginLike,
    level: str | int | None,
    table: str | None,
) -> MarginView:
    """Return one margin of a release at one level, see `Release.table`."""
    depth = None if level is None else depth_of(level_names, level)
    if isinstance(domain, Tree):
        if _names(margin) or table is not None:
            raise ArgumentError(
                f"margin is {margin!r} and table is {table!r}, but the release counts the nodes of "
                "a tree; leave both out and give the level."
            )
        return _of_tree(domain, level_names, depth)
    owner = domain.table(table)
    names = owner.margin(_names(margin))
    if depth is None:
        here = [b for b in domain.blocks if b.table is owner and b.margin == names]
        depth = next((b.level for b in here if b.stop - b.start > 1), here[0].level if here else 0)
    block = domain.block(names, depth, owner)
    tree = owner.geography
    nodes = [] if tree is None else owner.nodes(depth).tolist()
    places = tuple(map(tree.path, nodes)) if tree is not None else ((),)
    labels = [", ".join(block.values(column)) for column in range(block.ids.shape[1])]
    kept = np.flatnonzero((block.ids >= 0).any(axis=0))
    cells = tuple(labels[column] or TOTAL for column in kept)
    return MarginView(
        _title(margin_text(names), level_names[depth]), places, cells, block.ids[:, kept]
    )


def as_table(view: MarginView, level_names: Sequence[str], values: IntArray) -> Exhibit:
    """Return a view's released counts as a table: a row a place, a column a cell."""
    path = level_names[: len(view.places[0])]
    counts = np.where(view.entries >= 0, values[view.entries], 0).tolist()
    rows = tuple(
        (*place, *(count if at >= 0 else None for count, at in zip(own, entries, strict=True)))
        for place, own, entries in zip(view.places, counts, view.entries.tolist(), strict=True)
    )
    return Exhibit("counts", view.title, (*path, *view.cells), rows)


def depth_of(level_names: Sequence[str], level: str | int) -> int:
    """Return the depth of a level given by name or depth.

    Raises ArgumentError if there is no such level.
    """
    if isinstance(level, str) and level in level_names:
        return level_names.index(level)
    whole = isinstance(level, int | np.integer) and not isinstance(level, bool)
    if whole and 0 <= int(level) < len(level_names):
        return int(level)
    raise ArgumentError(
        f"level is {show(level)}; give {one_of(level_names)}, or a depth from 0 to "
        f"{len(level_names) - 1}{nearest(str(level), level_names)}."
    )


def _names(margin: MarginLike) -> Margin:
    """Return the names of a margin, given as a plan or as a workload names it."""
    if isinstance(margin, str):
        return () if margin == TOTAL else tuple(margin.split(BY))
    return margin_names(margin)


def _of_tree(tree: Tree, level_names: Sequence[str], depth: int | None) -> MarginView:
    if depth is None:
        sizes = np.bincount(tree.level)
        depth = int(np.argmax(sizes > 1))
    nodes = np.flatnonzero(tree.level == depth)
    places = tuple(map(tree.path, nodes.tolist()))
    return MarginView(_title("counts", level_names[depth]), places, ("value",), nodes[:, None])


def _title(what: str, level: str) -> str:
    return f"{what}, level {level}"
