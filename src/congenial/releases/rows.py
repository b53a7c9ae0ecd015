"""How a row of a release's files names its count, and the way back to the tree or the workload.

A row of a tree has the node's level and path, a column for each level. A row of a table's query has
a place instead; then the name of its margin; then the value that it counts, in the column of each
attribute or group of that margin. Other columns are empty.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar, cast

import numpy as np

from congenial.domain.blocks import Block
from congenial.domain.names import KIND, Names
from congenial.domain.tree import Tree
from congenial.domain.workload import Workload
from congenial.errors import ReleaseError, StructureError
from congenial.plan.cross_table import MARGIN, TABLE_OF, margin_text
from congenial.plan.plan import Plan
from congenial.releases.file_table import Columns, FileTable, Texts
from congenial.types import IntArray

T = TypeVar("T", str, tuple[object, ...])

# The first pattern is text that a spreadsheet would run as a formula, after any apostrophes. The
# second is numbers, which only look like formulas. The CSV file puts one apostrophe before such
# text, and its reader removes it. Python and DuckDB read both patterns alike.
FORMULA = "^'*[ \t\r\n]*[=+@\uff0b\uff0d\uff1d\uff20-]"
NUMBER = "'*[+-]?[0-9]+([.][0-9]+)?"
# A name that may need quotes or an apostrophe: its ends are no letters or digits, or it has
# characters of CSV's own.
_UNLIKE_ITS_CELL = r'(?m)^(?!\w(?:[^",\r\n]*\w)?$)'
# Rows whose names are texts at a time.
_AT_ONCE = 10_000
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


def tree_of(table: FileTable, level_names: Sequence[str], what: str) -> Tree:
    """Rebuild the tree of a table of nodes, in the order of its rows."""
    if not len(table):
        raise ReleaseError(f"{what} holds no row; get a fresh copy of the release.")
    path = [table.texts(name) for name in level_names]
    length, prefix = _prefixes(path, what)
    level, named = table.numbers("level"), table.texts("level_name")
    own = named.code(level_names)[length - 1]
    wrong = np.flatnonzero(~level.known | (level.values != length - 1) | (named.codes != own))
    if wrong.size:
        shown = _path_of(path, int(wrong[0]))
        raise ReleaseError(
            f"the row of {shown} names a level that does not fit its path; get a fresh copy of "
            "the release."
        )
    parents = np.full(len(table), -1, dtype=np.int64)
    labels = np.empty(len(table), dtype=KIND)
    above = np.zeros(0, dtype=np.int64)
    for depth, (texts, number) in enumerate(zip(path, prefix, strict=True), start=1):
        here = np.flatnonzero(length == depth)
        place = np.full(int(number.max()) + 2, -1, dtype=np.int64)
        place[number[here]] = here
        twice = here[place[number[here]] != here]
        if twice.size:
            shown = _path_of(path, int(twice[0]))
            raise ReleaseError(
                f"the node {shown} has more than one row; get a fresh copy of the release."
            )
        if depth > 1:
            parents[here] = above[prefix[depth - 2][here]]
            alone = here[parents[here] < 0]
            if alone.size:
                shown = _path_of(path, int(alone[0]))
                raise ReleaseError(
                    f"the node {shown} has no row for its parent; get a fresh copy of the release."
                )
        labels[here] = texts.words.array[texts.codes[here]]
        above = place
    try:
        return Tree.from_parents(parents, Names(labels))
    except StructureError as error:
        raise ReleaseError(f"the rows of {what} are no tree: {error}") from None


def _prefixes(path: Sequence[Texts], what: str) -> tuple[IntArray, list[IntArray]]:
    """Return the length of each row's path, and for each level a number of the path down to it.

    Rows with the same path down to a level have the same number there; -1 for shorter paths.
    """
    known = np.array([texts.codes >= 0 for texts in path])
    length = known.sum(axis=0)
    gaps = np.flatnonzero((length == 0) | (known[1:] & ~known[:-1]).any(axis=0))
    if gaps.size:
        raise ReleaseError(
            f"row {gaps[0] + 1} of {what} has a gap in its path; get a fresh copy of the release."
        )
    out: list[IntArray] = []
    for texts in path:
        number = texts.codes.astype(np.int64)
        if out:
            both = np.where(number < 0, -1, out[-1] * len(texts.words) + number)
            different, number = np.unique(both, return_inverse=True)
            number = number - int(different[0] < 0)
        out.append(number)
    return length, out


def workload_of(table: FileTable, plan: Plan, what: str) -> Workload:
    """Rebuild the queries of a released table; refuse rows that are not those of the plan.

    The places are those of the deepest level, in the order of their rows.
    """
    names = plan.place_names
    path = [table.texts(name) for name in names]
    deepest = np.flatnonzero(table.numbers("level").values == len(names) - 1)
    if not deepest.size or any((texts.codes[deepest] < 0).any() for texts in path):
        raise ReleaseError(
            f"{what} has no count at {names[-1]}, or one without a place; get a fresh copy of "
            "the release."
        )
    of_places = [texts.take(deepest) for texts in path]
    first = np.sort(np.unique(_prefixes(of_places, what)[1][-1], return_index=True)[1])
    columns = (texts.take(first).cells() for texts in of_places)
    try:
        workload = cast(Workload, plan.domain(Tree.from_paths(zip(*columns, strict=True))))
    except StructureError as error:
        raise ReleaseError(f"the places of {what} are no tree: {error}") from None
    if len(table) != len(workload):
        raise ReleaseError(
            f"{what} has {len(table):,} rows, and the plan's table has {len(workload):,} counts "
            "at these places; get a fresh copy of the release."
        )
    for at in _other_rows(table, workload, plan.reading_columns):
        raise ReleaseError(
            f"row {at + 1} of {what} is not the count that the plan has there; get a fresh copy "
            "of the release."
        )
    return workload


def _other_rows(table: FileTable, workload: Workload, readings: Sequence[str]) -> IntArray:
    """Rows of a table that do not name the query of a workload in their place."""
    places = 1 + len(workload.tables[0].level_names)
    texts = [table.texts(name) for name, _ in table.columns[1 : 2 + places + len(readings)]]
    level = table.numbers("level")
    differ, start = ~level.known, 0
    of_level: dict[int, list[IntArray]] = {}
    for block in workload.blocks:
        row, column = np.nonzero(block.ids >= 0)
        here = slice(start, start + row.size)
        differ[here] |= level.values[here] != block.level
        if block.level not in of_level:  # tables of one plan have the same places
            cells = zip(*(place[1:] for place in _places(block)), strict=True)
            of_level[block.level] = _codes(texts[:places], cells)
        by_class = _codes(texts[places:], zip(*_classes(block, readings), strict=True))
        for k, text in enumerate(texts):
            own = of_level[block.level][k][row] if k < places else by_class[k - places][column]
            differ[here] |= text.codes[here] != own
        start = here.stop
    return np.flatnonzero(differ)


def _codes(texts: Sequence[Texts], cells: Iterable[Sequence[object]]) -> list[IntArray]:
    """Return the codes of the cells of some columns."""
    return [
        np.asarray(text.code(cast("Sequence[str | None]", given)))
        for text, given in zip(texts, cells, strict=True)
    ]


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
    depth, labels, names = len(level_names), _cells(level_names), tree.names.array
    rank = np.argsort(tree.short_level, kind="stable")
    inner = rank[~tree.is_leaf[rank]]  # parents come before their children
    # the cells before those of the children of each inner node, and before those of a root
    path, before = {-1: ""}, {-1: f"0,{labels[0]},"}
    above, level = tree.parents[inner].tolist(), tree.short_level[inner].tolist()
    cells = _cells(names[inner].tolist())
    for v, parent, own, at in zip(inner.tolist(), above, cells, level, strict=True):
        path[v] = f"{path[parent]}{own},"
        before[v] = f"{at + 1},{labels[at + 1]},{path[v]}"
    gaps = ["," * (depth - at + 1) for at in range(1, depth + 1)]
    for begin in range(0, len(tree), _AT_ONCE):
        here = slice(begin, begin + _AT_ONCE)
        parents, cells = tree.parents[here].tolist(), _cells(names[here].tolist())
        ends = map(gaps.__getitem__, tree.short_level[here].tolist())
        yield from map("".join, zip(map(before.__getitem__, parents), cells, ends, strict=True))


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


def _path_of(path: Sequence[Texts], row: int) -> str:
    codes = (int(texts.codes[row]) for texts in path)
    return "/".join(t.words[c] for t, c in zip(path, codes, strict=True) if c >= 0)
