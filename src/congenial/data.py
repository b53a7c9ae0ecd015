"""Rows to counts: every count is made inside DuckDB, and no row is kept in Python.

The lookup and the domain are public; the rows are not. So a message may show what the lookup
holds, and of the rows only the names of their columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import duckdb
import narwhals as nw
import numpy as np
import numpy.typing as npt

from congenial.errors import ArgumentError, DataError
from congenial.fields import refuse, show
from congenial.plan import Plan
from congenial.sources import (
    Connection,
    SqliteTable,
    Table,
    ask,
    attach,
    connect,
    describe,
    identifier,
    is_database,
    is_sqlite,
    locate,
    name_of,
    open_files,
    restrict,
    weighted,
)
from congenial.tree import Tree
from congenial.where import Condition, parse_where

IntArray = npt.NDArray[np.int64]
# Rows of partial counts kept before they are added up.
_COMPACT = 1_000_000
_WEIGHT = "records of one row"


@dataclass(frozen=True, eq=False)
class CountedTree:
    """A tree and the confidential count of each node.

    Attributes
    ----------
    tree : Tree
    counts : ndarray of int64, shape (n,)
        Rows counted under each node.
    excluded : int
        Rows that `where` left out, a confidential count like any other.
    """

    tree: Tree
    counts: IntArray = field(repr=False)
    excluded: int = field(repr=False)


def build_tree(plan: Plan, *, base: Path) -> Tree:
    """Build the tree of a plan's domain; rows are read only where the domain is "data".

    Parameters
    ----------
    plan : Plan
    base : Path
        The directory that paths in the plan start from.

    Raises
    ------
    DataError
        If the domain cannot be read or is not a hierarchy.
    """
    if plan.hierarchy.domain == "data":
        return count(plan, base=base).tree
    with connect() as connection:
        public = _open_public(connection, plan, base, others=())
        return _tree(plan, _domain_paths(connection, plan, public))


def count(plan: Plan, *, base: Path) -> CountedTree:
    """Count the rows of a plan's source.

    Parameters
    ----------
    plan : Plan
    base : Path
        The directory that paths in the plan start from.

    Raises
    ------
    DataError
        If a file, table or column is missing or unreadable, the rows are none, or a counted row
        has no node.
    PlanError
        If `where` is not a condition.

    Notes
    -----
    Nodes come in the order of their names, those that are numbers first and by value; a node
    stands before its children.
    """
    data = plan.data
    files = locate(base, data.source, "data.source")
    with connect() as connection:
        if not is_database(data.source):
            public = _open_public(connection, plan, base, others=files)
            rows = open_files(connection, files, data.source, "data.source")
            return _count(connection, plan, public, rows.columns, rows.shown, [rows])
        assert data.table is not None  # a plan has checked this
        if not is_sqlite(files[0]):
            rows = attach(connection, files[0], data.source, data.table)
            public = _open_public(connection, plan, base, others=files)
            return _count(connection, plan, public, rows.columns, rows.shown, [rows])
        public = _open_public(connection, plan, base, others=())
        table = SqliteTable(files[0], data.source, data.table)
        known, shown = table.columns(), f"the table {show(data.table)}"
        needed = _needed(plan, public, known, shown)
        batches = table.batches(connection, needed)
        return _count(connection, plan, public, known, shown, batches)


def count_frame(frame: Any, plan: Plan, *, base: Path) -> CountedTree:
    """Count the rows of a dataframe in place of the plan's source.

    Parameters
    ----------
    frame : any dataframe that narwhals knows
        pandas, polars (lazy too), an Arrow table, a DuckDB relation and others.
    plan : Plan
    base : Path
        The directory that paths of the lookup and the domain start from.

    Raises
    ------
    ArgumentError
        If `frame` is no dataframe.
    DataError, PlanError
        As `count`.
    """
    try:
        wide = nw.from_native(frame)
        known = wide.collect_schema().names()
    except (TypeError, nw.exceptions.NarwhalsError):
        known = None
    if known is None:
        raise ArgumentError(
            f"frame is a {type(frame).__name__}; give a dataframe with named columns, such as one "
            "of pandas, polars, pyarrow or DuckDB."
        )
    shown = "the frame"
    with connect() as connection:
        public = _open_public(connection, plan, base, others=())
        narrow = wide.select(_needed(plan, public, known, shown))
        if isinstance(narrow, nw.LazyFrame):
            # the backend adds up what it can, so that a long frame is never collected whole
            groups = narrow.group_by(narrow.collect_schema().names()).agg(nw.len().alias(_WEIGHT))
            table = weighted(_register(connection, groups.collect(), shown), _WEIGHT)
        else:
            table = _register(connection, narrow, shown)
        return _count(connection, plan, public, known, shown, [table])


def _register(connection: Connection, frame: nw.DataFrame[Any], shown: str) -> Table:
    unfit = f"a column of {shown} cannot be given to Arrow; give each column values of one type"
    try:
        connection.register("frame", frame.to_arrow())
        failed = False
    except (duckdb.Error, ValueError, TypeError, NotImplementedError, OverflowError):
        failed = True  # these texts may quote a cell
    if failed:
        raise DataError(f"{unfit}.")
    return describe(connection, "frame", shown, unfit)


@dataclass(frozen=True)
class _Public:
    """What is known before any row is read."""

    condition: Condition
    lookup: Table | None
    domain: Table | None


def _open_public(
    connection: Connection, plan: Plan, base: Path, *, others: Sequence[Path]
) -> _Public:
    """Open the lookup and the domain's file, and shut out every file but these and `others`."""
    lookup, domain = plan.data.lookup, plan.hierarchy.domain
    named = {}
    if lookup is not None:
        named["data.lookup.source"] = lookup.source
    if domain not in ("lookup", "data"):
        named["hierarchy.domain"] = domain
    files = {key: locate(base, source, key) for key, source in named.items()}
    restrict(connection, [*others, *(f for listed in files.values() for f in listed)])
    tables = {
        key: open_files(connection, files[key], source, key, small=True)
        for key, source in named.items()
    }
    opened = tables.get("data.lookup.source")
    if lookup is not None and opened is not None:
        opened = replace(opened, shown=f"the lookup {opened.shown}")
        opened.need(lookup.key, "data.lookup.key")
        _check_keys(connection, plan, opened)
    listing = tables.get("hierarchy.domain")
    if listing is not None:
        listing = replace(listing, shown=f"the domain {listing.shown}")
    return _Public(parse_where(connection, plan.data.where), opened, listing)


