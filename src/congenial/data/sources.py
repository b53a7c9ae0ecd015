"""Files and frames as tables of an embedded DuckDB that can read no other file.

DuckDB's own error messages may quote a cell, so they are never shown. Each failure has a message of
its own, raised outside the handler so that the original error is not attached.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import duckdb
import numpy.typing as npt

from congenial.data.headers import delimiter_of, first_line, is_whole, names_in, repeats
from congenial.data.memory import allowance
from congenial.durability.signals import uninterrupted
from congenial.errors import CongenialError, DataError
from congenial.wording import nearest, show

Connection = duckdb.DuckDBPyConnection
Rows = list[tuple[Any, ...]]
T = TypeVar("T")
# DuckDB guesses nothing about a CSV file from its cells. Guessed quotes or first lines could
# silently lose rows; with guessed types, one record could decide how the row filter reads others.
# Buffers have 4 MiB instead of DuckDB's 32, because each thread has several.
_DIALECT = (
    "header = true, quote = '\"', escape = '\"', comment = '', skip = 0, null_padding = false, "
    "strict_mode = true, hive_types_autocast = false, buffer_size = 4194304"
)
_SETTINGS = (
    "enable_progress_bar = false",
    "autoinstall_known_extensions = false",
    "autoload_known_extensions = false",
    "allow_community_extensions = false",
    "temp_directory = ''",  # counts that do not fit in memory are refused, not spilt to a disk
    "preserve_insertion_order = false",
    "allocator_bulk_deallocation_flush_threshold = '1MB'",  # returns read buffers to the system
    "TimeZone = 'UTC'",
    # the first two would hash the rows instead of the lookup if a file does not state its number
    # of rows; the others move parts of a row filter out of its TRY
    "disabled_optimizers = 'build_side_probe_side,join_order,common_subexpressions,in_clause,"
    "scalar_fn_pushdown,type_pushdown'",
)


@dataclass(frozen=True)
class Relation:
    """A table for SQL's FROM."""

    sql: str
    columns: dict[str, str]  # DuckDB type of each column.
    shown: str  # Its name in messages.
    weight: str = "1"  # SQL of the number of records that a row stands for.
    is_view: bool = False  # Whether it is a view of a database, whose query may fail.

    def check_column(self, column: str, key: str) -> None:
        """Refuse a column that is not here; `key` is the plan's key that names it."""
        if column not in self.columns:
            raise DataError(
                f"{key} names the column {column!r}, which {self.shown} lacks; its columns are "
                f"{', '.join(self.columns)}{nearest(column, self.columns)}."
            )


