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
from itertools import chain, islice
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt

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
    joined,
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
# SQL condition that all rows meet.
EVERY_ROW = "true"
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

        file.write(header_of(columns))
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


def join_parquet(path: Path, parts: Sequence[Path]) -> None:
    """Write the rows of Parquet files of the same columns to one file, in order."""
    listed = ", ".join(_path(part) for part in parts)
    with _connect() as connection, uninterrupted(connection.interrupt):
        connection.execute(
            f"COPY (SELECT * FROM read_parquet([{listed}])) TO {literal(_whole(path))} "
            "(FORMAT parquet)"
        )


def header_of(columns: Columns) -> bytes:
    """Return the first line of a CSV file."""
    return (",".join(cell(name) for name, _ in columns) + "\n").encode()


def csv_lines(
    keys: Iterable[str], own: Mapping[str, Column], *, stamped: bool = False
) -> Iterator[bytes]:
    """Yield the lines of rows, some at a time: the cells that name each count, and its numbers."""
    if stamped:
        own = {**own, NOTE: repeated((STAMP,), np.zeros(len(next(iter(own.values())))))}
    line = ("%s" + ",".join("%s" for _ in own) + "\n").__mod__
    shown = [_as_cells(column) for column in own.values()]
    rows, begin = iter(keys), 0
    while part := list(islice(rows, _LINES)):
        here = slice(begin, begin + len(part))
        cells = (_formatted(column.take(here)) for column in shown)
        yield "".join(map(line, zip(part, *cells, strict=True))).encode()
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


def read_table(
    directory: Path, names: tuple[str, str] = TABLE, where: str = EVERY_ROW
) -> FileTable:
    """Read a table of a release from its Parquet file, within the size of its CSV file.

    Only the rows that meet the SQL condition `where` are read.
    """
    with open_table(directory, names, where) as table:
        return table.read()


@contextmanager
def open_table(
    directory: Path, names: tuple[str, str] = TABLE, where: str = EVERY_ROW
) -> Iterator[OpenTable]:
    """Open a table of a release as `read_table` reads it, to read some rows at a time."""
    path = directory / names[0]
    try:
        with path.open("rb") as file:
            lines = sum(part.count(b"\n") for part in iter(lambda: file.read(_CHUNK), b""))
    except OSError as error:
        raise ReleaseError(
            f"{path.name} cannot be read; get a fresh copy of the release."
        ) from error
    size = path.stat().st_size
    with _opened(directory / names[1], rows=lines, text=size, where=where) as table:
        yield table


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
    lines = lines_of(table, level_names, domain, readings=readings)
    if matched(path, matched(path, 0, [header_of(table.columns)]), lines) == size_of(path):
        return CsvRows(same=True, not_integers=0)
    return compare_lines(path, table.columns, [table])


def lines_of(
    table: FileTable,
    level_names: Sequence[str],
    domain: Tree | Workload,
    *,
    readings: Sequence[str] = (),
    begin: int = 0,
) -> Iterator[bytes]:
    """Yield the lines of a table in a CSV file from a row on, some at a time."""
    keys = len(columns_of(level_names, (), readings=readings, stamped=False))
    own = {name: table[name].take(slice(begin, None)) for name, _ in table.columns[keys:]}
    return csv_lines(islice(key_cells(level_names, domain, readings), begin, None), own)


def matched(path: Path, begin: int, lines: Iterable[bytes]) -> int:
    """Return where a file's lines end that begin at a byte; -1 if it has others, or begin is -1."""
    if begin < 0:
        return -1
    with _as_table(path), path.open("rb") as file:
        file.seek(begin)
        return file.tell() if all(file.read(len(part)) == part for part in lines) else -1


def size_of(path: Path) -> int:
    """Return the number of bytes of a file of a table."""
    with _as_table(path):
        return path.stat().st_size


def compare_lines(path: Path, columns: Columns, tables: Iterable[FileTable]) -> CsvRows:
    """Compare a CSV file line by line with tables, which follow one another."""
    header, value = [name for name, _ in columns], -1
    same, bad = True, 0
    theirs = chain.from_iterable(
        zip(*(column.cells() for column in table.data), strict=True) for table in tables
    )
    with _as_table(path), path.open(encoding="utf-8", newline="") as file:
        for line in csv.reader(file, strict=True):
            cells = tuple(map(without_apostrophe, line))
            if len(cells) != len(header):
                raise ReleaseError(
                    f"{path.name} has lines of different lengths or other columns; get a fresh "
                    "copy of the release."
                )
            if value < 0:
                if list(cells) != header:
                    raise ReleaseError(
                        f"{path.name} has other columns than the Parquet file; get a fresh copy of "
                        "the release."
                    )
                value = header.index("value") if "value" in header else len(header)
                continue
            same = same and next(theirs, None) == cells
            bad += value < len(header) and not _is_integer(cells[value])
    if value < 0:
        raise ReleaseError(f"{path.name} has no line; get a fresh copy of the release.")
    return CsvRows(same=same and next(theirs, None) is None, not_integers=bad)


