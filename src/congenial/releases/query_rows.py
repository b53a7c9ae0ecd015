"""The rows of a table's queries in a release: their columns, their text, and the way back.

A row has the place of a count, a level's column each; the name of its margin; and the value that it
counts in the column of each attribute or group of that margin, while the others are empty.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from congenial.domain.blocks import Block
from congenial.domain.tree import Tree
from congenial.domain.workload import Workload
from congenial.errors import ReleaseError, StructureError
from congenial.plan.cross_table import MARGIN, margin_text
from congenial.plan.plan import Plan

# Writes a name as a cell of the CSV file.
Writer = Callable[[str], str]


def columns_of_margins(readings: Sequence[str]) -> list[tuple[str, str]]:
    """Name and type of the columns that say what a query counts."""
    return [(name, "VARCHAR") for name in (MARGIN, *readings)]


def key_cells(workload: Workload, readings: Sequence[str], cell: Writer) -> Iterator[str]:
    """Yield the cells that name each entry, with commas between and after."""
    for block in workload.blocks:
        places = _places(block, cell)
        classes = [
            ",".join(cell(v) if v is not None else "" for v in margin) + ","
            for margin in _margins(block, readings)
        ]
        rows, columns = np.nonzero(block.ids >= 0)
        for row, column in zip(rows.tolist(), columns.tolist(), strict=True):
            yield places[row] + classes[column]


def keys(workload: Workload, readings: Sequence[str]) -> Iterator[tuple[object, ...]]:
    """Yield the values of the same cells, None for empty ones."""
    for block in workload.blocks:
        level, label, depth, paths = _geography(block)
        places = [(level, label, *path, *[None] * (depth - len(path))) for path in paths]
        classes = list(_margins(block, readings))
        rows, columns = np.nonzero(block.ids >= 0)
        for row, column in zip(rows.tolist(), columns.tolist(), strict=True):
            yield (*places[row], *classes[column])


def workload_of(rows: Sequence[tuple[object, ...]], plan: Plan, what: str) -> Workload:
    """Rebuild the queries of a released table; refuse rows that are not those of the plan.

    The places are those of the deepest level, in the order of their rows.
    """
    if plan.table is None:
        raise AssertionError("only a plan with a table has queries")
    names = plan.place_names
    found: dict[tuple[object, ...], None] = {}
    for row in rows:
        if row[0] == len(names) - 1:
            found.setdefault(row[2 : 2 + len(names)])
    paths = [tuple(str(part) for part in path if part is not None) for path in found]
    if not paths or any(len(path) < len(names) for path in paths):
        raise ReleaseError(f"{what} has no count at {names[-1]}, or one without a place.")
    try:
        workload = plan.table.workload(names, Tree.from_paths(paths))
    except StructureError as error:
        raise ReleaseError(f"the places of {what} are no tree: {error}") from None
    readings = plan.table.readings
    wide = len(names) + len(readings) + 3
    if len(rows) != len(workload):
        raise ReleaseError(
            f"{what} has {len(rows):,} rows, and the plan's table has {len(workload):,} counts "
            "at these places."
        )
    for at, (row, key) in enumerate(zip(rows, keys(workload, readings), strict=True)):
        if row[:wide] != key:
            raise ReleaseError(f"row {at + 1} of {what} is not the count that the plan has there.")
    return workload


def _geography(block: Block) -> tuple[int, str, int, list[tuple[str, ...]]]:
    """Depth and name of a block's level, the number of levels, and the path of each place."""
    table, tree = block.table, block.table.geography
    if tree is None:
        raise AssertionError("a plan's table has a geography")
    nodes = table.nodes(block.level).tolist()
    names = table.level_names
    return block.level, names[block.level], len(names), [tree.path(v) for v in nodes]


def _places(block: Block, cell: Writer) -> list[str]:
    level, label, depth, paths = _geography(block)
    gaps = "," * (depth - level - 1)
    return [f"{level},{cell(label)},{','.join(map(cell, path))},{gaps}" for path in paths]


def _margins(block: Block, readings: Sequence[str]) -> Iterator[tuple[str | None, ...]]:
    """Yield for every class of a block its margin, and the value of each reading."""
    for column in range(block.ids.shape[1]):
        held = dict(zip(block.margin, block.values(column), strict=True))
        yield (margin_text(block.margin), *(held.get(name) for name in readings))
