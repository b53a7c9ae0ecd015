"""Rows to counts: DuckDB counts, and no row is kept in Python.

The lookup and the domain are public; the rows are not. So a message may show values of the lookup,
but only the names of the rows' columns.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import narwhals as nw
import numpy as np

from congenial.data.databases import SqliteTable, attach, is_database, is_sqlite, only_one
from congenial.data.frames import failures, register
from congenial.data.lazy_frames import KEPT, GroupQuery, count_in_place
from congenial.data.public_domain import (
    BLANK,
    BROKEN,
    FOUND,
    LACKING,
    Public,
    check_condition,
    domain_paths,
    joined,
    level_columns,
    on_paths,
    open_public,
    order_nodes,
    rows_below,
    texts_of,
    tree_of,
    unreadable,
)
from congenial.data.row_weights import MOST_RECORDS, records_of_row
from congenial.data.sources import (
    Connection,
    Relation,
    ask,
    ask_columns,
    connect,
    identifier,
    is_empty,
    literal,
    locate,
    open_files,
    with_types,
)
from congenial.domain.tree import Path as NodePath
from congenial.domain.tree import Tree
from congenial.domain.workload import Workload
from congenial.errors import ArgumentError, DataError
from congenial.plan.plan import Plan
from congenial.plan.row_filter import Condition
from congenial.types import IntArray
from congenial.wording import show

# Number of partial counts above which they are added up, to save memory.
_COMPACT = 1_000_000
# `fate` of a counted row whose weight is no whole number.
_UNCOUNTED = "uncounted"


@dataclass(frozen=True, eq=False)
class Counted:
    """The nodes of a tree, or the queries of a table, with their confidential counts."""

    domain: Tree | Workload
    counts: IntArray = field(repr=False)  # Records under each node or query, shape (n,).
    excluded: int = field(repr=False)  # Records that `where` excludes; confidential, too.


def build_domain(plan: Plan, *, base: Path) -> Tree | Workload:
    """Build the domain of a plan; rows are read only if the hierarchy's domain is "data"."""
    if plan.hierarchy.domain == "data":
        return count(plan, base=base).domain
    with connect() as connection:
        first = plan.parts[0]
        public = open_public(connection, first, base)
        return plan.domain(tree_of(first, domain_paths(connection, first, public)))


@dataclass(eq=False)
class RowSource:
    """The rows of a plan and its public domain over one connection; made by `open_source`."""

    connection: Connection
    plan: Plan
    public: Public  # The lookup and the condition.
    known: Sequence[str]  # Columns of the rows.
    shown: str  # The rows, as messages name them.
    batches: Iterable[Relation]  # The rows, read once.
    # The rest of the row filter, if an engine has evaluated a part of it.
    left: Condition | None = None
    # Paths below the root, of one length; rows elsewhere are left out, if any is given.
    within: Sequence[NodePath] = ()
    groups: GroupQuery | None = None  # The query that counts the rows in their engine, if any.
    # Returns rows that are tallied already, as an Arrow table like the table `tally`.
    tallied: Callable[[], Any] | None = None

    @property
    def parts(self) -> tuple[RowSource, ...]:
        """The rows of each table; those of a plan without `tables` are one part."""
        return (self,)

    @cached_property
    def needed(self) -> list[str]:
        """Columns that counting reads; a wrong name in the plan is refused here."""
        if self.tallied is not None:
            return []
        return _needed(self.plan, self.public, self.known, self.shown)

    @cached_property
    def public_domain(self) -> Tree | Workload | None:
        """The domain, read once from public files; None if the nodes come from the rows."""
        if self.plan.hierarchy.domain == "data":
            return None
        paths = domain_paths(self.connection, self.plan, self.public, self.within)
        return self.plan.domain(tree_of(self.plan, paths))

    @property
    def domain(self) -> Tree | Workload:
        """The domain; if the nodes come from the rows, this counts them."""
        return self.counted.domain if self.public_domain is None else self.public_domain

    def places_below(self, depth: int) -> dict[NodePath, int]:
        """Return a bound on the number of leaves below each node of a level of a public domain."""
        return rows_below(self.connection, self.plan, self.public, depth)

    @cached_property
    def counted(self) -> Counted:
        """The confidential counts; the rows are read when first asked for."""
        return _count(self)


