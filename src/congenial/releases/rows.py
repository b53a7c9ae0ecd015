"""How a row of a release's files names its count, and the way back to the tree or the workload.

A row of a tree has the node's level and path, a column for each level. A row of a table's query has
a place instead; then the name of its margin; then the value that it counts, in the column of each
attribute or group of that margin. Other columns are empty.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar, cast

import numpy as np

from congenial.domain.blocks import Block
from congenial.domain.tree import Tree
from congenial.domain.workload import Workload
from congenial.errors import ReleaseError, StructureError
from congenial.plan.cross_table import MARGIN, TABLE_OF, margin_text
from congenial.plan.plan import Plan

T = TypeVar("T", str, tuple[object, ...])
# Name and DuckDB type of each column.
Columns = tuple[tuple[str, str], ...]

# The first pattern is text that a spreadsheet would run as a formula, after any apostrophes. The
# second is numbers, which only look like formulas. The CSV file puts one apostrophe before such
# text, and its reader removes it. Python and DuckDB read both patterns alike.
FORMULA = "^'*[ \t\r\n]*[=+@\uff0b\uff0d\uff1d\uff20-]"
NUMBER = "'*[+-]?[0-9]+([.][0-9]+)?"
# A name that may need quotes or an apostrophe: its ends are no letters or digits, or it has
# characters of CSV's own.
_UNLIKE_ITS_CELL = r'(?m)^(?!\w(?:[^",\r\n]*\w)?$)'
# Types of the columns of numbers and of noise; other columns hold integers.
_TYPES = {"noise": "VARCHAR", "scale": "DOUBLE"}


def columns_of(
    level_names: Sequence[str], own: Sequence[str], *, readings: Sequence[str], stamped: bool
) -> Columns:
    """Name and type of each column of a file whose rows have columns of their `own`.

    `readings` are the attributes and groups of a table, whose counts are named by margin too.
    """
    margins = (MARGIN, *readings) if readings else ()
    return (
        ("level", "BIGINT"),
        *((name, "VARCHAR") for name in ("level_name", *level_names, *margins)),
        *((name, _TYPES.get(name, "BIGINT")) for name in own),
        *([("note", "VARCHAR")] if stamped else []),
    )


def key_cells(
    level_names: Sequence[str], domain: Tree | Workload, readings: Sequence[str]
) -> Iterator[str]:
    """Yield the cells that name each count, with commas between and after."""
    if isinstance(domain, Workload):
        return _keys(domain, readings, lambda parts: "".join(map(_cell_and_comma, parts)))
    return _paths(level_names, domain)


def tree_of(rows: Sequence[tuple[object, ...]], level_names: Sequence[str], what: str) -> Tree:
    """Rebuild the tree of a table of nodes, in the order of its rows."""
    names = tuple(level_names)
    if not rows:
        raise ReleaseError(f"{what} holds no row.")
    paths: list[tuple[object, ...]] = []
    for at, row in enumerate(rows):
        parts = row[2 : 2 + len(names)]
        path = tuple(part for part in parts if part is not None)
        if not path or parts[: len(path)] != path:
            raise ReleaseError(f"row {at + 1} of {what} has a gap in its path.")
        if row[:2] != (len(path) - 1, names[len(path) - 1]):
            raise ReleaseError(f"the row of {_shown(path)} names another level than its path has.")
        paths.append(path)
    index = {path: at for at, path in enumerate(paths)}
    for at, path in enumerate(paths):
        if index[path] != at:
            raise ReleaseError(f"the node {_shown(path)} has more than one row.")
        if len(path) > 1 and path[:-1] not in index:
            raise ReleaseError(f"the node {_shown(path)} has no row for its parent.")
    parents = [index[path[:-1]] if len(path) > 1 else -1 for path in paths]
    try:
        return Tree.from_parents(
            np.array(parents, dtype=np.int64), [str(path[-1]) for path in paths]
        )
    except StructureError as error:
        raise ReleaseError(f"the rows of {what} are no tree: {error}") from None


def workload_of(rows: Sequence[tuple[object, ...]], plan: Plan, what: str) -> Workload:
    """Rebuild the queries of a released table; refuse rows that are not those of the plan.

    The places are those of the deepest level, in the order of their rows.
    """
    names = plan.place_names
    found = dict.fromkeys(row[2 : 2 + len(names)] for row in rows if row[0] == len(names) - 1)
    paths = [tuple(str(part) for part in path if part is not None) for path in found]
    if not paths or any(len(path) < len(names) for path in paths):
        raise ReleaseError(f"{what} has no count at {names[-1]}, or one without a place.")
    try:
        workload = cast(Workload, plan.domain(Tree.from_paths(paths)))
    except StructureError as error:
        raise ReleaseError(f"the places of {what} are no tree: {error}") from None
    if len(rows) != len(workload):
        raise ReleaseError(
            f"{what} has {len(rows):,} rows, and the plan's table has {len(workload):,} counts "
            "at these places."
        )
    for at, (row, key) in enumerate(
        zip(rows, _keys(workload, plan.reading_columns, tuple), strict=True)
    ):
        if row[: len(key)] != key:
            raise ReleaseError(f"row {at + 1} of {what} is not the count that the plan has there.")
    return workload


def cell(text: str) -> str:
    """Write a name as a cell that no spreadsheet runs."""
    text = f"'{text}" if _is_formula(text) else text
    # an empty name is quoted, to distinguish it from a column that a node does not have
    if not text or any(c in text for c in ',"\r\n') or text != text.strip():
        return '"' + text.replace('"', '""') + '"'
    return text


def without_apostrophe(cell: str) -> str:
    """Remove the apostrophe that a CSV file has before a name that looks like a formula."""
    return cell[1:] if cell.startswith("'") and _is_formula(cell) else cell


def _keys(
    workload: Workload, readings: Sequence[str], write: Callable[[Sequence[object]], T]
) -> Iterator[T]:
    """Yield the values that name each query, None for an empty one, as `write` writes them."""
    for block in workload.blocks:
        places = [write(place) for place in _places(block)]
        classes = [write(values) for values in _classes(block, readings)]
        rows, columns = np.nonzero(block.ids >= 0)
        for row, column in zip(rows.tolist(), columns.tolist(), strict=True):
            yield places[row] + classes[column]


def _places(block: Block) -> Iterator[Sequence[object]]:
    """Yield the depth and name of a block's level, and the path of each place."""
    table, tree, level = block.table, block.table.geography, block.level
    if tree is None:
        raise AssertionError("a plan's table has a geography")
    names = table.level_names
    for v in table.nodes(level).tolist():
        yield (level, names[level], *tree.path(v), *[None] * (len(names) - level - 1))


