"""The files of a release: their names, and the released table as CSV and as Parquet."""

from __future__ import annotations

import csv
import glob
import hashlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TypeVar

import duckdb
import numpy as np

from congenial.data.memory import allowance
from congenial.data.sources import identifier, literal
from congenial.domain.tree import Tree
from congenial.domain.workload import Workload
from congenial.durability.signals import uninterrupted
from congenial.errors import ReleaseError, StructureError
from congenial.releases.query_rows import columns_of_margins, key_cells
from congenial.types import IntArray
from congenial.wording import show

T = TypeVar("T")
Columns = tuple[tuple[str, str], ...]

CSV = "release.csv"
PARQUET = "release.parquet"
CERTIFICATE = "certificate.json"
MEASUREMENTS_CSV = "measurements.csv"
MEASUREMENTS_PARQUET = "measurements.parquet"
MARKER = "SIMULATION_NOT_PRIVATE.txt"
ALWAYS = (CERTIFICATE, CSV, PARQUET)
# Written later by `congenial report`; the certificate does not list it.
REPORT = "report.html"
MEASUREMENTS = (MEASUREMENTS_CSV, MEASUREMENTS_PARQUET)
ALL = (*ALWAYS, *MEASUREMENTS, MARKER, REPORT)
# The first pattern is text that a spreadsheet would run as a formula, after any apostrophes. The
# second is numbers, which only look like formulas. The CSV file puts one apostrophe before such
# text, and its reader removes it. Python and DuckDB read both patterns alike.
_FORMULA = "^'*[ \t\r\n]*[=+@\uff0b\uff0d\uff1d\uff20-]"
_NUMBER = "'*[+-]?[0-9]+([.][0-9]+)?"
# A name that may need quotes or an apostrophe: its ends are no letters or digits, or it has
# characters of CSV's own.
_UNLIKE_ITS_CELL = r'(?m)^(?!\w(?:[^",\r\n]*\w)?$)'
# Rows read at a time.
_BATCH = 100_000
# Types of columns that releases have.
_KINDS = ("BIGINT", "DOUBLE", "VARCHAR")
# Least bytes of memory per row, and the bytes assumed free where the system does not say.
_ROW, _MEMORY = 100, 2**31
STAMP = "SIMULATION: NOT PRIVATE"
MARKER_TEXT = f"{STAMP}\n"


@dataclass(frozen=True)
class FileRows:
    """A released table as read from a file."""

    columns: tuple[tuple[str, str], ...]  # Name and DuckDB type of each column.
    # One a node; integers where the column has an integer type, else text or None.
    rows: list[tuple[object, ...]]

    def column(self, name: str) -> list[object]:
        """Values of one column, in the order of the rows."""
        at = [c for c, _ in self.columns].index(name)
        return [row[at] for row in self.rows]


def release_directory(directory: str | Path) -> Path:
    """Return the path of a directory that a release is to be read from."""
    if not isinstance(directory, str | os.PathLike):
        raise ReleaseError(f"directory is {show(directory)}; give the path of a release.")
    place = Path(directory)
    if not place.is_dir():
        shown = repr(str(place))
        wrong = (
            f"{shown} is not a directory" if place.exists() else f"there is no directory {shown}"
        )
        raise ReleaseError(f"{wrong}; give one that holds a release.")
    if not is_text(place):
        raise ReleaseError(
            f"the path of {str(place)!r} is not in UTF-8; rename or move the directory."
        )
    return place


def is_text(path: Path) -> bool:
    """Whether a path can be written in UTF-8, as DuckDB needs it, and has no NUL."""
    try:
        return b"\0" not in os.fspath(path.absolute()).encode()
    except UnicodeEncodeError:
        return False


def table_columns(
    level_names: Sequence[str],
    *,
    readings: Sequence[str] = (),
    intervals: Sequence[str] = (),
    truth: bool = False,
    stamped: bool = False,
) -> Columns:
    """Name and type of each column of a released table.

    `readings` are the attributes and groups of a table, whose counts are named by margin too.
    """
    extra = [*intervals, *(["truth"] if truth else [])]
    own = [("value", "BIGINT"), *((v, "BIGINT") for v in extra)]
    return _columns(level_names, readings, own, stamped)


def measurement_columns(
    level_names: Sequence[str], *, readings: Sequence[str] = (), stamped: bool
) -> Columns:
    """Name and type of each column of the measurements."""
    own = [("measurement", "BIGINT"), ("noise", "VARCHAR"), ("scale", "DOUBLE")]
    return _columns(level_names, readings, own, stamped)


def _columns(
    level_names: Sequence[str],
    readings: Sequence[str],
    own: Sequence[tuple[str, str]],
    stamped: bool,
) -> Columns:
    paths = [(name, "VARCHAR") for name in level_names]
    if readings:
        paths += columns_of_margins(readings)
    note = [("note", "VARCHAR")] if stamped else []
    return (("level", "BIGINT"), ("level_name", "VARCHAR"), *paths, *own, *note)


