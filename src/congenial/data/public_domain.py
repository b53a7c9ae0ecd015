"""The public side of a plan: its lookup, its condition, and the nodes of its domain.

These are public, unless the domain is "data". Then the nodes come from the counted rows, and no
message shows a name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from congenial.data.sources import (
    Connection,
    Relation,
    ask,
    ask_columns,
    attempt,
    identifier,
    is_empty,
    literal,
    locate,
    name_of,
    no_view,
    open_files,
    restrict,
    with_types,
)
from congenial.domain.names import KIND, Names
from congenial.domain.tree import Path as NodePath
from congenial.domain.tree import Tree
from congenial.errors import DataError
from congenial.plan.fields import refuse
from congenial.plan.plan import Plan
from congenial.plan.row_filter import Condition, parse_where
from congenial.wording import show

# Result of looking up a row's key: the lookup has it, the lookup lacks it, or the row has none.
FOUND, LACKING, BLANK = "found", "lacking", "blank"
# Most nodes of the deepest level; more would need too much memory and time.
_MOST = 20_000_000
# Names of leaves that are fetched at a time.
_AT_ONCE = 1_000_000
# Longest name of a node, in characters; a longer one suggests a wrong column.
_LONGEST = 1_000
# Message for queries over congenial's own tables, which cannot fail because of a row's value.
BROKEN = "the counts could not be added up; please report this as a bug in congenial"


@dataclass(frozen=True, eq=False)
class Paths:
    """Paths of all leaves from the root down, sorted; a name that repeats is left out."""

    apart: npt.NDArray[
        np.int16
    ]  # shape (leaves,): First level whose name differs from the one before.
    names: tuple[Names, ...]  # For each level the names of its nodes, in the order of the leaves.


@dataclass(frozen=True)
class Public:
    """The public part of a domain, known before any row is read."""

    condition: Condition
    lookup: Relation | None  # The plan's lookup.
    domain: Relation | None  # The file that lists the plan's nodes.


def find_files(plan: Plan, base: Path, *, rows: bool) -> None:
    """Check that the files of a plan exist, before any long work."""
    for part in plan.parts:
        if rows or plan.hierarchy.domain == "data":
            locate(base, part.data.source, "data.source")
        _public_files(part, base)


def _public_files(plan: Plan, base: Path) -> dict[str, tuple[str, list[Path]]]:
    """Return the names and the files of the lookup and the domain, by their keys."""
    lookup, domain = plan.data.lookup, plan.hierarchy.domain
    named = {}
    if lookup is not None:
        named["data.lookup.source"] = lookup.source
    if domain not in (None, "lookup", "data"):
        named["hierarchy.domain"] = domain
    return {key: (source, locate(base, source, key)) for key, source in named.items()}


def open_public(
    connection: Connection, plan: Plan, base: Path, *, others: Sequence[Path] = ()
) -> Public:
    """Open the lookup and the domain's file; then only these and `others` can be read."""
    lookup = plan.data.lookup
    named = _public_files(plan, base)
    condition = parse_where(connection, plan.data.where)
    weight = plan.data.weight
    if weight is not None and weight.casefold() in condition.columns:
        # one record would decide whether all others of its row are counted
        refuse(
            "data.where",
            f"is {show(condition.text)}, which names {weight!r}, the column of data.weight; the "
            "guarantee for one record would not hold",
            "compare other columns",
        )
    restrict(connection, [*others, *(f for _, files in named.values() for f in files)])
    types = plan.data.types or {}
    tables = {
        key: with_types(open_files(connection, files, source, key, public=True), types)
        for key, (source, files) in named.items()
    }
    opened = tables.get("data.lookup.source")
    if lookup is not None and opened is not None:
        if lookup.on in types:  # the rows' keys have this type
            opened = with_types(opened, {lookup.key: types[lookup.on]})
        opened = replace(opened, shown=f"the lookup {opened.shown}")
        opened.check_column(lookup.key, "data.lookup.key")
        _check_keys(connection, plan, opened, lookup.key)
    listing = tables.get("hierarchy.domain")
    if listing is not None:
        listing = replace(listing, shown=f"the domain {listing.shown}")
    return Public(condition, opened, listing)