def identifier(name: str) -> str:
    """Quote a column's name for SQL."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """Quote text for SQL."""
    return "'" + text.replace("'", "''") + "'"


def name_of(column: str, kind: str, table: str = "") -> str:
    """SQL for the text of a value: whole numbers without a point, NULL for nothing or blank."""
    value = f"{table}.{identifier(column)}" if table else identifier(column)
    text = f"CAST({value} AS VARCHAR)"
    if kind in ("FLOAT", "DOUBLE"):
        # the CASE keeps the casts away from what they cannot take: NaN, infinity, wide numbers
        whole = f"abs({value}) < 9007199254740992 AND {value} = floor({value})"
        text = (
            f"CASE WHEN isnan({value}) THEN NULL WHEN {whole} "
            f"THEN CAST(CAST({value} AS BIGINT) AS VARCHAR) ELSE {text} END"
        )
    elif kind.startswith("DECIMAL"):
        text = f"regexp_replace({text}, '\\.0+$', '')"
    return f"nullif({text}, '')"


@contextmanager
def connect() -> Iterator[Connection]:
    """Open an embedded DuckDB that works in memory and writes no file."""
    with uninterrupted():
        connection = duckdb.connect(":memory:")
        for setting in _SETTINGS:
            connection.execute(f"SET {setting}")
        if (most := allowance()) is not None:
            connection.execute(f"SET memory_limit = '{most // 1024} KiB'")
    with closing(connection):
        yield connection


def restrict(connection: Connection, files: Sequence[Path]) -> None:
    """Restrict a connection permanently to these files."""
    # DuckDB opens a name with pattern characters in its escaped form, and checks both forms
    spelt = {name for f in files for name in (str(f), glob.escape(str(f)))}
    listed = ", ".join(map(literal, sorted(spelt)))
    with uninterrupted():
        connection.execute(f"SET allowed_paths = [{listed}]")
        connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")


def attempt(connection: Connection, sql: str) -> Rows | None:
    """Run a query and fetch its rows; None if it fails."""
    return _fetched(connection, sql, lambda found: found.fetchall())


def _fetched(connection: Connection, sql: str, fetch: Callable[[Connection], T]) -> T | None:
    """Run a query and fetch its result; None if it fails."""
    failure: CongenialError | KeyboardInterrupt | None = None
    try:
        with uninterrupted(connection.interrupt):
            return fetch(connection.execute(sql))
    except duckdb.OutOfMemoryException:
        failure = DataError(
            "the counts do not fit in memory, of which half of what is free is taken; use fewer "
            "levels, see that no file holds far more than it should, or use a larger machine."
        )
    except duckdb.InterruptException:
        failure = KeyboardInterrupt()
    except RuntimeError as error:  # how DuckDB reports Ctrl-C
        failure = KeyboardInterrupt() if "interrupt" in str(error).casefold() else None
    except (duckdb.Error, ValueError, TypeError, NotImplementedError, OverflowError):
        pass  # all but the first come from a frame's export to Arrow
    if failure is not None:
        raise failure
    return None


def ask(connection: Connection, sql: str, otherwise: str) -> Rows:
    """Run a query and fetch its rows; a failure is a DataError that says `otherwise`."""
    rows = attempt(connection, sql)
    if rows is None:
        raise DataError(f"{otherwise}.")
    return rows


def ask_columns(connection: Connection, sql: str, otherwise: str) -> list[npt.NDArray[Any]]:
    """Run a query and fetch its columns, none of which has a missing value; see `ask`."""
    found = _fetched(connection, sql, lambda found: [*found.fetchnumpy().values()])
    if found is None:
        raise DataError(f"{otherwise}.")
    return found


def matching(base: Path, source: str) -> list[Path]:
    """Return the named path, which need not exist, or the sorted files of a glob."""
    whole = Path(base) / source
    if whole.exists() or not any(c in source for c in "*?["):
        return [whole]
    # the plan's own directory may have a bracket in its name
    pattern = str(Path(glob.escape(str(base))) / source)
    found = [Path(f) for f in sorted(glob.glob(pattern, recursive=True))]
    return [f for f in found if f.is_file()]


def locate(base: Path, source: str, key: str) -> list[Path]:
    """Find the file that a plan's `key` names, or the files of a glob, sorted."""
    found, given = matching(base, source), f"{key} is {show(source)}"
    if not found:
        raise DataError(f"{given}, which no file matches; give another pattern.")
    if not all(file.exists() for file in found):
        here = "this directory" if key.startswith("`") else "the plan's directory"
        raise DataError(
            f"{given}, and there is no such file; give a path that starts from {here}, or the "
            "whole path."
        )
    return readable(found, given)


def readable(files: Sequence[Path], given: str) -> list[Path]:
    """Return the absolute paths of non-empty files; `given` begins the messages."""
    for file in files:
        if not file.is_file():
            raise DataError(f"{given}, which is not a file; name a file.")
        if not os.access(file, os.R_OK):
            raise DataError(f"{given}, which may not be read; grant read access.")
        if file.stat().st_size == 0:
            raise DataError(f"{given}, and {file.name!r} is an empty file; fill it.")
    kept: dict[tuple[int, int], Path] = {}
    for file in files:
        place = file.stat()
        other = kept.setdefault((place.st_dev, place.st_ino), file)
        if other is not file:
            raise DataError(
                f"{given}, and {other.name!r} and {file.name!r} are the same file, whose records "
                "would count twice; leave one out."
            )
    return [file.resolve() for file in files]


def open_files(
    connection: Connection, files: Sequence[Path], source: str, key: str, *, public: bool = False
) -> Relation:
    """Open Parquet or CSV files as one table; every column of a CSV file is text."""
    listed = f"[{', '.join(literal(glob.escape(str(f))) for f in files)}]"
    parquet = source.casefold().endswith(".parquet")
    one = "it" if len(files) == 1 else f"one of its {len(files)} files"
    otherwise = (
        f"{key} is {show(source)}, and {one} cannot be read as {'Parquet' if parquet else 'CSV'}; "
        f"give a whole {'Parquet file' if parquet else 'CSV file, in UTF-8 and with one header'}"
    )
    if parquet:
        _same_columns(connection, files, f"{key} is {show(source)}", otherwise)
        sql = f"read_parquet({listed}, hive_types_autocast = false)"
        return describe(connection, sql, show(source), otherwise)
    delimiter = delimiter_of(first_line(files[0]))
    if delimiter is None or not all(map(is_whole, files)):
        raise DataError(f"{otherwise}.")
    _same_headers(files, delimiter, f"{key} is {show(source)}")
    dialect = f"{listed}, delim = {literal(delimiter)}, {_DIALECT}"
    own = describe(
        connection,
        f"read_csv({dialect}, all_varchar = true, hive_partitioning = false)",
        show(source),
        otherwise,
    )
    columns = ", ".join(f"{literal(name)}: 'VARCHAR'" for name in own.columns)
    sql = f"read_csv({dialect}, auto_detect = false, columns = {{{columns}}})"
    table = describe(connection, sql, show(source), otherwise)
    return _with_whole_numbers(connection, table, otherwise) if public else table