@contextmanager
def _as_table(path: Path) -> Iterator[None]:
    """Refuse a CSV file that is no table."""
    try:
        yield
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ReleaseError(
            f"{path.name} cannot be read as a table; get a fresh copy of the release."
        ) from error


def _is_integer(text: str) -> bool:
    digits = text.removeprefix("-")
    return digits.isascii() and digits.isdigit()


def read_file(path: Path) -> FileTable:
    """Read a Parquet file as a table."""
    memory = allowance() or _MEMORY
    with _opened(path, rows=memory // _ROW, text=memory) as table:
        return table.read()


def sha256(path: Path) -> str:
    """Return the SHA-256 digest of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@dataclass(frozen=True, eq=False)
class OpenTable:
    """A table in a Parquet file, of which some rows are read at a time."""

    path: Path
    columns: Columns
    rows: int  # Number of rows of the file.
    where: str  # SQL condition; other rows are left out, but count in the numbers of rows.
    _connection: duckdb.DuckDBPyConnection

    def selected(self, where: str, columns: Sequence[str] | None = None) -> OpenTable:
        """Return the rows that also meet an SQL condition, with all columns or some of them."""
        kept = tuple(c for c in self.columns if columns is None or c[0] in columns)
        return replace(self, columns=kept, where=f"({self.where}) AND ({where})")

    def read(
        self, begin: int = 0, end: int | None = None, after: FileTable | None = None
    ) -> FileTable:
        """Read the rows from one to before another, and put them after some other rows."""
        end = self.rows if end is None else end
        # some texts at a time are Python objects
        parts = [range(at, min(at + _TEXTS, end)) for at in range(begin, end, _TEXTS)]
        data: list[Column] = []
        for name, kind in self.columns:
            if kind == "VARCHAR":
                first = [] if after is None else [after.texts(name).texts()]
                texts = (_texts(self._column(identifier(name), part)) for part in parts)
                data.append(texts_of(chain.from_iterable(chain(first, texts))))
            else:
                found = _number(self._column(identifier(name), range(begin, end)))
                data.append(found if after is None else joined(after.numbers(name), found))
        return FileTable(self.columns, tuple(data))

    def numbers(self, name: str, begin: int, end: int) -> Numbers:
        """Read a column of the rows from one to before another, see `FileTable.numbers`."""
        return self.selected(EVERY_ROW, [name]).read(begin, end).numbers(name)

    def row_numbers(self, begin: int = 0, end: int | None = None) -> IntArray:
        """Return the number of each row in the file, of those from one to before another."""
        end = self.rows if end is None else end
        return np.asarray(self._column("file_row_number", range(begin, end)), dtype=np.int64)

    def hashes(self, name: str) -> npt.NDArray[np.uint64]:
        """Return a number for the text of each row, the same for the same text."""
        found: npt.NDArray[np.uint64] = self._column(f"hash({identifier(name)})", range(self.rows))
        return found

    def down_to(self, level: int) -> tuple[IntArray, FileTable]:
        """Read the rows of the levels down to one, and the number of each such row in the file."""
        own = self.selected(f"level <= {level}")
        return own.row_numbers(), own.read()

    def _column(self, name: str, rows: range) -> npt.NDArray[Any]:
        """Return an SQL expression for some rows; an entry is masked where there is none."""
        query = (
            f"SELECT {name} {_rows_of(self.path)} WHERE file_row_number >= {rows.start} "
            f"AND file_row_number < {rows.stop} AND ({self.where})"
        )
        with _readable(self.path, self._connection):
            return next(iter(self._connection.execute(query).fetchnumpy().values()))


def _rows_of(path: Path) -> str:
    return f"FROM read_parquet({_path(path)}, file_row_number = true)"


@contextmanager
def _readable(path: Path, connection: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """Refuse a Parquet file that is no table."""
    try:
        with uninterrupted(connection.interrupt):
            yield
    except (duckdb.Error, RuntimeError) as error:  # RuntimeError: text that is not UTF-8
        raise ReleaseError(
            f"{path.name} cannot be read as a table; get a fresh copy of the release."
        ) from error


@contextmanager
def _opened(path: Path, *, rows: int, text: int, where: str = EVERY_ROW) -> Iterator[OpenTable]:
    """Open a table within limits: a small Parquet file may declare any number of rows."""
    with _connect() as connection:
        source = _rows_of(path)
        with _readable(path, connection):
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
            for size, what, most in (
                (f"count(*) {source}", "rows", rows),
                (f"{lengths} {source} WHERE {where}", "bytes of text", text),
            ):
                [[found_size]] = connection.execute(f"SELECT {size}").fetchall()
                sizes.append(int(found_size))
                if found_size > most:
                    raise ReleaseError(
                        f"{path.name} holds {found_size:,} {what}, and there can be at most "
                        f"{most:,}; get a fresh copy of the release."
                    )
        yield OpenTable(path, columns, sizes[0], where, connection)


def _number(array: npt.NDArray[Any]) -> Numbers:
    known = ~np.ma.getmaskarray(array)
    return Numbers(np.where(known, np.ma.getdata(array), 0), known)


def _texts(array: npt.NDArray[Any]) -> list[str | None]:
    """Return the texts of a column, None for NULL."""
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