def unreadable(table: Relation) -> str:
    """Return the error for a table that cannot be read to its end."""
    if table.is_view:
        return no_view(table.shown)
    return (
        f"{table.shown} could not be read to its end, since a row does not have the header's "
        "columns or the file is damaged; correct it"
    )


# A column name that no user's table has.
_KEY = '"congenial: key"'


def _check_keys(connection: Connection, plan: Plan, table: Relation, column: str) -> None:
    key = name_of(column, table.columns[column])
    found = ask(
        connection,
        f"SELECT {key}, count(*) FROM {table.sql} GROUP BY 1 "
        f"HAVING {key} IS NULL OR count(*) > 1 ORDER BY 1 NULLS FIRST LIMIT 1",
        unreadable(table),
    )
    if not found:
        return
    name, times = found[0]
    if name is None:
        raise DataError(
            f"{table.shown} has a row without a value in its key {column!r}; fill it in."
        )
    parent = next((v for v in plan.hierarchy.levels if v in table.columns and v != column), None)
    under = ""
    if parent is not None:
        rows = ask(
            connection,
            f"SELECT DISTINCT {name_of(parent, table.columns[parent])} FROM {table.sql} "
            f"WHERE {key} = {literal(str(name))} ORDER BY 1 LIMIT 2",
            unreadable(table),
        )
        under = f", under the {parent} {' and '.join(repr(r[0]) for r in rows)}"
    raise DataError(
        f"{table.shown} lists the {column} {name!r} {times} times{under}; a node has one parent, "
        "so list each key once."
    )


def joined(plan: Plan, public: Public, rows: Relation) -> Relation:
    """Rows with the lookup's columns, and in `fate` the result of looking up their key."""
    lookup, table = plan.data.lookup, public.lookup
    if lookup is None or table is None or lookup.on not in rows.columns:
        return replace(rows, sql=f"(SELECT *, '{FOUND}' AS fate FROM {rows.sql})")
    present = {c.casefold() for c in rows.columns}
    added = {c: k for c, k in table.columns.items() if c.casefold() not in present}
    own = ", ".join(f"r.{identifier(c)}" for c in rows.columns)
    extra = "".join(f", l.{identifier(c)}" for c in added)
    weight = "" if rows.weight == "1" else f", r.{rows.weight}"
    key = name_of(lookup.key, table.columns[lookup.key])
    on = name_of(lookup.on, rows.columns[lookup.on], "r")
    sql = (
        f"(SELECT {own}{extra}{weight}, CASE WHEN l.{_KEY} IS NOT NULL THEN '{FOUND}' "
        f"WHEN {on} IS NULL THEN '{BLANK}' ELSE '{LACKING}' END AS fate FROM {rows.sql} AS r "
        f"LEFT JOIN (SELECT *, {key} AS {_KEY} FROM {table.sql}) AS l ON {on} = l.{_KEY})"
    )
    return replace(rows, sql=sql, columns=rows.columns | added)


def check_condition(
    connection: Connection, condition: Condition, table: Relation, sql: str
) -> None:
    """Refuse a condition that the columns' types do not allow, before reading a row."""
    given = f"is {show(condition.text)}"
    remedy = (
        "compare values of one type and make the whole true or false (columns of CSV and SQLite "
        "files are text unless data.types declares another type)"
    )
    rows = attempt(connection, f"DESCRIBE SELECT TRY({sql}) AS kept FROM {table.sql}")
    # a row of NULLs: every constant is evaluated, and no row of the table is read
    blank = f"(SELECT 1) LEFT JOIN (SELECT * FROM {table.sql} LIMIT 0) ON true"
    if rows is None or attempt(connection, f"SELECT {sql} FROM {blank}") is None:
        types = ", ".join(
            f"{c} {k}" for c, k in table.columns.items() if c.casefold() in condition.columns
        )
        refuse("data.where", f"{given}, which does not fit its columns ({types})", remedy)
    if rows[0][1] != "BOOLEAN":
        refuse("data.where", f"{given}, which gives {rows[0][1]}", remedy)