@dataclass(eq=False)
class JointSource:
    """The rows of several tables over one public domain, a connection for each."""

    plan: Plan
    parts: tuple[RowSource, ...]

    @cached_property
    def domain(self) -> Workload:
        """The queries of all tables."""
        found = [part.domain for part in self.parts]
        trees = [one.tables[0].geography for one in found if isinstance(one, Workload)]
        first = trees[0]
        if first is None or any(
            tree is None or tree.names != first.names or not tree.same_as(first) for tree in trees
        ):
            raise DataError(
                "the tables of the plan have different places; give all of them the places of "
                "hierarchy.domain, without data.types of its columns."
            )
        return cast(Workload, self.plan.domain(first))

    @cached_property
    def counted(self) -> Counted:
        """The confidential counts of all tables, one after the other as in the domain."""
        found = [part.counted for part in self.parts]
        counts = np.concatenate([one.counts for one in found])
        return Counted(self.domain, counts, sum(one.excluded for one in found))


@contextmanager
def open_source(
    plan: Plan, *, base: Path, frame: object | None = None, within: Sequence[NodePath] = ()
) -> Iterator[RowSource | JointSource]:
    """Open the rows of a plan and its public files, over one connection for each table.

    A plan of several tables takes its frames as a mapping from the name of each table. Of a tree,
    only nodes on the paths `within` and below them are counted, if any is given. The paths have one
    length and begin below the root.
    """
    if not plan.tables:
        with _open(plan, base, frame) as source:
            yield replace(source, within=within)
        return
    frames = dict.fromkeys(plan.tables) if frame is None else frame
    if not isinstance(frames, Mapping) or set(frames) != set(plan.tables):
        raise ArgumentError(
            f"frame is no mapping of {' and '.join(map(repr, plan.tables))} to a dataframe each; "
            "give one for each table of the plan."
        )
    _check_apart(plan, base, frames)
    with ExitStack() as stack:
        parts = [
            stack.enter_context(_open(part, base, frames[name]))
            for name, part in zip(plan.tables, plan.parts, strict=True)
        ]
        yield JointSource(plan, tuple(parts))


def _check_apart(plan: Plan, base: Path, frames: Mapping[str, object | None]) -> None:
    """Refuse a plan two of whose tables count the same rows, whatever their sources are called."""
    seen: list[tuple[str, set[object], str]] = []
    for name, part in zip(plan.tables, plan.parts, strict=True):
        data, frame = part.data, frames[name]
        if frame is None:
            places = [file.stat() for file in locate(base, data.source, "data.source")]
            rows: set[object] = {(place.st_dev, place.st_ino) for place in places}
        else:
            rows = {id(frame)}
        # a database's table may be named with its schema or without it
        table = (data.table or "").casefold() if frame is None else ""
        for other, others, called in seen:
            same = table == called or table.endswith(f".{called}") or called.endswith(f".{table}")
            if rows & others and same:
                raise DataError(
                    f"tables.{name}.rows are those of tables.{other}, so that a record would count "
                    f"in both; name other rows (in a database, with their schema), or count these "
                    f"margins in {other} too."
                )
        seen.append((name, rows, table))


@contextmanager
def _open(plan: Plan, base: Path, frame: object | None) -> Iterator[RowSource]:
    """Open the rows of one table or of a tree."""
    with connect() as connection:
        if frame is not None:
            yield _source_of_frame(connection, plan, base, frame)
            return
        data = plan.data
        files = locate(base, data.source, "data.source")
        if is_database(data.source):
            file, name = only_one(files, "data.source", data.source), str(data.table)
            if is_sqlite(file):
                public = open_public(connection, plan, base)
                table = SqliteTable(file, data.source, name)
                known, shown = table.columns(), f"the table {show(name)}"
                batches = table.batches(connection, _needed(plan, public, known, shown))
                yield RowSource(connection, plan, public, known, shown, batches)
                return
            rows = attach(connection, file, data.source, name)
            public = open_public(connection, plan, base, others=files)
        else:
            public = open_public(connection, plan, base, others=files)
            rows = open_files(connection, files, data.source, "data.source")
        yield RowSource(connection, plan, public, list(rows.columns), rows.shown, [rows])


