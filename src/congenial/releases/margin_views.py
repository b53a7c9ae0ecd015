"""Some counts of a release, side by side: one margin at one level, places by cells."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from congenial.domain.blocks import Block
from congenial.domain.table import Margin, Table, margin_names
from congenial.domain.tree import Path, Tree
from congenial.domain.workload import MarginLike, Workload
from congenial.errors import ArgumentError, UnsupportedError
from congenial.exhibits.exhibit import Exhibit
from congenial.exhibits.plots import MOST_BARS, MOST_BOXES, Bars, IcicleRow
from congenial.plan.cross_table import BY, TOTAL, margin_text, named, query_names
from congenial.types import FloatArray, IntArray
from congenial.wording import nearest, one_of, show

# Lower and upper ends of the intervals of all counts, NaN where there are none.
Ends = tuple[FloatArray, FloatArray]
# Names of the places of a plot that are longer are cut, in letters.
_LONGEST = 28


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
    block = _block(domain, owner, names, depth)
    tree = owner.geography
    nodes = [] if tree is None else owner.nodes(depth).tolist()
    places = tuple(map(tree.path, nodes)) if tree is not None else ((),)
    labels = [", ".join(block.values(column)) for column in range(block.ids.shape[1])]
    kept = np.flatnonzero((block.ids >= 0).any(axis=0))
    cells = tuple(labels[column] or TOTAL for column in kept)
    title = _title(f"{named(owner)}{margin_text(names)}", level_names[depth])
    return MarginView(title, places, cells, block.ids[:, kept])


def _block(domain: Workload, owner: Table, names: Margin, depth: int) -> Block:
    """Return the block of a margin at a level; refuse one that the release does not have."""
    for block in domain.blocks:
        if (block.table, block.level, block.margin) == (owner, depth, names):
            return block
    wanted = f"{owner.level_names[depth]}: {named(owner)}{margin_text(names)}"
    raise ArgumentError(f"the release has no {wanted!r}; it has {one_of(query_names(domain))}.")


def as_table(view: MarginView, level_names: Sequence[str], values: IntArray) -> Exhibit:
    """Return a view's released counts as a table: a row a place, a column a cell."""
    path = level_names[: len(view.places[0])]
    counts = np.where(view.entries >= 0, values[view.entries], 0).tolist()
    rows = tuple(
        (*place, *(count if at >= 0 else None for count, at in zip(own, entries, strict=True)))
        for place, own, entries in zip(view.places, counts, view.entries.tolist(), strict=True)
    )
    return Exhibit("counts", view.title, (*path, *view.cells), rows)


def as_bars(view: MarginView, values: IntArray, ends: Ends, interval: str) -> Bars:
    """Return a view's released counts as bars: the places with the largest counts, in order."""
    entries = view.entries
    if len(view.places) == 1:  # a bar for each cell
        names, series, entries = view.cells, view.places[0][-1:], entries.T
    else:
        names, series = _place_names(view.places), view.cells
    if entries.shape[1] > MOST_BARS:
        raise UnsupportedError(
            f"{view.title} has {entries.shape[1]} cells at each place, and a plot can show "
            f"{MOST_BARS} bars; give a margin with fewer cells, or use `table`."
        )
    counts = np.where(entries >= 0, values[entries], 0)
    most = max(1, MOST_BARS // entries.shape[1])
    kept = np.sort(np.argsort(-counts.sum(axis=1), kind="stable")[:most])
    title = view.title
    if kept.size < len(names):
        title += f": the {kept.size} largest of {len(names):,}"
    at = entries[kept]
    shown = np.where(at >= 0, values[at], np.nan)
    lower, upper = (np.where(at >= 0, end[at], np.nan) for end in ends)
    return Bars(title, tuple(names[v] for v in kept), series, shown, lower, upper, interval)


def as_icicle(
    domain: Tree | Workload,
    level_names: Sequence[str],
    table: str | None,
    values: IntArray,
    ends: Ends,
) -> list[IcicleRow]:
    """Return the totals of the places, level by level, down to the last that can be drawn."""
    if isinstance(domain, Tree):
        tree: Tree | None = domain
        of_level = [np.flatnonzero(domain.level == depth) for depth in range(domain.depth)]
    else:
        owner = domain.table(table)
        tree = owner.geography
        of_level = [_block(domain, owner, (), 0).ids[:, 0]]
        for depth in range(1, len(owner.level_names)):
            found = [b for b in domain.blocks if (b.table, b.level, b.margin) == (owner, depth, ())]
            if not found:
                break
            of_level.append(found[0].ids[:, 0])
    if tree is None:
        raise AssertionError("a plan's table has a geography")
    rows: list[IcicleRow] = []
    previous = np.zeros(0, dtype=np.int64)
    for depth, entries in enumerate(of_level):
        nodes = np.flatnonzero(tree.level == depth)
        if nodes.size > MOST_BOXES:
            break
        inside = entries >= 0
        lower, upper = (np.where(inside, end[entries], 0.0) for end in ends)
        known = inside & ~np.isnan(lower)
        rows.append(
            IcicleRow(
                level_names[depth],
                tuple(tree.names[v] for v in nodes.tolist()),
                np.searchsorted(previous, tree.parents[nodes]),
                np.where(inside, values[entries], 0),
                known,
                np.where(known, 0.5 * (upper - lower), 0.0),
            )
        )
        previous = nodes
    return rows


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


def _place_names(places: Sequence[Path]) -> tuple[str, ...]:
    """Return the last name of each place, after the one above where it occurs twice."""
    times = Counter(place[-1] for place in places)
    return tuple(
        _shortened(place[-1] if times[place[-1]] == 1 else "/".join(place[-2:])) for place in places
    )


def _shortened(name: str) -> str:
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…"


def _title(what: str, level: str) -> str:
    return f"{what}, level {level}"
