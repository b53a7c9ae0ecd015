"""Tables of DuckDB files, and the test whether a file is a database."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from congenial.data.sources import Connection, Relation, ask, describe, identifier, literal
from congenial.durability.signals import uninterrupted
from congenial.errors import DataError
from congenial.plan.sections import DATABASES
from congenial.wording import nearest, show


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
    names = connection.execute(
        "SELECT table_schema, table_name FROM information_schema.tables "
        "WHERE table_catalog = 'source' ORDER BY ALL"
    ).fetchall()
    return [(str(schema), str(name)) for schema, name in names]


def attach(connection: Connection, file: Path, source: str, table: str) -> Relation:
    """Open a table of a DuckDB file, read-only."""
    names = tables_in(connection, file, source)
    for schema, name in names:
        if table in (name, f"{schema}.{name}"):
            sql = f"source.{identifier(schema)}.{identifier(name)}"
            shown = f"the table {show(table)}"
            return describe(connection, sql, shown, f"{shown} cannot be read; rebuild it")
    raise no_table(source, table, [name for _, name in names])


def no_table(source: str, table: str, known: Sequence[str]) -> DataError:
    """Return the error for a missing table, with the tables of the database."""
    return DataError(
        f"data.table is {show(table)}, and {show(source)} holds no such table; it holds "
        f"{', '.join(known) or 'none'}{nearest(table, known)}."
    )