def _source_of_frame(connection: Connection, plan: Plan, base: Path, frame: Any) -> RowSource:
    known, schema = [], {}
    failed = False
    try:
        wide = nw.from_native(frame)
        schema = dict(wide.collect_schema())
        known = list(schema)
    except (TypeError, nw.exceptions.NarwhalsError):
        pass
    except failures():
        failed = True
    if failed:
        raise DataError(
            f"the query of the frame, a {type(frame).__name__}, is refused by its engine; run it "
            "without congenial to see why."
        )
    if not known or not all(isinstance(name, str) for name in known):
        raise ArgumentError(
            f"frame is a {type(frame).__name__} without named columns; give a dataframe such as "
            "one of pandas, polars, pyarrow, DuckDB, Ibis or PySpark, whose columns have text for "
            "names."
        )
    shown = "the frame"
    public = open_public(connection, plan, base)
    needed = _needed(plan, public, known, shown)
    if len({name.casefold() for name in needed}) < len(needed):
        raise ArgumentError(
            f"{shown} gives one name to two columns that the plan needs; rename one."
        )
    objects = [name for name in needed if schema[name] == nw.Object]
    if objects and wide.implementation.is_polars():
        raise ArgumentError(
            f"the column {objects[0]!r} of {shown} holds Python objects, which polars gives to no "
            "other library; cast it to text or numbers."
        )
    if isinstance(wide, nw.LazyFrame):
        groups = count_in_place(connection, plan, public, wide, needed)
        # the query runs when the rows are first counted, after mistakes of the plan are found
        batches = (groups.collect(connection, shown) for _ in range(1))
        left = groups.condition
        return RowSource(connection, plan, public, known, shown, batches, left, groups=groups)
    table = register(connection, wide.select(needed), needed, shown)
    return RowSource(connection, plan, public, known, shown, [table])


def count(plan: Plan, *, base: Path, frame: object | None = None) -> Counted:
    """Count the rows of a plan's source, or of a dataframe; nodes are in the order of names."""
    with open_source(plan, base=base, frame=frame) as source:
        return source.counted


def check_columns(plan: Plan, *, base: Path, frame: object | None = None) -> None:
    """Refuse what is wrong with the columns that a plan names, as counting does; read no rows."""
    with open_source(plan, base=base, frame=frame) as source:
        for part in source.parts:
            needed = part.needed
            # the others are queries, or read the rows of a SQLite file
            for batch in part.batches if isinstance(part.batches, list) else ():
                rows = _typed(part.plan, batch, needed)
                _weighted(part.connection, part.plan, part.public, rows)


def _needed(plan: Plan, public: Public, known: Sequence[str], shown: str) -> list[str]:
    """Columns of the rows that counting reads; a name that is in no table is refused."""
    lookup = plan.data.lookup
    both = Relation("", dict.fromkeys(known, ""), shown)
    weight = plan.data.weight
    counted = (*plan.hierarchy.levels, *plan.attributes)
    used = {v.casefold() for v in counted} | set(public.condition.columns)
    named = used | ({lookup.on.casefold()} if lookup is not None else set())
    if not named & {c.casefold() for c in known}:
        # the first line is not shown, because it may be a person's row
        raise DataError(
            f"{shown} has none of the columns that the plan names; see that it begins with a "
            "header, and that the plan names its columns as the header does."
        )
    if weight is not None:
        both.check_column(weight, "data.weight")
        used |= {weight.casefold()}
    if lookup is not None and public.lookup is not None:
        both.check_column(lookup.on, "data.lookup.on")
        others = {c.casefold() for c in public.lookup.columns} - {lookup.on.casefold()}
        for column in known:
            if column.casefold() in used & others:
                raise DataError(
                    f"the column {column!r} is both in {shown} and in the lookup, so the plan may "
                    "mean either; rename it in one of the two."
                )
        used |= {lookup.on.casefold()}
        whole = both.columns | public.lookup.columns
        both = replace(both, columns=whole, shown=f"{shown} with {public.lookup.shown}")
    for key, columns in (
        ("hierarchy.levels", plan.hierarchy.levels),
        ("table.attributes", plan.attributes),
        ("data.types", plan.data.types or {}),
    ):
        for column in columns:
            both.check_column(column, key)
    public.condition.check_columns(tuple(both.columns), both.shown)
    return [c for c in known if c.casefold() in used]