def level_columns(plan: Plan) -> dict[str, str]:
    """Columns of the levels, by their names n0, n1, ... in congenial's own tables."""
    return {f"n{i}": level for i, level in enumerate(plan.hierarchy.levels)}


def texts_of(columns: Mapping[str, str], table: Relation) -> str:
    """SQL for the texts of some of a table's columns, each under its new name."""
    return ", ".join(
        f"{name_of(column, table.columns[column])} AS {name}" for name, column in columns.items()
    )


def on_paths(plan: Plan, within: Sequence[NodePath], table: Relation) -> str:
    """SQL for a table's rows whose first levels have the names of a path `within`; all if none."""
    tests, texts = ["true"], []
    for level, names in zip(plan.hierarchy.levels, zip(*within, strict=True), strict=False):
        kind, low, high = table.columns[level], min(names), max(names)
        # DuckDB skips blocks of a file by a comparison with the column itself
        text = identifier(level) if kind == "VARCHAR" else name_of(level, kind)
        texts.append(text)
        if low == high:
            tests.append(f"{text} = {literal(low)}")
        elif kind == "VARCHAR":
            tests.append(f"{text} >= {literal(low)} AND {text} <= {literal(high)}")
    if len(within) > 1:
        listed = ", ".join(f"({', '.join(map(literal, path))})" for path in within)
        tests.append(f"({', '.join(texts)}) IN (VALUES {listed})")
    return " AND ".join(tests)


def rows_below(
    connection: Connection, plan: Plan, public: Public, depth: int
) -> dict[NodePath, int]:
    """Count the rows of the lookup or file of the domain below each node of a level, by its path.

    A path begins below the root. Rows that the row filter leaves out are counted, too.
    """
    table = _domain_table(plan, public)
    texts = texts_of(dict(list(level_columns(plan).items())[:depth]), table)
    found = ask(
        connection, f"SELECT count(*), {texts} FROM {table.sql} GROUP BY ALL", unreadable(table)
    )
    return {path: int(number) for number, *names in found if None not in (path := tuple(names))}


def _domain_table(plan: Plan, public: Public) -> Relation:
    """The domain's rows; for a lookup also with its key under the name of the rows' column."""
    lookup = plan.data.lookup
    if public.domain is not None:
        return joined(plan, public, public.domain)
    table = public.lookup
    if lookup is None or table is None:
        raise DataError("hierarchy.domain is 'lookup' and the plan has no data.lookup; add one.")
    columns, alias = table.columns, ""
    if lookup.on not in columns:
        alias = f", {identifier(lookup.key)} AS {identifier(lookup.on)}"
        columns = columns | {lookup.on: columns[lookup.key]}
    elif lookup.on != lookup.key:
        raise DataError(
            f"{table.shown} has a column {lookup.on!r} besides its key {lookup.key!r}, and "
            "data.lookup.on names it too; rename it."
        )
    for level in plan.hierarchy.levels:
        if level not in columns:
            table.check_column(level, "hierarchy.levels")  # lists the file's own columns
    sql = f"(SELECT *{alias}, '{FOUND}' AS fate FROM {table.sql})"
    return replace(table, sql=sql, columns=columns)


def domain_paths(
    connection: Connection, plan: Plan, public: Public, within: Sequence[NodePath] = ()
) -> Paths:
    """List the domain's nodes from the lookup or a file; `order_nodes` explains.

    The conjuncts of `where` that name only the domain's columns are applied. Without levels the
    root is the only node, and the only leaf. If paths `within` are given, other nodes are left out,
    except those below.
    """
    if not plan.hierarchy.levels:
        ask(connection, "CREATE TEMP TABLE ordered AS SELECT 0 AS leaf", BROKEN)
        return Paths(np.zeros(1, dtype=np.int16), ())
    table, condition = _domain_table(plan, public), public.condition
    for level in plan.hierarchy.levels:
        table.check_column(level, "hierarchy.levels")
    if is_empty(connection, table, unreadable(table)):
        raise DataError(f"{table.shown} holds no row; list at least one node.")
    part = condition.on(table.columns)
    check_condition(connection, condition, table, part)
    ask(
        connection,
        f"CREATE TEMP TABLE domain AS SELECT DISTINCT fate, {texts_of(level_columns(plan), table)} "
        f"FROM {table.sql} WHERE TRY({part}) AND {on_paths(plan, within, table)}",
        unreadable(table),
    )
    return order_nodes(connection, plan, table.shown, public=True)