def write_tables(
    directory: Path,
    level_names: Sequence[str],
    domain: Tree | Workload,
    value: IntArray,
    *,
    readings: Sequence[str] = (),
    intervals: Mapping[str, Sequence[int | None]] | None = None,
    truth: IntArray | None = None,
    stamped: bool = False,
) -> None:
    """Write the released table twice, as CSV and from that as Parquet."""
    ends = dict(intervals or {})
    columns = table_columns(
        level_names,
        readings=readings,
        intervals=tuple(ends),
        truth=truth is not None,
        stamped=stamped,
    )
    own: list[Sequence[object]] = [value.tolist(), *ends.values()]
    if truth is not None:
        own.append(truth.tolist())
    lines = _lines(level_names, domain, readings, own, stamped)
    _write_both(directory, (CSV, PARQUET), columns, lines)


def write_measurements(
    directory: Path,
    level_names: Sequence[str],
    domain: Tree | Workload,
    measured: Sequence[int | None],
    noise: Sequence[str],
    scale: Sequence[float | None],
    *,
    readings: Sequence[str] = (),
    stamped: bool = False,
) -> None:
    """Write the noisy measurements twice, as CSV and from that as Parquet, a row a node."""
    columns = measurement_columns(level_names, readings=readings, stamped=stamped)
    lines = _lines(level_names, domain, readings, [measured, noise, scale], stamped)
    _write_both(directory, MEASUREMENTS, columns, lines)


def _write_both(
    directory: Path, names: tuple[str, str], columns: Columns, lines: Iterator[str]
) -> None:
    with (directory / names[0]).open("w", encoding="utf-8", newline="") as file:
        file.write(",".join(_cell(name) for name, _ in columns) + "\n")
        for line in lines:
            file.write(line)
    types = ", ".join(f"{literal(name)}: {literal(kind)}" for name, kind in columns)
    texts = [identifier(name) for name, kind in columns if kind == "VARCHAR"]
    bare = ", ".join(
        f"CASE WHEN starts_with({c}, '''') AND regexp_matches({c}, {literal(_FORMULA)}) AND NOT "
        f"regexp_full_match({c}, {literal(_NUMBER)}) THEN substr({c}, 2) ELSE {c} END AS {c}"
        for c in texts
    )
    written = _path(directory / names[0])
    with _connect() as connection, uninterrupted(connection.interrupt):
        connection.execute(
            f"COPY (SELECT * REPLACE ({bare}) FROM read_csv({written}, auto_detect = false, "
            f"header = true, delim = ',', quote = '\"', escape = '\"', new_line = '\\n', "
            f"nullstr = '', allow_quoted_nulls = false, columns = {{{types}}})) "
            f"TO {literal(_whole(directory / names[1]))} (FORMAT parquet)"
        )


def read_tables(directory: Path) -> tuple[FileRows, FileRows]:
    """Read the released table from the CSV and from the Parquet file.

    Every CSV value is text, whatever it looks like, and empty text where there is none.
    """
    return _read_both(directory, (CSV, PARQUET))


def read_measurement_tables(directory: Path) -> tuple[FileRows, FileRows]:
    """Read the measurements from the CSV and from the Parquet file, as `read_tables` does."""
    return _read_both(directory, MEASUREMENTS)