def _count(source: RowSource) -> Counted:
    """Count batches of rows, one after the other, and set the counts on what the plan counts."""
    connection, plan, shown = source.connection, source.plan, source.shown
    needed, domain, columns = source.needed, source.public_domain, level_columns(plan)
    fill_tally(source, needed)
    check_tally(connection, plan, shown, some=not source.within)
    if domain is None:
        ask(
            connection,
            f"CREATE TEMP TABLE domain AS SELECT DISTINCT fate, {', '.join(columns)} FROM tally "
            "WHERE kept",
            BROKEN,
        )
        domain = plan.domain(tree_of(plan, order_nodes(connection, plan, shown, public=False)))
    same = " AND ".join(f"ordered.{c} = tally.{c}" for c in columns) or "true"
    values = "".join(f", a{i}" for i in range(len(plan.attributes)))
    ask(
        connection,
        f"CREATE TEMP TABLE counted AS SELECT leaf{values}, CAST(records AS BIGINT) AS records "
        f"FROM tally LEFT JOIN ordered ON {same} WHERE kept",
        BROKEN,
    )
    if ask(connection, "SELECT 1 FROM counted WHERE leaf IS NULL LIMIT 1", BROKEN):
        raise DataError(
            f"{shown} has a counted row whose {' and '.join(map(repr, plan.hierarchy.levels))} the "
            "domain lacks; add every node to the domain, or leave such rows out with data.where."
        )
    found = _cells(connection, plan, domain, shown)
    left_out = ask(connection, "SELECT coalesce(sum(records), 0) FROM tally WHERE NOT kept", BROKEN)
    counts = domain.roll_up(found).astype(np.int64)
    counts.flags.writeable = False
    return Counted(domain, counts, int(left_out[0][0]))


def fill_tally(source: RowSource, needed: Collection[str]) -> None:
    """Count the rows by what the plan counts, into the table `tally`; read the columns `needed`."""
    connection, plan, public = source.connection, source.plan, source.public
    if source.left is not None:
        public = replace(public, condition=source.left)
    names = _counted_by(plan)
    typed = ", ".join(f"{c} VARCHAR" for c in names)
    shape = f"(kept BOOLEAN, fate VARCHAR, {typed}, records HUGEINT)"
    ask(connection, f"CREATE OR REPLACE TEMP TABLE tally {shape}", BROKEN)
    if source.tallied is not None:
        connection.register("tallied", source.tallied())
        used = f"kept, fate, {', '.join(names)}"
        rows = f"SELECT {used}, sum(records) FROM tallied GROUP BY ALL"
        ask(connection, f"INSERT INTO tally {rows}", BROKEN)
        return
    for batch in source.batches:
        if is_empty(connection, batch, unreadable(batch)):
            continue
        _tally(connection, plan, public, _typed(plan, batch, needed), source.within)


def _typed(plan: Plan, batch: Relation, needed: Collection[str]) -> Relation:
    """The columns of a batch that are needed, with the types that the plan gives them."""
    kept = {c: k for c, k in batch.columns.items() if c in needed or c == KEPT}
    return with_types(replace(batch, columns=kept), plan.data.types or {})


def _counted_by(plan: Plan) -> dict[str, str]:
    """Columns by which rows are counted, by their names in the table `tally`: attributes last."""
    return level_columns(plan) | {f"a{i}": name for i, name in enumerate(plan.attributes)}


def _cells(connection: Connection, plan: Plan, domain: Tree | Workload, shown: str) -> IntArray:
    """Count the records of every leaf, or of every possible cell at every leaf."""
    sql, places = "FROM counted", ["leaf"]
    for i, (attribute, values) in enumerate(plan.attributes.items()):
        listed = ", ".join(f"({literal(value)}, {at})" for at, value in enumerate(values))
        sql += f" LEFT JOIN (VALUES {listed}) AS v{i}(name, place) ON v{i}.name = counted.a{i}"
        places.append(f"v{i}.place")
        if ask(connection, f"SELECT 1 {sql} WHERE v{i}.place IS NULL LIMIT 1", BROKEN):
            raise DataError(
                f"{shown} has a counted row without a value in {attribute!r}, or with one that "
                "table.attributes lacks; add every value there, or leave such rows out with "
                "data.where."
            )
    leaf, *cell, records = ask_columns(
        connection, f"SELECT {', '.join(places)}, records {sql}", BROKEN
    )
    possible = np.ones((domain.leaves.size, 1), dtype=np.bool_)
    if isinstance(domain, Workload):
        possible = domain.tables[0].possible
    counts = np.zeros(possible.shape, dtype=np.int64)
    sizes = [len(values) for values in plan.attributes.values()]
    at = np.ravel_multi_index(tuple(cell), sizes) if cell else np.zeros_like(leaf)
    np.add.at(counts, (leaf, at), records)  # batches of rows may each have counted a cell
    if counts[~possible].any():
        raise DataError(
            f"{shown} has a counted row in a cell that table.impossible says no record can be in; "
            "correct the rows or the condition, or leave such rows out with data.where."
        )
    return counts[possible]


