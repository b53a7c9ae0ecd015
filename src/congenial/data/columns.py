"""Names and types of tables and their columns, without any value of a row.

Only the first line of a CSV file is read, the schema in a Parquet file's footer, or a database's
catalogue.
"""

from __future__ import annotations

import re
from pathlib import Path

from congenial.data.databases import (
    SqliteTable,
    attach,
    is_database,
    is_sqlite,
    only_one,
    tables_in,
)
from congenial.data.headers import delimiter_of, first_line, names_in, repeats
from congenial.data.sources import connect, matching, open_files, readable
from congenial.errors import DataError
from congenial.plan.sections import DATABASES, TABLES
from congenial.wording import nearest, one_of, show

# The type of an ENUM lists its values, which may come from rows.
_LISTED = re.compile(r"ENUM\((?:'(?:[^']|'')*'(?:, )?)*\)")
# Numbers occur in rows and seldom in a header.
_NUMBER = re.compile(r"[-+]?\d+([.,]\d+)?")


def look_up_tables(source: str) -> tuple[str, ...]:
    """Names of a database's tables, with their schema unless it is `main`; none for other files."""
    files = find(source, "DATA")
    if not is_database(source):
        return ()
    file = only_one(files, "DATA", source)
    if is_sqlite(file):
        found = SqliteTable(file, source, "").tables()
    else:
        with connect() as connection:
            listed = tables_in(connection, file, source)
        found = [name if schema == "main" else f"{schema}.{name}" for schema, name in listed]
    if not found:
        raise DataError(f"DATA is {show(source)}, which holds no table; give one that does.")
    return tuple(found)


def look_up_columns(source: str, key: str = "DATA", *, table: str | None = None) -> dict[str, str]:
    """Names of the columns that a release would see, with their DuckDB types.

    The type of an ENUM lacks its values. Columns without a name are left out.
    """
    files = find(source, key)
    found: dict[str, str]
    if table is not None:
        file = only_one(files, key, source)
        if is_sqlite(file):
            found = dict.fromkeys(SqliteTable(file, source, table).columns(), "VARCHAR")
        else:
            with connect() as connection:
                found = attach(connection, file, source, table).columns
    elif source.casefold().endswith(".parquet"):
        with connect() as connection:
            found = open_files(connection, files, source, key).columns
    else:
        found = dict.fromkeys(_header(files[0], source, key), "VARCHAR")
    named = {name: _LISTED.sub("ENUM", kind) for name, kind in found.items() if name.strip()}
    if not named:
        raise DataError(f"{key} is {show(source)}, which has no column with a name; name them.")
    return named


def find(source: str, key: str) -> list[Path]:
    """Find a file, or the files of a glob, and check that a plan can name it."""
    given = f"{key} is {show(source)}"
    ends = (*TABLES, *DATABASES) if key == "DATA" else TABLES
    whole = Path(source)
    try:
        source.encode()
        if whole.is_dir():
            raise DataError(f"{given}, which is a directory; give a file in it.")
        found = matching(Path(), source)
    except ValueError:  # a null character, or bytes that are not text
        raise DataError(f"{given}, which a plan cannot name; rename the file.") from None
    if not found or not found[0].exists():
        near = nearest(whole.name, _beside(whole))
        raise DataError(f"{given}, and there is no such file; give another path{near}.")
    if not source.casefold().endswith(ends):
        raise DataError(f"{given}; give a file whose name ends in {one_of(ends)}.")
    return readable(found, given)


def _beside(path: Path) -> list[str]:
    try:
        return [entry.name for entry in path.parent.iterdir() if entry.is_file()]
    except OSError:
        return []


def _header(file: Path, source: str, key: str) -> list[str]:
    """Names in the first line of a CSV file, as DuckDB reads them."""
    given = f"{key} is {show(source)}, and the first line of {file.name!r}"
    line = first_line(file)
    delimiter = delimiter_of(line)
    names = [] if delimiter is None else names_in(line, delimiter)
    if not names:
        raise DataError(
            f"{given} cannot be read as a header; give a CSV file in UTF-8, with the columns' "
            "names in one line."
        )
    if any(_NUMBER.fullmatch(name) for name in names):
        # the line is not shown, because it may be a person's row
        raise DataError(
            f"{given} contains a number, so it is probably a row and not a header; give the file "
            "a header, or write the plan by hand."
        )
    if repeats(filter(None, names)):
        raise DataError(f"{given} gives one name to two columns; rename one.")
    return names
