"""The files of a release: their names, and the released table as CSV and as Parquet."""

from __future__ import annotations

import csv
import glob
import hashlib
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain, islice, starmap
from pathlib import Path

import duckdb
import numpy as np

from congenial.data.memory import allowance
from congenial.data.sources import identifier, literal
from congenial.domain.names import Names
from congenial.domain.tree import Tree
from congenial.domain.workload import Workload
from congenial.durability.signals import uninterrupted
from congenial.errors import ReleaseError
from congenial.releases.file_table import (
    Column,
    Columns,
    FileTable,
    Numbers,
    every,
    repeated,
    texts_of,
)
from congenial.releases.rows import (
    FORMULA,
    NUMBER,
    cell,
    columns_of,
    key_cells,
    without_apostrophe,
)
from congenial.types import IntArray
from congenial.wording import show

CSV = "release.csv"
PARQUET = "release.parquet"
CERTIFICATE = "certificate.json"
MEASUREMENTS_CSV = "measurements.csv"
MEASUREMENTS_PARQUET = "measurements.parquet"
MARKER = "SIMULATION_NOT_PRIVATE.txt"
TABLE = (CSV, PARQUET)
ALWAYS = (CERTIFICATE, *TABLE)
# Written later by `congenial report`; the certificate does not list it.
REPORT, REPORT_COUNTS = "report.html", "report-counts"
MEASUREMENTS = (MEASUREMENTS_CSV, MEASUREMENTS_PARQUET)
ALL = (*ALWAYS, *MEASUREMENTS, MARKER, REPORT, REPORT_COUNTS)
_SCRIPT = re.compile(r"[0-9]+\.js")
# Column of the stamp of simulations.
NOTE = "note"
# Lines written at a time, and bytes read at a time.
_LINES, _CHUNK = 10_000, 1 << 20
# Texts of a column that are read at a time.
_TEXTS = 1_000_000
# Types of columns that releases have.
_KINDS = ("BIGINT", "DOUBLE", "VARCHAR")
# Least bytes of memory per row, and the bytes assumed free where the system does not say.
_ROW, _MEMORY = 100, 2**31
STAMP = "SIMULATION: NOT PRIVATE"
MARKER_TEXT = f"{STAMP}\n"


@dataclass(frozen=True)
class CsvRows:
    """The comparison of a CSV file with the Parquet file of the same table."""

    same: bool  # Whether both have the same rows.
    not_integers: int  # Number of values of the column `value` that are not integers.


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


def strangers(directory: Path) -> list[str]:
    """Return the names in a directory that are no part of a release."""
    scripts = directory / REPORT_COUNTS
    found = [entry.name for entry in directory.iterdir() if entry.name not in ALL]
    return sorted([*found, *(f"{scripts.name}{name}" for name in no_scripts(scripts))])


def no_scripts(folder: Path) -> list[str]:
    """Return what is no script in the folder of the page about a release, each with a slash first.

    An empty name stands for the folder itself, if it is none.
    """
    if not os.path.lexists(folder):
        return []
    if folder.is_symlink() or not folder.is_dir():
        return [""]
    return [
        f"/{e.name}" for e in folder.iterdir() if not (_SCRIPT.fullmatch(e.name) and e.is_file())
    ]


def write_tables(
    directory: Path,
    level_names: Sequence[str],
    domain: Tree | Workload,
    value: IntArray,
    *,
    readings: Sequence[str] = (),
    intervals: Mapping[str, Column] | None = None,
    truth: IntArray | None = None,
    stamped: bool = False,
) -> None:
    """Write the released table twice, as CSV and from that as Parquet."""
    own: dict[str, Column] = {"value": every(value), **(intervals or {})}
    if truth is not None:
        own["truth"] = every(truth)
    write_columns(directory, TABLE, level_names, domain, own, readings=readings, stamped=stamped)


def write_columns(
    directory: Path,
    names: tuple[str, str],
    level_names: Sequence[str],
    domain: Tree | Workload,
    own: Mapping[str, Column],
    *,
    readings: Sequence[str] = (),
    stamped: bool = False,
) -> None:
    """Write columns of numbers twice, as CSV and from that as Parquet: a row a count."""
    columns = columns_of(level_names, tuple(own), readings=readings, stamped=stamped)
    with writing(directory, names, columns) as write:
        write(csv_lines(key_cells(level_names, domain, readings), own, stamped=stamped))


# Appends rows as lines of a CSV file.
Write = Callable[[Iterable[bytes]], None]