def _tally(
    connection: Connection, plan: Plan, public: Public, rows: Relation, within: Sequence[NodePath]
) -> None:
    """Add the counts of one batch to the table `tally`; rows left out are counted together.

    With TRY, a row on which the row filter fails is left out, so that no record decides whether the
    others are counted.
    """
    whole, records = _weighted(connection, plan, public, rows)
    condition, names = public.condition, _counted_by(plan)
    fate = f"CASE WHEN records IS NULL THEN '{_UNCOUNTED}' ELSE fate END"
    columns = {"fate": fate} | {n: n for n in names}
    kept = ", ".join(f"CASE WHEN kept THEN {sql} END AS {n}" for n, sql in columns.items())
    ask(
        connection,
        f"INSERT INTO tally SELECT kept, {kept}, sum(records) FROM (SELECT "
        f"coalesce(TRY({condition.sql}), false) AS kept, fate, {texts_of(names, whole)}, "
        f"{records} AS records FROM {whole.sql} WHERE {on_paths(plan, within, whole)}) "
        f"WHERE records IS DISTINCT FROM 0 GROUP BY ALL",
        unreadable(rows),
    )
    if ask(connection, "SELECT count(*) FROM tally", BROKEN)[0][0] > _COMPACT:
        ask(
            connection,
            f"CREATE OR REPLACE TEMP TABLE tally AS SELECT kept, fate, {', '.join(names)}, "
            "CAST(sum(records) AS HUGEINT) AS records FROM tally GROUP BY ALL",
            BROKEN,
        )


def _weighted(
    connection: Connection, plan: Plan, public: Public, rows: Relation
) -> tuple[Relation, str]:
    """Rows with the lookup's columns, and SQL for the number of records of each; types fit."""
    whole, condition = joined(plan, public, rows), public.condition
    check_condition(connection, condition, whole, condition.sql)
    records = whole.weight
    if plan.data.weight is not None:
        records += f" * {records_of_row(plan.data.weight, rows)}"
    return whole, records


def check_tally(connection: Connection, plan: Plan, shown: str, *, some: bool) -> None:
    """Refuse rows without a key or a level, and no rows if `some` must be; show no row's value."""
    if some and not ask(connection, "SELECT 1 FROM tally LIMIT 1", BROKEN):
        raise DataError(f"{shown} holds no rows; give it at least one.")
    fates = {r[0] for r in ask(connection, "SELECT DISTINCT fate FROM tally WHERE kept", BROKEN)}
    weight = plan.data.weight
    if _UNCOUNTED in fates:
        raise DataError(
            f"{shown} has a counted row whose {weight!r} (data.weight) is no whole number from 0 "
            f"to {MOST_RECORDS}; correct it, or leave such rows out with data.where on another "
            "column."
        )
    above = f"SELECT sum(records) > {MOST_RECORDS} FROM tally"
    if weight is not None and ask(connection, above, BROKEN)[0][0]:
        raise DataError(
            f"the column {weight!r} of {shown} (data.weight) adds up to more than "
            f"{MOST_RECORDS:,} records; correct it, or name another column."
        )
    lookup = plan.data.lookup
    if lookup is not None and LACKING in fates:
        raise DataError(
            f"{shown} has a counted row whose {lookup.on!r} the lookup lacks; add every key to the "
            "lookup, or leave such rows out with data.where."
        )
    blank = lookup.on if lookup is not None and BLANK in fates else None
    for i, level in enumerate(plan.hierarchy.levels):
        where = f"kept AND fate = '{FOUND}' AND n{i} IS NULL"
        if blank is None and ask(connection, f"SELECT 1 FROM tally WHERE {where} LIMIT 1", BROKEN):
            blank = level
    if blank is not None:
        other = ", or with one that data.types does not allow" if plan.data.types else ""
        where = f"{identifier(blank)} IS NOT NULL"
        raise DataError(
            f"{shown} has a counted row without a value in {blank!r}{other}; fill it in, or leave "
            f"such rows out, under [data]: where = {where!r}."
        )