def order_nodes(connection: Connection, plan: Plan, shown: str, *, public: bool) -> Paths:
    """Check the table `domain`, number its rows in the table `ordered`, and return them.

    Names that are numbers come first, by value; the others follow as text.
    """
    levels = plan.hierarchy.levels
    columns = list(level_columns(plan))
    fates = {str(r[0]) for r in ask(connection, "SELECT DISTINCT fate FROM domain", BROKEN)}
    lookup = plan.data.lookup
    if lookup is not None and fates & {LACKING, BLANK}:
        raise DataError(
            f"{shown} has a row whose {lookup.on!r} is blank or not in the lookup; add it "
            "to the lookup, or leave it out with data.where."
        )
    for level, column in zip(levels, columns, strict=True):
        if ask(connection, f"SELECT 1 FROM domain WHERE {column} IS NULL LIMIT 1", BROKEN):
            raise DataError(
                f"{shown} has a row without a value in {level!r}; fill it in, or leave such rows "
                "out with data.where."
            )
    for depth in range(1, len(levels)):
        if plan.hierarchy.names_repeat:
            break
        # rows of one fate are different paths already
        whole = len(fates) == 1 and depth == len(levels) - 1
        which = "*" if whole else f"DISTINCT {', '.join(columns[: depth + 1])}"
        paths = f"SELECT {which} FROM domain"
        names = f"SELECT count(DISTINCT {columns[depth]}) FROM domain"
        if ask(connection, f"SELECT ({names}) = (SELECT count(*) FROM ({paths}))", BROKEN)[0][0]:
            continue
        above = f"[{', '.join(columns[:depth])}]"
        found = ask(
            connection,
            f"SELECT {columns[depth]}, min({above}), max({above}) FROM domain GROUP BY 1 "
            f"HAVING min({above}) <> max({above}) ORDER BY 1 LIMIT 1",
            BROKEN,
        )
        if found:
            name, first, last = found[0]
            which = f"the {levels[depth]} {name!r}" if public else f"a {levels[depth]}"
            both = " and ".join(repr("/".join(map(str, path))) for path in (first, last))
            under = f" ({both})" if public else ""
            if _reversed(connection, columns[depth - 1], columns[depth]):
                sorted_levels = _by_names(connection, levels, columns)
                raise DataError(
                    f"{shown} puts {which} under two parents{under}, and every "
                    f"{levels[depth - 1]} has one {levels[depth]}, so that hierarchy.levels seems "
                    "not to go from coarse to fine; give hierarchy.levels = "
                    f"{sorted_levels}, or say hierarchy.names_repeat = true if these are "
                    "different nodes of one name."
                )
            raise DataError(
                f"{shown} puts {which} under two parents{under}; give it one, or say "
                "hierarchy.names_repeat = true if these are different nodes of one name."
            )
    order = ", ".join(f"try_cast({c} AS DOUBLE) NULLS LAST, {c}" for c in columns)
    _check_size(connection, columns, shown)
    above = " ".join(
        f"WHEN {c} IS DISTINCT FROM lag({c}) OVER w THEN {depth}"
        for depth, c in enumerate(columns[:-1])
    )
    apart = f"CASE {above} ELSE {len(columns) - 1} END" if above else "0"
    ask(
        connection,
        f"CREATE TEMP TABLE ordered AS SELECT {', '.join(columns)}, row_number() OVER w - 1 AS "
        f"leaf, CAST({apart} AS SMALLINT) AS apart FROM domain WINDOW w AS (ORDER BY {order})",
        BROKEN,
    )
    ask(connection, "DROP TABLE domain", BROKEN)
    [firsts] = ask_columns(connection, "SELECT apart FROM ordered ORDER BY leaf", BROKEN)
    if not firsts.size:
        raise DataError(
            f"{shown} holds no node{' that meets data.where' if plan.data.where else ''}; a "
            "release needs at least one."
        )
    fetched = (_names(connection, column, at, firsts) for at, column in enumerate(columns))
    return Paths(firsts.astype(np.int16), tuple(fetched))