def _unreadable(table: Table) -> str:
    return (
        f"{table.shown} could not be read to its end, since a value does not fit its column's type "
        "or the file is damaged; mend it, or give the column one type"
    )


def _check_keys(connection: Connection, plan: Plan, table: Table) -> None:
    lookup = plan.data.lookup
    assert lookup is not None
    key = name_of(lookup.key, table.columns[lookup.key])
    found = ask(
        connection,
        f"SELECT {key} AS name, count(*) FROM {table.sql} GROUP BY name "
        "HAVING name IS NULL OR count(*) > 1 ORDER BY name NULLS FIRST LIMIT 1",
        _unreadable(table),
    )
    if not found:
        return
    name, times = found[0]
    if name is None:
        raise DataError(
            f"{table.shown} has a row without a value in its key {lookup.key!r}; fill it in."
        )
    parent = next(
        (v for v in plan.hierarchy.levels if v in table.columns and v != lookup.key), None
    )
    under = ""
    if parent is not None:
        rows = ask(
            connection,
            f"SELECT DISTINCT {name_of(parent, table.columns[parent])} AS parent FROM {table.sql} "
            f"WHERE {key} = {_quoted(str(name))} ORDER BY parent LIMIT 2",
            _unreadable(table),
        )
        under = f", under the {parent} {' and '.join(repr(r[0]) for r in rows)}"
    raise DataError(
        f"{table.shown} lists the {lookup.key} {name!r} {times} times{under}; a node has one "
        "parent, so list each key once."
    )


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _needed(plan: Plan, public: _Public, known: Sequence[str], shown: str) -> list[str]:
    """Columns of the rows that counting reads, once all that is named is found somewhere."""
    rows = Table("", dict.fromkeys(known, ""), shown)
    levels, lookup = plan.hierarchy.levels, plan.data.lookup
    others: dict[str, str] = {}
    if lookup is not None and public.lookup is not None:
        rows.need(lookup.on, "data.lookup.on")
        others = public.lookup.columns
    both = Table(
        "",
        rows.columns | others,
        shown if public.lookup is None else f"{shown} with {public.lookup.shown}",
    )
    for level in levels:
        both.need(level, "hierarchy.levels")
    public.condition.check_columns(tuple(both.columns), both.shown)
    folded = {c.casefold() for c in others} - ({lookup.on.casefold()} if lookup else set())
    used = {v.casefold() for v in levels} | set(public.condition.columns)
    for column in known:
        if column.casefold() in used & folded:
            raise DataError(
                f"the column {column!r} is both in {shown} and in the lookup, so the plan may mean "
                "either; rename it in one of the two."
            )
    if lookup is not None:
        used |= {lookup.on.casefold()}
    return [c for c in known if c.casefold() in used]