@contextmanager
def writing(directory: Path, names: tuple[str, str], columns: Columns) -> Iterator[Write]:
    """Yield a function that appends rows to a CSV file, which is then written as Parquet too."""
    apostrophes = False
    with (directory / names[0]).open("wb") as file:

        def write(rows: Iterable[bytes]) -> None:
            nonlocal apostrophes
            for lines in rows:
                apostrophes = apostrophes or b"'" in lines
                file.write(lines)

        file.write(_header(columns))
        yield write
    types = ", ".join(f"{literal(name)}: {literal(kind)}" for name, kind in columns)
    texts = [identifier(name) for name, kind in columns if kind == "VARCHAR"]
    bare = ", ".join(
        f"CASE WHEN starts_with({c}, '''') AND regexp_matches({c}, {literal(FORMULA)}) AND NOT "
        f"regexp_full_match({c}, {literal(NUMBER)}) THEN substr({c}, 2) ELSE {c} END AS {c}"
        for c in texts
    )
    rows = f"* REPLACE ({bare})" if apostrophes else "*"
    written = _path(directory / names[0])
    with _connect() as connection, uninterrupted(connection.interrupt):
        connection.execute(
            f"COPY (SELECT {rows} FROM read_csv({written}, auto_detect = false, "
            f"header = true, delim = ',', quote = '\"', escape = '\"', new_line = '\\n', "
            f"nullstr = '', allow_quoted_nulls = false, columns = {{{types}}})) "
            f"TO {literal(_whole(directory / names[1]))} (FORMAT parquet)"
        )


def _header(columns: Columns) -> bytes:
    return (",".join(cell(name) for name, _ in columns) + "\n").encode()


def csv_lines(
    keys: Iterable[str], own: Mapping[str, Column], *, stamped: bool = False
) -> Iterator[bytes]:
    """Yield the lines of rows, some at a time: the cells that name each count, and its numbers."""
    if stamped:
        own = {**own, NOTE: repeated((STAMP,), np.zeros(len(next(iter(own.values())))))}
    line = ("{}" + ",".join("{}" for _ in own) + "\n").format
    shown = [_as_cells(column) for column in own.values()]
    rows, begin = iter(keys), 0
    while part := list(islice(rows, _LINES)):
        here = slice(begin, begin + len(part))
        cells = (_formatted(column.take(here)) for column in shown)
        yield "".join(starmap(line, zip(part, *cells, strict=True))).encode()
        begin = here.stop


def _as_cells(column: Column) -> Column:
    """Return a column whose texts are written as cells."""
    if isinstance(column, Numbers):
        return column
    return replace(column, words=Names.of(map(cell, column.words)))


def _formatted(column: Column) -> Sequence[object]:
    """Return the cells of a column as text, or as numbers that are written alike."""
    if isinstance(column, Numbers) and column.known.all():
        return column.objects()
    return column.cells()


def write_marker(directory: Path) -> str:
    """Write the file that marks a simulation, and return its name."""
    (directory / MARKER).write_bytes(MARKER_TEXT.encode())
    return MARKER


def read_table(directory: Path, names: tuple[str, str] = TABLE) -> FileTable:
    """Read a table of a release from its Parquet file, within the size of its CSV file."""
    path = directory / names[0]
    try:
        with path.open("rb") as file:
            lines = sum(part.count(b"\n") for part in iter(lambda: file.read(_CHUNK), b""))
    except OSError as error:
        raise ReleaseError(
            f"{path.name} cannot be read; get a fresh copy of the release."
        ) from error
    return _read_parquet(directory / names[1], rows=lines, text=path.stat().st_size)


def compare_csv(
    path: Path,
    table: FileTable,
    level_names: Sequence[str],
    domain: Tree | Workload,
    *,
    readings: Sequence[str] = (),
) -> CsvRows:
    """Compare a CSV file with the Parquet file of the same table, whose rows are a domain's counts.

    A CSV file with the bytes that this version writes holds the same rows. Only another one is read
    line by line.

    Raises ReleaseError if the CSV file is no table, or has other columns.
    """
    keys = len(columns_of(level_names, (), readings=readings, stamped=False))
    own = {name: table[name] for name, _ in table.columns[keys:]}
    lines = csv_lines(key_cells(level_names, domain, readings), own)
    written = chain([_header(table.columns)], lines)
    try:
        with path.open("rb") as file:
            if all(file.read(len(part)) == part for part in written) and not file.read(1):
                return CsvRows(same=True, not_integers=0)
        return compare_lines(path, table)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ReleaseError(
            f"{path.name} cannot be read as a table; get a fresh copy of the release."
        ) from error


