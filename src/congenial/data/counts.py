"""Rows to counts: DuckDB counts, and no row is kept in Python.

The lookup and the domain are public; the rows are not. So a message may show values of the lookup,
but only the names of the rows' columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import duckdb
import narwhals as nw
import numpy as np

from congenial.data.databases import attach, is_database
from congenial.data.public_domain import (
    BLANK,
    BROKEN,
    FOUND,
    LACKING,
    Public,
    check_condition,
    domain_paths,
    joined,
    level_names,
    open_public,
    order_nodes,
    tree_of,
    unreadable,
)
from congenial.data.row_weights import MOST_RECORDS, records_of_row
from congenial.data.sources import (
    Connection,
    Relation,
    ask,
    connect,
    describe,
    identifier,
    is_empty,
    locate,
    open_files,
    weighted,
    with_types,
)
from congenial.data.sqlite import SqliteTable, is_sqlite
from congenial.domain.tree import Tree
from congenial.errors import ArgumentError, DataError
from congenial.plan.plan import Plan
from congenial.types import IntArray
from congenial.wording import show

# Most partial counts in memory before they are added up.
_COMPACT = 1_000_000
_WEIGHT = "records of one row"
# Fate of a counted row whose weight is no whole number.
_UNCOUNTED = "uncounted"


@dataclass(frozen=True, eq=False)
class CountedTree:
    """A tree and the confidential count of each node."""

    tree: Tree
    counts: IntArray = field(repr=False)  # shape (n,): Rows counted under each node.
    # Number of rows that `where` excluded; it is confidential, too.
    excluded: int = field(repr=False)


def build_tree(plan: Plan, *, base: Path) -> Tree:
    """Build the tree of a plan's domain; rows are read only if the domain is "data"."""
    if plan.hierarchy.domain == "data":
        return count(plan, base=base).tree
    with connect() as connection:
        public = open_public(connection, plan, base)
        return tree_of(plan, domain_paths(connection, plan, public))


@dataclass(eq=False)
class RowSource:
    """The rows of a plan and its public domain over one connection; made by `open_source`."""

    connection: Connection
    plan: Plan
    public: Public  # The lookup and the condition.
    known: Sequence[str]  # Columns of the rows.
    shown: str  # The rows, as messages name them.
    batches: Iterable[Relation]  # The rows, read once.

    @cached_property
    def needed(self) -> list[str]:
        """Columns that counting reads; a wrong name in the plan is refused here."""
        return _needed(self.plan, self.public, self.known, self.shown)

    @cached_property
    def domain(self) -> Tree | None:
        """The tree of a public domain, read once; None if the nodes come from the rows."""
        if self.plan.hierarchy.domain == "data":
            return None
        return tree_of(self.plan, domain_paths(self.connection, self.plan, self.public))

    @property
    def tree(self) -> Tree:
        """The tree of the domain; if the nodes come from the rows, this counts them."""
        return self.counted.tree if self.domain is None else self.domain

    @cached_property
    def counted(self) -> CountedTree:
        """The tree and its confidential counts; the rows are read when first asked for."""
        return _count(self)


@contextmanager
def open_source(plan: Plan, *, base: Path, frame: object | None = None) -> Iterator[RowSource]:
    """Open the rows of a plan and its public files over one connection."""
    with connect() as connection:
        if frame is not None:
            yield _source_of_frame(connection, plan, base, frame)
            return
        data = plan.data
        files = locate(base, data.source, "data.source")
        if not is_database(data.source):
            public = open_public(connection, plan, base, others=files)
            rows = open_files(connection, files, data.source, "data.source")
            yield RowSource(connection, plan, public, list(rows.columns), rows.shown, [rows])
            return
        if len(files) > 1:
            raise DataError(
                f"data.source is {show(data.source)}, which {len(files)} databases match; name one."
            )
        name = str(data.table)
        if not is_sqlite(files[0]):
            rows = attach(connection, files[0], data.source, name)
            public = open_public(connection, plan, base, others=files)
            yield RowSource(connection, plan, public, list(rows.columns), rows.shown, [rows])
            return
        public = open_public(connection, plan, base)
        table = SqliteTable(files[0], data.source, name)
        known, shown = table.columns(), f"the table {show(name)}"
        batches = table.batches(connection, _needed(plan, public, known, shown))
        yield RowSource(connection, plan, public, known, shown, batches)