def read_table(path: Path) -> FileRows:
    """Read a Parquet file as a table."""
    memory = allowance() or _MEMORY
    return _read_parquet(path, rows=memory // _ROW, text=memory)


def tree_of(table: FileRows, level_names: Sequence[str], what: str) -> Tree:
    """Rebuild the tree of a table of nodes, in the order of its rows."""
    names = tuple(level_names)
    if not table.rows:
        raise ReleaseError(f"{what} holds no row.")
    paths: list[tuple[object, ...]] = []
    for at, row in enumerate(table.rows):
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


def _shown(path: tuple[object, ...]) -> str:
    return "/".join(map(str, path))


def sha256(path: Path) -> str:
    """Return the SHA-256 digest of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _lines(
    level_names: Sequence[str],
    domain: Tree | Workload,
    readings: Sequence[str],
    own: Sequence[Sequence[object]],
    stamped: bool,
) -> Iterator[str]:
    """Yield a line a count: its key, and its entry of each column of its own, empty for None."""
    if isinstance(domain, Workload):
        named = key_cells(domain, readings, _cell)
    else:
        named = _paths(level_names, domain)
    end = f",{STAMP}\n" if stamped else "\n"
    texts = [("" if entry is None else str(entry) for entry in column) for column in own]
    for key, *entries in zip(named, *texts, strict=True):
        yield f"{key}{','.join(entries)}{end}"


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
    for parent, at, cell in zip(parents, level, cells, strict=True):
        yield f"{starts[at]}{prefix[parent]}{cell}{gaps[at]}"


def _cells(names: Sequence[str]) -> Sequence[str]:
    """Write names as cells; one search shows whether any differs from its name."""
    whole = "\n".join(names)
    if whole.count("\n") == len(names) - 1 and not re.search(_UNLIKE_ITS_CELL, whole):
        return names
    return [_cell(name) for name in names]


def _cell(text: str) -> str:
    """Write a name as a cell that no spreadsheet runs."""
    return _quoted(f"'{text}" if _is_formula(text) else text)


def without_apostrophe(cell: str) -> str:
    """Remove the apostrophe that a CSV file has before a name that looks like a formula."""
    return cell[1:] if cell.startswith("'") and _is_formula(cell) else cell


def _is_formula(text: str) -> bool:
    return bool(re.search(_FORMULA, text)) and not re.fullmatch(_NUMBER, text)


def _quoted(text: str) -> str:
    # an empty name is quoted, to distinguish it from a column that a node does not have
    if not text or any(c in text for c in ',"\r\n') or text != text.strip():
        return '"' + text.replace('"', '""') + '"'
    return text


def same_rows(csv: FileRows, parquet: FileRows) -> bool:
    """Whether two tables hold the same rows, that of the CSV as text."""
    return len(csv.rows) == len(parquet.rows) and all(
        line == tuple("" if value is None else str(value) for value in row)
        for line, row in zip(csv.rows, parquet.rows, strict=True)
    )


def _sharing(rows: Iterable[Sequence[T]]) -> Iterator[tuple[T, ...]]:
    """Yield rows that share equal objects with the row before, which saves most of the memory."""
    last: tuple[T, ...] = ()
    for row in rows:
        if len(row) == len(last):
            last = tuple([b if a == b else a for a, b in zip(row, last, strict=True)])
        else:
            last = tuple(row)
        yield last


def _read_csv(path: Path) -> FileRows:
    try:
        with path.open(encoding="utf-8", newline="") as file:
            read = csv.reader(file, strict=True)
            lines = list(_sharing(tuple(map(without_apostrophe, line)) for line in read))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ReleaseError(
            f"{path.name} cannot be read as a table; get the release anew."
        ) from error
    if not lines or any(len(line) != len(lines[0]) for line in lines):
        raise ReleaseError(
            f"{path.name} has lines of different lengths or none; get the release anew."
        )
    return FileRows(tuple((name, "VARCHAR") for name in lines[0]), list(lines[1:]))


def _read_both(directory: Path, names: tuple[str, str]) -> tuple[FileRows, FileRows]:
    csv, parquet = (directory / name for name in names)
    found = _read_csv(csv)
    # a CSV file is as large as its text, which bounds the text of the same table in Parquet
    return found, _read_parquet(parquet, rows=len(found.rows), text=csv.stat().st_size)


def _read_parquet(path: Path, *, rows: int, text: int) -> FileRows:
    """Read a table within limits: a small Parquet file may declare any number of rows."""
    try:
        with _connect() as connection, uninterrupted(connection.interrupt):
            source = f"FROM read_parquet({_path(path)})"
            found = connection.execute(f"SELECT * {source} LIMIT 0")
            columns = tuple((str(d[0]), str(d[1])) for d in found.description or ())
            strange = [f"{name} {kind}" for name, kind in columns if kind not in _KINDS]
            if strange:
                raise ReleaseError(
                    f"{path.name} has the column {strange[0]}, which no release has; get the "
                    "release anew."
                )
            texts = [identifier(name) for name, kind in columns if kind == "VARCHAR"]
            lengths = " + ".join(f"coalesce(sum(strlen({name})), 0)" for name in texts) or "0"
            for size, what, most in (("count(*)", "rows", rows), (lengths, "bytes of text", text)):
                [[found_size]] = connection.execute(f"SELECT {size} {source}").fetchall()
                if found_size > most:
                    raise ReleaseError(
                        f"{path.name} holds {found_size:,} {what}, and there can be at most "
                        f"{most:,}; get the release anew."
                    )
            found = connection.execute(f"SELECT * {source}")
            batches = iter(lambda: found.fetchmany(_BATCH), [])
            return FileRows(columns, list(_sharing(chain.from_iterable(batches))))
    except (duckdb.Error, RuntimeError) as error:  # RuntimeError: text that is not UTF-8
        raise ReleaseError(
            f"{path.name} cannot be read as a table; get the release anew."
        ) from error


def _connect() -> duckdb.DuckDBPyConnection:
    # one thread keeps the rows in order and the file the same from run to run
    with uninterrupted():
        return duckdb.connect(":memory:", config={"threads": 1})


def _path(path: Path) -> str:
    """SQL text that names one file, wildcards in its name taken literally."""
    return literal(glob.escape(_whole(path)))


def _whole(path: Path) -> str:
    """The path from the root: DuckDB would take a first ~ for the home directory."""
    return str(path.absolute())