def _names(
    connection: Connection, column: str, level: int, apart: npt.NDArray[np.integer[Any]]
) -> Names:
    """Fetch the names of a level's nodes, some of which are Python texts at a time."""
    out = np.empty(int((apart <= level).sum()), dtype=KIND)
    end = 0
    for begin in range(0, apart.size, _AT_ONCE):
        [names] = ask_columns(
            connection,
            f"SELECT {column} FROM ordered WHERE apart <= {level} AND leaf >= {begin} AND leaf < "
            f"{begin + _AT_ONCE} ORDER BY leaf",
            BROKEN,
        )
        start, end = end, end + names.size
        out[start:end] = names
    return Names(out)


def _reversed(connection: Connection, upper: str, lower: str) -> bool:
    """Whether every name of a level has one name below it, so that the two seem to be swapped."""
    pairs = f"SELECT DISTINCT {upper}, {lower} FROM domain"
    names = f"SELECT count(DISTINCT {upper}) FROM domain"
    return bool(
        ask(connection, f"SELECT ({names}) = (SELECT count(*) FROM ({pairs}))", BROKEN)[0][0]
    )


def _by_names(connection: Connection, levels: Sequence[str], columns: Sequence[str]) -> list[str]:
    """Order levels by their number of different names, the fewest first."""
    counts = ", ".join(f"count(DISTINCT {column})" for column in columns)
    [sizes] = ask(connection, f"SELECT {counts} FROM domain", BROKEN)
    return [level for _, level in sorted(zip(sizes, levels, strict=True), key=lambda one: one[0])]


def _check_size(connection: Connection, columns: Sequence[str], shown: str) -> None:
    """Refuse too many nodes and too long names."""
    if ask(connection, f"SELECT 1 FROM domain LIMIT 1 OFFSET {_MOST}", BROKEN):
        raise DataError(
            f"{shown} names more than {_MOST:,} nodes of the deepest level, for which neither "
            "memory nor time would suffice; use fewer levels, or group the names in the lookup."
        )
    longer = " OR ".join(f"length({column}) > {_LONGEST}" for column in columns)
    if ask(connection, f"SELECT 1 FROM domain WHERE {longer} LIMIT 1", BROKEN):
        raise DataError(
            f"{shown} has a name of more than {_LONGEST:,} characters; shorten it, and see that "
            "the plan names the right columns."
        )


def tree_of(plan: Plan, paths: Paths) -> Tree:
    """Hang the paths of `order_nodes` under the plan's root.

    The paths are distinct, without empty names, and sorted by node. Every node comes before those
    below it, and these before the next node of its level.
    """
    apart, depth = paths.apart, len(paths.names)
    if not depth:
        return Tree.from_parents(np.array([-1], dtype=np.int64), [plan.hierarchy.root])
    last = np.cumsum(depth - apart, dtype=np.int64)  # number of each path's leaf; the root is 0
    parents = np.full(int(last[-1]) + 1, -1, dtype=np.int64)
    labels = np.empty(parents.size, dtype=KIND)
    labels[0] = plan.hierarchy.root
    above = np.zeros(1, dtype=np.int64)  # nodes of the level above
    inside = np.zeros(apart.size, dtype=np.int32)  # the place among them of each path's node
    for level, names in enumerate(paths.names):
        new = apart <= level
        node = last[new] - (depth - 1 - level)
        parents[node], labels[node] = above[inside[new]], names.array
        above, inside = node, np.cumsum(new, dtype=np.int32) - 1
    return Tree.from_parents(parents, Names(labels))