def _source_of_frame(connection: Connection, plan: Plan, base: Path, frame: Any) -> RowSource:
    try:
        wide = nw.from_native(frame)
        known = wide.collect_schema().names()
    except (TypeError, nw.exceptions.NarwhalsError):
        known = []
    if not known or not all(isinstance(name, str) for name in known):
        raise ArgumentError(
            f"frame is a {type(frame).__name__} without named columns; give a dataframe such as "
            "one of pandas, polars, pyarrow or DuckDB, whose columns have text for names."
        )
    shown = "the frame"
    public = open_public(connection, plan, base)
    needed = _needed(plan, public, known, shown)
    if len({name.casefold() for name in needed}) < len(needed):
        raise ArgumentError(
            f"{shown} gives one name to two columns that the plan needs; rename one."
        )
    table = _register(connection, wide.select(needed), needed, shown)
    return RowSource(connection, plan, public, known, shown, [table])


def count(plan: Plan, *, base: Path, frame: object | None = None) -> CountedTree:
    """Count the rows of a plan's source, or of a dataframe; see `open_source` for errors.

    Notes
    -----
    Nodes are in the order of their names: numbers first, by value. A node comes before its
    children.
    """
    with open_source(plan, base=base, frame=frame) as source:
        return source.counted


def _register(
    connection: Connection,
    frame: nw.DataFrame[Any] | nw.LazyFrame[Any],
    names: list[str],
    shown: str,
) -> Relation:
    if not frame.implementation.is_polars() and find_spec("pyarrow") is None:
        raise ArgumentError(
            f"a frame of {frame.implementation} is counted through Arrow; install pyarrow."
        )
    objects = [name for name in names if frame.collect_schema()[name] == nw.Object]
    if objects and frame.implementation.is_polars():
        raise ArgumentError(
            f"the column {objects[0]!r} of {shown} holds Python objects, which polars gives to no "
            "other library; cast it to text or numbers."
        )
    unfit = f"a column of {shown} cannot be given to Arrow; give each column values of one type"
    failed = False
    try:
        if isinstance(frame, nw.LazyFrame):
            # the backend counts first, so that a long frame is never collected whole
            frame = frame.group_by(names).agg(nw.len().alias(_WEIGHT)).collect()
        connection.register("frame", _with_text(frame, names))
    except (
        duckdb.Error,
        nw.exceptions.NarwhalsError,
        ValueError,
        TypeError,
        NotImplementedError,
        OverflowError,
    ):
        failed = True  # these texts may quote a cell
    if failed:
        raise DataError(f"{unfit}.")
    table = describe(connection, "frame", shown, unfit)
    return weighted(table, _WEIGHT) if _WEIGHT in table.columns else table


def _with_text(frame: nw.DataFrame[Any], names: Sequence[str]) -> nw.DataFrame[Any]:
    """Turn pandas columns of objects into text, value by value.

    Arrow would guess the type of such a column from its values, so that one record would decide
    how the others are read.
    """
    if not frame.implementation.is_pandas_like():
        return frame
    native = frame.to_native()
    for name in names:
        column = native[name]
        if str(getattr(column.dtype, "categories", column).dtype) == "object":
            texts = column.astype(object).map(_text, na_action="ignore")
            native = native.assign(**{name: texts.astype("string")})
    return nw.from_native(native, eager_only=True)


def _text(value: object) -> str:
    """Write a value as text; integers without a decimal point."""
    return str(int(value) if isinstance(value, float) and value.is_integer() else value)


def _needed(plan: Plan, public: Public, known: Sequence[str], shown: str) -> list[str]:
    """Columns of the rows that counting reads; a name that is in no table is refused."""
    lookup = plan.data.lookup
    both = Relation("", dict.fromkeys(known, ""), shown)
    weight = plan.data.weight
    used = {v.casefold() for v in plan.hierarchy.levels} | set(public.condition.columns)
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
    for level in plan.hierarchy.levels:
        both.check_column(level, "hierarchy.levels")
    for column in plan.data.types or {}:
        both.check_column(column, "data.types")
    public.condition.check_columns(tuple(both.columns), both.shown)
    return [c for c in known if c.casefold() in used]


