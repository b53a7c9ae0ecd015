"""The files of a release: their names, and the released table as CSV and as Parquet."""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np
import numpy.typing as npt

from congenial.errors import ReleaseError
from congenial.tree import Tree

IntArray = npt.NDArray[np.int64]

CSV = "release.csv"
PARQUET = "release.parquet"
CERTIFICATE = "certificate.json"
MARKER = "SIMULATION_NOT_PRIVATE.txt"
ALWAYS = (CERTIFICATE, CSV, PARQUET)
# Made from a release afterwards, by `congenial report`; no certificate speaks of it.
REPORT = "report.html"
ALL = (*ALWAYS, MARKER, REPORT)
STAMP = "SIMULATION: NOT PRIVATE"
MARKER_TEXT = f"{STAMP}\n"


@dataclass(frozen=True)
class Table:
    """A released table as it stands in a file.

    Attributes
    ----------
    columns : tuple of (str, str)
        Name and DuckDB type of each column.
    rows : list of tuple
        One a node; integers where the column has an integer type, else text or None.
    """

    columns: tuple[tuple[str, str], ...]
    rows: list[tuple[object, ...]]

    def column(self, name: str) -> list[object]:
        """Values of one column, in the order of the rows."""
        at = [c for c, _ in self.columns].index(name)
        return [row[at] for row in self.rows]


def table_columns(
    level_names: Sequence[str], *, truth: bool, stamped: bool
) -> tuple[tuple[str, str], ...]:
    """Name and type of each column of a released table."""
    paths = [(name, "VARCHAR") for name in level_names]
    columns = [("level", "BIGINT"), ("level_name", "VARCHAR"), *paths, ("value", "BIGINT")]
    if truth:
        columns.append(("truth", "BIGINT"))
    if stamped:
        columns.append(("note", "VARCHAR"))
    return tuple(columns)


def write_tables(
    directory: Path,
    level_names: Sequence[str],
    tree: Tree,
    value: IntArray,
    *,
    truth: IntArray | None = None,
    stamped: bool = False,
) -> None:
    """Write the released table twice, as CSV and from that as Parquet.

    Parameters
    ----------
    directory : Path
    level_names : sequence of str
        The root's level first.
    tree : Tree
    value : ndarray of int64, shape (n,)
    truth : ndarray of int64, shape (n,), optional
        Confidential counts, in simulations only.
    stamped : bool
        Add a column that says in every row that this is a simulation.

    Raises
    ------
    OSError, duckdb.Error
        If a file cannot be written.
    """
    columns = table_columns(level_names, truth=truth is not None, stamped=stamped)
    with (directory / CSV).open("w", encoding="utf-8", newline="") as file:
        file.write(",".join(_quoted(name) for name, _ in columns) + "\n")
        for line in _lines(level_names, tree, value, truth, stamped):
            file.write(line)
    types = ", ".join(f"{_literal(name)}: {_literal(kind)}" for name, kind in columns)
    with _connect() as connection:
        connection.execute(
            f"COPY (SELECT * FROM read_csv({_path(directory / CSV)}, auto_detect = false, "
            f"header = true, delim = ',', quote = '\"', escape = '\"', new_line = '\\n', "
            f"nullstr = '', allow_quoted_nulls = false, columns = {{{types}}})) "
            f"TO {_literal(str(directory / PARQUET))} (FORMAT parquet)"
        )


def read_tables(directory: Path) -> tuple[Table, Table]:
    """Read the released table from the CSV and from the Parquet file.

    Returns
    -------
    csv, parquet : Table
        Every CSV value is text, whatever it looks like, and empty text where there is none.

    Raises
    ------
    ReleaseError
        If a file cannot be read as a table.
    """
    return _read_csv(directory / CSV), _read_parquet(directory / PARQUET)


def sha256(path: Path) -> str:
    """Return the SHA-256 digest of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _lines(
    level_names: Sequence[str],
    tree: Tree,
    value: IntArray,
    truth: IntArray | None,
    stamped: bool,
) -> Iterator[str]:
    depth = len(level_names)
    prefix: dict[int, str] = {}
    labels = [_quoted(name) for name in level_names]
    rank = np.argsort(tree.level, kind="stable")
    for v in map(int, rank):  # parents come before their children
        parent = int(tree.parents[v])
        own = _quoted(tree.names[v])
        prefix[v] = own if parent < 0 else f"{prefix[parent]},{own}"
    for v in range(len(tree)):
        level = int(tree.level[v])
        line = f"{level},{labels[level]},{prefix[v]}{',' * (depth - 1 - level)},{int(value[v])}"
        if truth is not None:
            line += f",{int(truth[v])}"
        yield f"{line},{STAMP}\n" if stamped else f"{line}\n"


def _quoted(text: str) -> str:
    # an empty name is quoted, which tells it from a column that a node does not have
    if not text or any(c in text for c in ',"\r\n') or text != text.strip():
        return '"' + text.replace('"', '""') + '"'
    return text


def _read_csv(path: Path) -> Table:
    try:
        with path.open(encoding="utf-8", newline="") as file:
            lines = [tuple(line) for line in csv.reader(file, strict=True)]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ReleaseError(
            f"{path.name} cannot be read as a table; make the release anew."
        ) from error
    if not lines or any(len(line) != len(lines[0]) for line in lines):
        raise ReleaseError(
            f"{path.name} has lines of different lengths or none; make the release anew."
        )
    return Table(tuple((name, "VARCHAR") for name in lines[0]), list(lines[1:]))


def _read_parquet(path: Path) -> Table:
    try:
        with _connect() as connection:
            found = connection.execute(f"SELECT * FROM read_parquet({_path(path)})")
            columns = tuple((str(d[0]), str(d[1])) for d in found.description or ())
            return Table(columns, found.fetchall())
    except duckdb.Error as error:
        raise ReleaseError(
            f"{path.name} cannot be read as a table; make the release anew."
        ) from error


def _connect() -> duckdb.DuckDBPyConnection:
    # one thread keeps the rows in order and the file the same from run to run
    return duckdb.connect(":memory:", config={"threads": 1})


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _path(path: Path) -> str:
    """SQL text that names one file, wildcards in its name taken literally."""
    return _literal("".join(f"[{c}]" if c in "*?[" else c for c in str(path)))