def _with_whole_numbers(connection: Connection, table: Relation, otherwise: str) -> Relation:
    """Cast columns of a public table to BIGINT if all their texts are canonical integers.

    The nodes' names are the same in both types; a row filter may compare integers with numbers.
    """
    quoted = list(map(identifier, table.columns))
    tests = ", ".join(
        f"count({c}) > 0 AND bool_and({c} IS NULL OR "
        f"coalesce({c} = CAST(TRY_CAST({c} AS BIGINT) AS VARCHAR), false))"
        for c in quoted
    )
    whole = ask(connection, f"SELECT {tests} FROM {table.sql}", otherwise)[0]
    kinds = {c: "BIGINT" for c, yes in zip(table.columns, whole, strict=True) if yes}
    return with_types(table, kinds)


def with_types(table: Relation, types: Mapping[str, str]) -> Relation:
    """Cast columns value by value; values that do not fit the type become NULL, and so does NaN."""
    columns = table.columns | {c: k for c, k in types.items() if c in table.columns}
    picks = []
    for c, k in columns.items():
        value = identifier(c) if table.columns[c] == k else f"TRY_CAST({identifier(c)} AS {k})"
        if k in ("FLOAT", "DOUBLE"):  # otherwise a row filter would treat NaN as the largest number
            value = f"nullif({value}, CAST('nan' AS {k}))"
        if value != identifier(c):
            picks.append(f"{value} AS {identifier(c)}")
    if not picks:
        return table
    return replace(
        table, sql=f"(SELECT * REPLACE ({', '.join(picks)}) FROM {table.sql})", columns=columns
    )


def _same_columns(
    connection: Connection, files: Sequence[Path], given: str, otherwise: str
) -> None:
    """Refuse Parquet files with different columns: one would decide how the others are read."""
    first = None
    for file in files:
        name = literal(glob.escape(str(file)))
        _refuse_twice(_parquet_names(connection, name, otherwise), f"{given}, and {file.name!r}")
        found = describe(connection, f"read_parquet({name})", "", otherwise).columns
        if first is not None and found != first:
            raise DataError(
                f"{given}, and {file.name!r} has other columns or types than {files[0].name!r}; "
                "write all files with one schema."
            )
        first = found


def _same_headers(files: Sequence[Path], delimiter: str, given: str) -> None:
    """Refuse repeated names, and files with different headers, whose rows would be lost."""
    first, *others = (
        [name.casefold() for name in names_in(first_line(file), delimiter)] for file in files
    )
    for file, names in zip(files[1:], others, strict=True):
        if names != first:
            raise DataError(
                f"{given}, and the first line of {file.name!r} is not the header of "
                f"{files[0].name!r}; give all files one header."
            )
    _refuse_twice(first, f"{given}, and the header of {files[0].name!r}")


def _refuse_twice(names: Sequence[str], given: str) -> None:
    """Refuse two columns of one name; DuckDB would rename one of them."""
    if repeats(names):
        raise DataError(f"{given} gives one name to two columns; rename one.")


def _parquet_names(connection: Connection, file: str, otherwise: str) -> list[str]:
    """Names of a Parquet file's top-level columns."""
    listed = ask(connection, f"SELECT name, num_children FROM parquet_schema({file})", otherwise)
    names, inside = [], [1]  # number of columns still to come, for each level
    for name, children in listed:
        if len(inside) == 2:
            names.append(str(name))
        inside[-1] -= 1
        inside.append(children or 0)
        while inside and not inside[-1]:
            inside.pop()
    return names


def is_empty(connection: Connection, table: Relation, otherwise: str) -> bool:
    """Whether a table has no row."""
    return not ask(connection, f"SELECT 1 FROM {table.sql} LIMIT 1", otherwise)


def describe(connection: Connection, sql: str, shown: str, otherwise: str) -> Relation:
    """Look up the columns of a table expression, as it may follow FROM."""
    rows = ask(connection, f"DESCRIBE SELECT * FROM {sql}", otherwise)
    return Relation(sql, {str(r[0]): str(r[1]) for r in rows}, shown)


def no_view(shown: str) -> str:
    """Return the error for a view whose query fails."""
    return (
        f"{shown} of the database cannot be read, since a view may use tables of its own database "
        "file only, and no other file; store its rows as a table, or correct its query"
    )