def _joined(plan: Plan, public: _Public, rows: Table) -> Table:
    """Rows with the columns that the lookup adds, and whether it has their key."""
    lookup, table = plan.data.lookup, public.lookup
    if lookup is None or table is None:
        return replace(rows, sql=f"(SELECT *, true AS matched FROM {rows.sql})")
    present = {c.casefold() for c in rows.columns}
    added = {c: k for c, k in table.columns.items() if c.casefold() not in present}
    own = ", ".join(f"r.{identifier(c)}" for c in rows.columns)
    extra = "".join(f", l.{identifier(c)}" for c in added)
    weight = "" if rows.weight == "1" else f", r.{rows.weight}"
    key = name_of(lookup.key, table.columns[lookup.key])
    on = name_of(lookup.on, rows.columns[lookup.on], "r")
    sql = (
        f"(SELECT {own}{extra}{weight}, l.name IS NOT NULL AS matched FROM {rows.sql} AS r "
        f"LEFT JOIN (SELECT *, {key} AS name FROM {table.sql}) AS l ON {on} = l.name)"
    )
    return replace(rows, sql=sql, columns=rows.columns | added)


def _check_condition(connection: Connection, condition: Condition, table: Table, sql: str) -> None:
    """Refuse a condition that the columns' types do not allow, before anything is read."""
    types = ", ".join(
        f"{c} {k}" for c, k in table.columns.items() if c.casefold() in condition.columns
    )
    given = f"is {show(condition.text)}"
    remedy = "compare values of one type and make the whole true or false"
    try:
        kind = connection.execute(f"DESCRIBE SELECT {sql} AS kept FROM {table.sql}").fetchall()[0][
            1
        ]
    except duckdb.Error:
        kind = None
    if kind is None:
        refuse("data.where", f"{given}, which does not fit its columns ({types})", remedy)
    if kind != "BOOLEAN":
        refuse("data.where", f"{given}, which gives a {kind}", remedy)


def _domain_table(plan: Plan, public: _Public) -> Table:
    """The domain's rows, with the column that joins to them under both of its names."""
    lookup, table = plan.data.lookup, public.domain
    if table is not None:
        if lookup is not None and lookup.on in table.columns:
            return _joined(plan, public, table)
        return replace(table, sql=f"(SELECT *, true AS matched FROM {table.sql})")
    table = public.lookup
    assert lookup is not None and table is not None  # a plan has checked this
    columns, alias = table.columns, ""
    if lookup.on not in columns:
        alias = f", {identifier(lookup.key)} AS {identifier(lookup.on)}"
        columns = columns | {lookup.on: columns[lookup.key]}
    elif lookup.on != lookup.key:
        raise DataError(
            f"{table.shown} has a column {lookup.on!r} besides its key {lookup.key!r}, and "
            "data.lookup.on names it too; rename it."
        )
    return replace(
        table, sql=f"(SELECT *{alias}, true AS matched FROM {table.sql})", columns=columns
    )