def _count(source: RowSource) -> CountedTree:
    """Count batches of rows, one after the other, and set the counts on the domain's tree."""
    connection, plan, shown = source.connection, source.plan, source.shown
    needed, tree = source.needed, source.domain
    columns = [f"n{i}" for i in range(len(plan.hierarchy.levels))]
    names = ", ".join(columns)
    typed = ", ".join(f"{c} VARCHAR" for c in columns)
    shape = f"(kept BOOLEAN, fate VARCHAR, {typed}, records HUGEINT)"
    ask(connection, f"CREATE TEMP TABLE tally {shape}", BROKEN)
    for batch in source.batches:
        if is_empty(connection, batch, unreadable(batch)):
            continue
        used = replace(batch, columns={c: batch.columns[c] for c in needed})
        _tally(connection, plan, source.public, with_types(used, plan.data.types or {}))
    _check_tally(connection, plan, shown)
    if tree is None:
        ask(
            connection,
            f"CREATE TEMP TABLE domain AS SELECT DISTINCT fate, {names} FROM tally WHERE kept",
            BROKEN,
        )
        tree = tree_of(plan, order_nodes(connection, plan, shown, public=False))
    same = " AND ".join(f"ordered.{c} = counted.{c}" for c in columns)
    leaves = ask(
        connection,
        f"SELECT coalesce(leaf, -1), coalesce(records, 0) FROM ordered FULL JOIN (SELECT {names}, "
        f"CAST(sum(records) AS BIGINT) AS records FROM tally WHERE kept GROUP BY {names}) AS "
        f"counted ON {same} ORDER BY 1",
        BROKEN,
    )
    if leaves[0][0] < 0:
        raise DataError(
            f"{shown} has a counted row whose {' and '.join(map(repr, plan.hierarchy.levels))} the "
            "domain lacks; add every node to the domain, or leave such rows out with data.where."
        )
    left_out = ask(connection, "SELECT coalesce(sum(records), 0) FROM tally WHERE NOT kept", BROKEN)
    counts = tree.roll_up(np.array([n for _, n in leaves], dtype=np.int64)).astype(np.int64)
    counts.flags.writeable = False
    return CountedTree(tree, counts, int(left_out[0][0]))


def _tally(connection: Connection, plan: Plan, public: Public, rows: Relation) -> None:
    """Add the counts of one batch to the table `tally`; rows left out are counted together.

    With TRY, a row on which the row filter fails is left out, so that no record decides whether the
    others are counted.
    """
    whole, condition = joined(plan, public, rows), public.condition
    check_condition(connection, condition, whole, condition.sql)
    names = [f"n{i}" for i in range(len(plan.hierarchy.levels))]
    fate = f"CASE WHEN records IS NULL THEN '{_UNCOUNTED}' ELSE fate END"
    columns = {"fate": fate} | {n: n for n in names}
    kept = ", ".join(f"CASE WHEN kept THEN {sql} END AS {n}" for n, sql in columns.items())
    records = whole.weight
    if plan.data.weight is not None:
        records += f" * {records_of_row(plan.data.weight, rows)}"
    ask(
        connection,
        f"INSERT INTO tally SELECT kept, {kept}, sum(records) FROM (SELECT "
        f"coalesce(TRY({condition.sql}), false) AS kept, fate, {level_names(plan, whole)}, "
        f"{records} AS records FROM {whole.sql}) WHERE records IS DISTINCT FROM 0 GROUP BY ALL",
        unreadable(rows),
    )
    if ask(connection, "SELECT count(*) FROM tally", BROKEN)[0][0] > _COMPACT:
        ask(
            connection,
            f"CREATE OR REPLACE TEMP TABLE tally AS SELECT kept, fate, {', '.join(names)}, "
            "CAST(sum(records) AS HUGEINT) AS records FROM tally GROUP BY ALL",
            BROKEN,
        )


def _check_tally(connection: Connection, plan: Plan, shown: str) -> None:
    """Refuse an empty table, and rows without a key or a level; no value of a row is shown."""
    if not ask(connection, "SELECT 1 FROM tally LIMIT 1", BROKEN):
        raise DataError(f"{shown} holds no rows; give it at least one.")
    fates = {r[0] for r in ask(connection, "SELECT DISTINCT fate FROM tally WHERE kept", BROKEN)}
    weight = plan.data.weight
    if _UNCOUNTED in fates:
        raise DataError(
            f"{shown} has a counted row whose {weight!r} (data.weight) is no whole number from 0 "
            f"to {MOST_RECORDS}; mend it, or leave such rows out with data.where on another "
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
            f"{shown} has a counted row without a value in {blank!r}{other}; mend it, or leave "
            f"such rows out, under [data]: where = {where!r}."
        )
