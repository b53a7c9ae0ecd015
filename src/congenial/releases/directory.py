"""The files of a release: their names, and the released table as CSV and as Parquet."""

from __future__ import annotations

import csv
import glob
import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TypeVar

import duckdb

from congenial.data.memory import allowance
from congenial.data.sources import identifier, literal
from congenial.domain.tree import Tree
from congenial.domain.workload import Workload
from congenial.durability.signals import uninterrupted
from congenial.errors import ReleaseError
from congenial.releases.rows import (
    FORMULA,
    NUMBER,
    Columns,
    cell,
    columns_of,
    key_cells,
    without_apostrophe,
)
from congenial.types import IntArray
from congenial.wording import show

T = TypeVar("T")

CSV = "release.csv"
PARQUET = "release.parquet"
CERTIFICATE = "certificate.json"
MEASUREMENTS_CSV = "measurements.csv"
MEASUREMENTS_PARQUET = "measurements.parquet"
MARKER = "SIMULATION_NOT_PRIVATE.txt"
TABLE = (CSV, PARQUET)
ALWAYS = (CERTIFICATE, *TABLE)
# Written later by `congenial report`; the certificate does not list it.
REPORT = "report.html"
MEASUREMENTS = (MEASUREMENTS_CSV, MEASUREMENTS_PARQUET)
ALL = (*ALWAYS, *MEASUREMENTS, MARKER, REPORT)
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

    columns: Columns
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
    own: dict[str, Sequence[object]] = {"value": value.tolist(), **(intervals or {})}
    if truth is not None:
        own["truth"] = truth.tolist()
    write_columns(directory, TABLE, level_names, domain, own, readings=readings, stamped=stamped)


def write_columns(
    directory: Path,
    names: tuple[str, str],
    level_names: Sequence[str],
    domain: Tree | Workload,
    own: Mapping[str, Sequence[object]],
    *,
    readings: Sequence[str] = (),
    stamped: bool = False,
) -> None:
    """Write columns of numbers twice, as CSV and from that as Parquet: a row a count."""
    columns = columns_of(level_names, tuple(own), readings=readings, stamped=stamped)
    keys, end = key_cells(level_names, domain, readings), f",{STAMP}\n" if stamped else "\n"
    numbers = [("" if entry is None else str(entry) for entry in column) for column in own.values()]
    with (directory / names[0]).open("w", encoding="utf-8", newline="") as file:
        file.write(",".join(cell(name) for name, _ in columns) + "\n")
        for key, *entries in zip(keys, *numbers, strict=True):
            file.write(f"{key}{','.join(entries)}{end}")
    types = ", ".join(f"{literal(name)}: {literal(kind)}" for name, kind in columns)
    texts = [identifier(name) for name, kind in columns if kind == "VARCHAR"]
    bare = ", ".join(
        f"CASE WHEN starts_with({c}, '''') AND regexp_matches({c}, {literal(FORMULA)}) AND NOT "
        f"regexp_full_match({c}, {literal(NUMBER)}) THEN substr({c}, 2) ELSE {c} END AS {c}"
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


def read_tables(directory: Path, names: tuple[str, str] = TABLE) -> tuple[FileRows, FileRows]:
    """Read a table of a release from its CSV and from its Parquet file.

    Every CSV value is text, whatever it looks like, and empty text where there is none.
    """
    csv, parquet = (directory / name for name in names)
    found = _read_csv(csv)
    # a CSV file is as large as its text, which bounds the text of the same table in Parquet
    return found, _read_parquet(parquet, rows=len(found.rows), text=csv.stat().st_size)


def read_table(path: Path) -> FileRows:
    """Read a Parquet file as a table."""
    memory = allowance() or _MEMORY
    return _read_parquet(path, rows=memory // _ROW, text=memory)


def sha256(path: Path) -> str:
    """Return the SHA-256 digest of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


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