def _classes(block: Block, readings: Sequence[str]) -> Iterator[Sequence[object]]:
    """Yield for every class of a block its margin, and the value of each reading."""
    for column in range(block.ids.shape[1]):
        values = dict(zip(block.margin, block.values(column), strict=True))
        values[TABLE_OF] = block.table.name
        yield (margin_text(block.margin), *map(values.get, readings))


def _paths(level_names: Sequence[str], tree: Tree) -> Iterator[str]:
    """Yield the cells of each node's level and path, with commas between and after."""
    parents, level, cells = tree.parents.tolist(), tree.short_level.tolist(), _cells(tree.names)
    depth, labels = len(level_names), _cells(level_names)
    prefix: dict[int, str] = {-1: ""}
    rank = np.argsort(tree.short_level, kind="stable")
    for v in rank[~tree.is_leaf[rank]].tolist():  # parents come before their children
        prefix[v] = f"{prefix[parents[v]]}{cells[v]},"
    starts = [f"{at},{label}," for at, label in enumerate(labels)]
    gaps = ["," * (depth - at + 1) for at in range(1, depth + 1)]
    for parent, at, name in zip(parents, level, cells, strict=True):
        yield f"{starts[at]}{prefix[parent]}{name}{gaps[at]}"


def _cells(names: Sequence[str]) -> Sequence[str]:
    """Write names as cells; one search shows whether any differs from its name."""
    whole = "\n".join(names)
    if whole.count("\n") == len(names) - 1 and not re.search(_UNLIKE_ITS_CELL, whole):
        return names
    return [cell(name) for name in names]


def _cell_and_comma(value: object) -> str:
    return "," if value is None else f"{cell(str(value))},"


def _is_formula(text: str) -> bool:
    return bool(re.search(FORMULA, text)) and not re.fullmatch(NUMBER, text)


def _shown(path: tuple[object, ...]) -> str:
    return "/".join(map(str, path))