def _domain_paths(connection: Connection, plan: Plan, public: _Public) -> list[tuple[str, ...]]:
    """Fill the table `domain` from the lookup or a file and return its paths in order."""
    table, levels, condition = _domain_table(plan, public), plan.hierarchy.levels, public.condition
    for level in levels:
        table.need(level, "hierarchy.levels")
    part = condition.on(table.columns)
    _check_condition(connection, condition, table, part)
    names = _names(plan, table)
    ask(
        connection,
        f"CREATE TEMP TABLE domain AS SELECT DISTINCT matched, {names} FROM {table.sql} "
        f"WHERE {part}",
        _unreadable(table),
    )
    return _paths(connection, plan, table.shown, public=True)


def _names(plan: Plan, table: Table) -> str:
    return ", ".join(
        f"{name_of(level, table.columns[level])} AS n{i}"
        for i, level in enumerate(plan.hierarchy.levels)
    )


def _paths(
    connection: Connection, plan: Plan, shown: str, *, public: bool
) -> list[tuple[str, ...]]:
    """Check the table `domain`, number its rows in order, and return them."""
    levels, broken = plan.hierarchy.levels, "the nodes could not be listed; check the levels"
    columns = [f"n{i}" for i in range(len(levels))]
    for level, column in zip(levels, columns, strict=True):
        if ask(
            connection, f"SELECT 1 FROM domain WHERE matched AND {column} IS NULL LIMIT 1", broken
        ):
            raise DataError(
                f"{shown} has a row without a value in {level!r}; fill it in, or leave such rows out "
                "with data.where."
            )
    if ask(connection, "SELECT 1 FROM domain WHERE NOT matched LIMIT 1", broken):
        lookup = plan.data.lookup
        assert lookup is not None
        raise DataError(
            f"{shown} names a {lookup.on} that the lookup lacks; add it to the lookup, or leave it "
            "out with data.where."
        )
    for depth in range(1, len(levels)):
        if plan.hierarchy.names_repeat:
            break
        above = f"[{', '.join(columns[:depth])}]"
        found = ask(
            connection,
            f"SELECT {columns[depth]}, min({above}), max({above}) FROM domain GROUP BY 1 "
            f"HAVING min({above}) <> max({above}) ORDER BY 1 LIMIT 1",
            broken,
        )
        if found:
            name, first, last = found[0]
            which = f"the {levels[depth]} {name!r}" if public else f"a {levels[depth]}"
            under = f" ({_path(first)!r} and {_path(last)!r})" if public else ""
            raise DataError(
                f"{shown} puts {which} under two parents{under}; give it one, or say "
                "hierarchy.names_repeat = true if these are different nodes of one name."
            )
    order = ", ".join(f"try_cast({c} AS DOUBLE) NULLS LAST, {c}" for c in columns)
    listed = ask(
        connection,
        f"CREATE TEMP TABLE ordered AS SELECT {', '.join(columns)}, row_number() OVER (ORDER BY "
        f"{order}) - 1 AS leaf FROM domain; SELECT {', '.join(columns)} FROM ordered ORDER BY leaf",
        broken,
    )
    if not listed:
        raise DataError(
            f"{shown} holds no node{' that meets data.where' if plan.data.where else ''}; a release "
            "needs at least one."
        )
    return [tuple(map(str, path)) for path in listed]


def _path(names: object) -> str:
    return "/".join(map(str, names)) if isinstance(names, Iterable) else str(names)


def _tree(plan: Plan, paths: list[tuple[str, ...]]) -> Tree:
    return Tree.from_paths((plan.hierarchy.root, *path) for path in paths)


