"""Tables of databases: a DuckDB file is attached, a SQLite file is read in batches.

Rows of SQLite pass through Python's own sqlite3. DuckDB reads SQLite by an extension that is
downloaded when first used, and a release must need no network.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

import numpy as np
import numpy.typing as npt

from congenial.data.sources import (
    Connection,
    Relation,
    Rows,
    ask,
    describe,
    identifier,
    literal,
    no_view,
)
from congenial.durability.signals import uninterrupted
from congenial.errors import DataError
from congenial.plan.sections import DATABASES
from congenial.wording import nearest, show

T = TypeVar("T")
# The tables and views of an attached file.
_NAMES = (
    "SELECT table_schema, table_name FROM information_schema.tables WHERE table_catalog = 'source'"
)
# Number of rows that pass through Python in one batch.
BATCH = 100_000
# Below this, an integer in a REAL column is exact, and is written without a decimal point.
_WHOLE = 2**53


def is_database(source: str) -> bool:
    """Whether a plan's source is a DuckDB or SQLite file."""
    return source.casefold().endswith(DATABASES)


def only_one(files: Sequence[Path], key: str, source: str) -> Path:
    """Return the one file that a source names; refuse a pattern that several databases match."""
    if len(files) > 1:
        raise DataError(
            f"{key} is {show(source)}, which {len(files)} databases match; name one of them."
        )
    return files[0]


@uninterrupted()
def tables_in(connection: Connection, file: Path, source: str) -> list[tuple[str, str]]:
    """Open a DuckDB file read-only, and list the schema and name of each of its tables."""
    ask(
        connection,
        f"ATTACH {literal(str(file))} AS source (READ_ONLY)",
        f"data.source is {show(source)}, which cannot be opened as a DuckDB or SQLite database; "
        "give a whole database that no other program is writing to",
    )
    return [
        (str(schema), str(name))
        for schema, name in connection.execute(f"{_NAMES} ORDER BY ALL").fetchall()
    ]


def attach(connection: Connection, file: Path, source: str, table: str) -> Relation:
    """Open a table of a DuckDB file, read-only."""
    names = tables_in(connection, file, source)
    views = connection.execute(f"{_NAMES} AND table_type = 'VIEW'").fetchall()
    for schema, name in names:
        if table in (name, f"{schema}.{name}"):
            sql = f"source.{identifier(schema)}.{identifier(name)}"
            is_view = (schema, name) in views
            shown = f"the {'view' if is_view else 'table'} {show(table)}"
            failure = no_view(shown) if is_view else f"{shown} cannot be read; rebuild it"
            return replace(describe(connection, sql, shown, failure), is_view=is_view)
    raise no_table(source, table, [name for _, name in names])


def no_table(source: str, table: str, known: Sequence[str]) -> DataError:
    """Return the error for a missing table, with the tables of the database."""
    return DataError(
        f"data.table is {show(table)}, and {show(source)} holds no such table; it holds "
        f"{', '.join(known) or 'none'}{nearest(table, known)}."
    )


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
        """Run a step; replace its error message, which may quote a cell."""
        with suppress(sqlite3.Error, UnicodeDecodeError):  # the latter: a damaged schema
            return step()
        raise DataError(
            f"data.source is {show(self.source)}, which cannot be read as a SQLite database; give "
            "a whole database that no other program is writing to."
        )

    def _rows(self, database: sqlite3.Connection, sql: str) -> Rows:
        return self._attempt(lambda: database.execute(sql).fetchall())

    def tables(self) -> list[str]:
        """Names of the file's tables and views, without SQLite's own."""
        listing = (
            "SELECT name FROM sqlite_schema WHERE type IN ('table', 'view') "
            "AND name NOT LIKE 'sqlite~_%' ESCAPE '~' ORDER BY name"
        )
        with self._open() as database:
            return [str(name) for (name,) in self._rows(database, listing)]

    def columns(self) -> list[str]:
        """Names of the table's columns; a table that the file lacks is refused."""
        known = self.tables()
        if self.table not in known:
            raise no_table(self.source, self.table, known)
        with self._open() as database:
            info = self._rows(database, f"PRAGMA table_xinfo({identifier(self.table)})")
        return [str(row[1]) for row in info]

    def batches(self, connection: Connection, columns: Sequence[str]) -> Iterator[Relation]:
        """Register some columns with DuckDB as text, a batch of rows at a time.

        SQLite gives types to values, not columns, so rows would decide the type of a column.
        Integers are written without a decimal point.
        """
        source = f"FROM {identifier(self.table)}"
        wanted = ", ".join(
            f"CASE WHEN typeof({c}) = 'real' AND abs({c}) < {_WHOLE} "
            f"AND {c} = CAST({c} AS INTEGER) THEN CAST(CAST({c} AS INTEGER) AS TEXT) "
            f"ELSE CAST({c} AS TEXT) END"
            for c in map(identifier, columns)
        )
        # a mask marks missing values, so that a batch without values is text, too
        picks = ", ".join(
            f"CASE WHEN m{i} THEN NULL ELSE v{i} END AS {identifier(c)}"
            for i, c in enumerate(columns)
        )
        with self._open() as database:
            cursor = self._attempt(lambda: database.execute(f"SELECT {wanted} {source}"))
            while rows := self._attempt(lambda: cursor.fetchmany(BATCH)):
                connection.register("batch", _arrays(rows))
                texts = dict.fromkeys(columns, "VARCHAR")
                yield Relation(
                    f"(SELECT {picks} FROM batch)", texts, f"the table {show(self.table)}"
                )
                connection.unregister("batch")


def _arrays(rows: Rows) -> dict[str, npt.NDArray[Any]]:
    """Turn rows into columns v0, v1, ... of texts and m0, m1, ... that mark missing values."""
    arrays: dict[str, npt.NDArray[Any]] = {}
    for i, values in enumerate(zip(*rows, strict=True)):
        arrays[f"v{i}"] = np.array(["" if v is None else v for v in values], dtype="object")
        arrays[f"m{i}"] = np.array([v is None for v in values])
    return arrays
