"""Tables of SQLite files, read a batch at a time through Python's own sqlite3.

DuckDB reads SQLite by an extension that is downloaded when first used; a release must need no
network.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

import numpy as np
import numpy.typing as npt

from congenial.errors import DataError
from congenial.fields import show
from congenial.sources import Connection, Rows, Table, identifier, no_table

T = TypeVar("T")
# Rows that pass through Python at a time.
BATCH = 100_000


def is_sqlite(file: Path) -> bool:
    """Whether a file is SQLite's, by its first bytes."""
    with file.open("rb") as handle:
        return handle.read(16) == b"SQLite format 3\0"


@dataclass(frozen=True)
class SqliteTable:
    """A table of a SQLite file, read in batches."""

    file: Path
    source: str
    table: str

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        uri = f"file:{quote(str(self.file))}?mode=ro"
        database = self._attempt(partial(sqlite3.connect, uri, uri=True))
        with closing(database):
            yield database

    def _attempt(self, step: Callable[[], T]) -> T:
        """Take a step whose error text may quote a cell."""
        with suppress(sqlite3.Error):
            return step()
        raise DataError(
            f"data.source is {show(self.source)}, which cannot be read as a SQLite database; give "
            "a whole database that no other program is writing to."
        )

    def _rows(self, database: sqlite3.Connection, sql: str) -> Rows:
        return self._attempt(lambda: database.execute(sql).fetchall())

    def columns(self) -> list[str]:
        """Names of the table's columns.

        Raises
        ------
        DataError
            If the file lacks the table or cannot be read.
        """
        listing = "SELECT name FROM sqlite_schema WHERE type IN ('table', 'view') ORDER BY name"
        with self._open() as database:
            known = [str(name) for (name,) in self._rows(database, listing)]
            if self.table not in known:
                raise no_table(self.source, self.table, known)
            info = self._rows(database, f"PRAGMA table_xinfo({identifier(self.table)})")
        return [str(row[1]) for row in info]

    def batches(self, connection: Connection, columns: Sequence[str]) -> Iterator[Table]:
        """Register some columns with DuckDB, a batch of rows at a time.

        Notes
        -----
        SQLite types values, not columns: a column is of whole numbers, or of numbers, where all its
        values are, and of text otherwise.
        """
        quoted, source = list(map(identifier, columns)), f"FROM {identifier(self.table)}"
        tests = ", ".join(
            f"min(typeof({c}) IN ('integer', 'null')), max(typeof({c}) NOT IN ('integer', 'real', "
            "'null'))"
            for c in quoted
        )
        with self._open() as database:
            seen = self._rows(database, f"SELECT {tests} {source}")[0]
            kinds = [
                "VARCHAR" if texts else "BIGINT" if whole else "DOUBLE"
                for whole, texts in zip(seen[::2], seen[1::2], strict=True)
            ]
            wanted = ", ".join(
                f"CAST({c} AS TEXT)" if kind == "VARCHAR" else c
                for c, kind in zip(quoted, kinds, strict=True)
            )
            # a missing value is told by a mask, so that a batch of them has its column's type
            picks = ", ".join(
                f"CASE WHEN m{i} THEN NULL ELSE v{i} END AS {c}" for i, c in enumerate(quoted)
            )
            cursor = self._attempt(lambda: database.execute(f"SELECT {wanted} {source}"))
            while rows := self._attempt(lambda: cursor.fetchmany(BATCH)):
                connection.register("batch", _arrays(rows, kinds))
                typed = dict(zip(columns, kinds, strict=True))
                yield Table(f"(SELECT {picks} FROM batch)", typed, f"the table {show(self.table)}")  # noqa: S608 -- the names are quoted
                connection.unregister("batch")


def _arrays(rows: Rows, kinds: Sequence[str]) -> dict[str, npt.NDArray[Any]]:
    """Turn rows into columns v0, v1, ... of values and m0, m1, ... of what is missing."""
    arrays: dict[str, npt.NDArray[Any]] = {}
    for i, (values, kind) in enumerate(zip(zip(*rows, strict=True), kinds, strict=True)):
        blank, dtype = {"BIGINT": (0, "int64"), "DOUBLE": (0.0, "float64")}.get(
            kind, ("", "object")
        )
        arrays[f"v{i}"] = np.array([blank if v is None else v for v in values], dtype=dtype)
        arrays[f"m{i}"] = np.array([v is None for v in values])
    return arrays