def _count(
    connection: Connection,
    plan: Plan,
    public: _Public,
    known: Sequence[str],
    shown: str,
    batches: Iterable[Table],
) -> CountedTree:
    """Count batches of rows, one after the other, and set the counts on the domain's tree."""
    levels = plan.hierarchy.levels
    needed = set(_needed(plan, public, tuple(known), shown))
    paths = None if plan.hierarchy.domain == "data" else _domain_paths(connection, plan, public)
    columns = [f"n{i}" for i in range(len(levels))]
    names = ", ".join(columns)
    typed = ", ".join(f"{c} VARCHAR" for c in columns)
    shape = f"(kept BOOLEAN, matched BOOLEAN, {typed}, records BIGINT)"
    connection.execute(f"CREATE TEMP TABLE tally {shape}")
    for batch in batches:
        narrow = replace(batch, columns={c: k for c, k in batch.columns.items() if c in needed})
        with _compacting(connection, names):
            _tally(connection, plan, public, narrow)
    broken = "the counts could not be added up; please report this as a mistake of congenial"
    if not ask(connection, "SELECT 1 FROM tally LIMIT 1", broken):
        raise DataError(f"{shown} holds no rows; give it at least one.")
    for level, column in zip(levels, columns, strict=True):
        if ask(
            connection,
            f"SELECT 1 FROM tally WHERE kept AND matched AND {column} IS NULL LIMIT 1",
            broken,
        ):
            raise DataError(
                f"{shown} has a counted row without a value in {level!r}; fill it in, or leave such "
                f"rows out with data.where, as in {identifier(level) + ' IS NOT NULL'!r}."
            )
    if ask(connection, "SELECT 1 FROM tally WHERE kept AND NOT matched LIMIT 1", broken):
        assert plan.data.lookup is not None
        raise DataError(
            f"{shown} has a counted row whose {plan.data.lookup.on!r} the lookup lacks; add every "
            "key to the lookup, or leave such rows out with data.where."
        )
    if paths is None:
        ask(
            connection,
            f"CREATE TEMP TABLE domain AS SELECT DISTINCT matched, {names} FROM tally WHERE kept",
            broken,
        )
        paths = _paths(connection, plan, shown, public=False)
    same = " AND ".join(f"ordered.{c} = counted.{c}" for c in columns)
    leaves = ask(
        connection,
        f"SELECT coalesce(leaf, -1), coalesce(records, 0) FROM ordered FULL JOIN (SELECT {names}, "
        f"CAST(sum(records) AS BIGINT) AS records FROM tally WHERE kept GROUP BY {names}) AS "
        f"counted ON {same} ORDER BY 1",
        broken,
    )
    table = np.array(leaves, dtype=np.int64)
    if table[0, 0] < 0:
        raise DataError(
            f"{shown} has a counted row whose {' and '.join(map(repr, levels))} the domain lacks; add "
            "every node to the domain, or leave such rows out with data.where."
        )
    ((excluded,),) = connection.execute(
        "SELECT CAST(coalesce(sum(records), 0) AS BIGINT) FROM tally WHERE NOT kept"
    ).fetchall()
    tree = _tree(plan, paths)
    counts = tree.roll_up(table[:, 1]).astype(np.int64)
    counts.flags.writeable = False
    return CountedTree(tree, counts, int(excluded))


def _tally(connection: Connection, plan: Plan, public: _Public, rows: Table) -> None:
    """Add the counts of one batch to the table `tally`; rows left out are counted together."""
    joined = _joined(plan, public, rows)
    condition = public.condition
    _check_condition(connection, condition, joined, condition.sql)
    names = [f"n{i}" for i in range(len(plan.hierarchy.levels))]
    kept = ", ".join(f"CASE WHEN kept THEN {n} END AS {n}" for n in names)
    ask(
        connection,
        f"INSERT INTO tally SELECT kept, matched OR NOT kept, {kept}, sum(records) FROM (SELECT "
        f"coalesce({condition.sql}, false) AS kept, matched, {_names(plan, joined)}, "
        f"{joined.weight} AS records FROM {joined.sql}) GROUP BY ALL",
        _unreadable(rows),
    )


@contextmanager
def _compacting(connection: Connection, names: str) -> Iterator[None]:
    """Add up partial counts once they are many, so that memory does not grow with the rows."""
    yield
    ((size,),) = connection.execute("SELECT count(*) FROM tally").fetchall()
    if size > _COMPACT:
        connection.execute(
            "CREATE OR REPLACE TEMP TABLE tally AS SELECT kept, matched, "
            f"{names}, CAST(sum(records) AS BIGINT) AS records FROM tally GROUP BY ALL"
        )