def compare_lines(path: Path, table: FileTable) -> CsvRows:
    """Compare a CSV file with a table line by line."""
    header, value = [name for name, _ in table.columns], -1
    same, bad, rows = True, 0, 0
    theirs = zip(*(column.cells() for column in table.data), strict=True)
    with path.open(encoding="utf-8", newline="") as file:
        for line in csv.reader(file, strict=True):
            cells = tuple(map(without_apostrophe, line))
            if len(cells) != len(header):
                raise ReleaseError(
                    f"{path.name} has lines of different lengths or other columns; get a fresh "
                    "copy "
                    "of the release."
                )
            if value < 0:
                if list(cells) != header:
                    raise ReleaseError(
                        f"{path.name} has other columns than the Parquet file; get a fresh copy of "
                        "the release."
                    )
                value = header.index("value") if "value" in header else len(header)
                continue
            rows += 1
            same = same and next(theirs, None) == cells
            bad += value < len(header) and not _is_integer(cells[value])
    if value < 0:
        raise ReleaseError(f"{path.name} has no line; get a fresh copy of the release.")
    return CsvRows(same=same and rows == len(table), not_integers=bad)


def _is_integer(text: str) -> bool:
    digits = text.removeprefix("-")
    return digits.isascii() and digits.isdigit()


def read_file(path: Path) -> FileTable:
    """Read a Parquet file as a table."""
    memory = allowance() or _MEMORY
    return _read_parquet(path, rows=memory // _ROW, text=memory)


def sha256(path: Path) -> str:
    """Return the SHA-256 digest of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _read_parquet(path: Path, *, rows: int, text: int) -> FileTable:
    """Read a table within limits: a small Parquet file may declare any number of rows."""
    try:
        with _connect() as connection, uninterrupted(connection.interrupt):
            source = f"FROM read_parquet({_path(path)}, file_row_number = true)"
            found = connection.execute(f"SELECT * EXCLUDE (file_row_number) {source} LIMIT 0")
            columns = tuple((str(d[0]), str(d[1])) for d in found.description or ())
            strange = [f"{name} {kind}" for name, kind in columns if kind not in _KINDS]
            if strange:
                raise ReleaseError(
                    f"{path.name} has the column {strange[0]}, which no release has; get a "
                    "fresh copy of the release."
                )
            texts = [identifier(name) for name, kind in columns if kind == "VARCHAR"]
            lengths = " + ".join(f"coalesce(sum(strlen({name})), 0)" for name in texts) or "0"
            sizes = []
            for size, what, most in (("count(*)", "rows", rows), (lengths, "bytes of text", text)):
                [[found_size]] = connection.execute(f"SELECT {size} {source}").fetchall()
                sizes.append(int(found_size))
                if found_size > most:
                    raise ReleaseError(
                        f"{path.name} holds {found_size:,} {what}, and there can be at most "
                        f"{most:,}; get a fresh copy of the release."
                    )
            return FileTable(
                columns,
                tuple(_column(connection, *column, sizes[0], source) for column in columns),
            )
    except (duckdb.Error, RuntimeError) as error:  # RuntimeError: text that is not UTF-8
        raise ReleaseError(
            f"{path.name} cannot be read as a table; get a fresh copy of the release."
        ) from error


def _column(
    connection: duckdb.DuckDBPyConnection, name: str, kind: str, rows: int, source: str
) -> Column:
    """Read one column; some of its texts at a time are Python objects."""
    of_column = f"SELECT {identifier(name)} {source}"
    if kind == "VARCHAR":
        parts = (
            f"{of_column} WHERE file_row_number >= {begin} AND file_row_number < {begin + _TEXTS}"
            for begin in range(0, rows, _TEXTS)
        )
        return texts_of(chain.from_iterable(_texts(connection, part) for part in parts))
    array = next(iter(connection.execute(of_column).fetchnumpy().values()))
    known = ~np.ma.getmaskarray(array)
    return Numbers(np.where(known, np.ma.getdata(array), 0), known)


def _texts(connection: duckdb.DuckDBPyConnection, sql: str) -> list[str | None]:
    """Return the texts of a query's only column, None for NULL."""
    array = next(iter(connection.execute(sql).fetchnumpy().values()))
    texts = np.array(np.ma.getdata(array), dtype=object)
    texts[np.ma.getmaskarray(array)] = None
    found: list[str | None] = texts.tolist()
    return found


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
