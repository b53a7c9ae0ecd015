"""Frames whose rows lie in another engine: it counts them, and only the counts come here.

The engine groups its rows by the columns that the plan uses. DuckDB then reads each group as one
row that stands for its number of records, so that names, lookups and checks are in one place.
Three steps keep the groups few, wherever the engine's result is surely the same as DuckDB's:

- it evaluates the row filter, so that columns of the filter alone are no groups;
- it adds up the column of weights;
- it replaces each key by one key of the same columns in the lookup.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import and_
from typing import Any

import narwhals as nw

from congenial.data.frames import check_arrow, failures, quiet, unfit, with_text
from congenial.data.public_domain import Public
from congenial.data.pushed_filter import Column, translate
from congenial.data.row_weights import MOST_RECORDS
from congenial.data.sources import Connection, Relation, ask_columns, describe, identifier, name_of
from congenial.errors import ArgumentError, CongenialError, DataError
from congenial.plan.plan import Plan
from congenial.plan.row_filter import Condition, Conjunct

# Columns of the groups besides the plan's own; no user's table has them.
RECORDS = "congenial: records"
KEPT = "congenial: kept"
# Engines of Ibis that compare numbers and texts as DuckDB does, as tests show.
_ALIKE = ("duckdb", "postgres")
_ORDERED = ("duckdb",)
# A weight is added up in two parts, so that no sum overflows 64 bits.
_PART = 2**26


@dataclass(frozen=True)
class Engine:
    """An engine, by the steps that it takes as DuckDB does."""

    alike: bool  # Whether it compares numbers and texts as DuckDB does.
    ordered_text: bool  # Whether it orders texts by their bytes.
    spark: bool


def engine_of(frame: nw.LazyFrame[Any]) -> Engine:
    """Find the engine of a lazy frame."""
    kind = frame.implementation
    spark = kind.is_pyspark() or kind.is_pyspark_connect()
    if kind.is_ibis():
        name = _backend_of(frame.to_native())
        return Engine(name in _ALIKE, name in _ORDERED, spark=False)
    alike = spark or kind.is_duckdb() or kind.is_polars()
    return Engine(alike, alike, spark)


def _backend_of(table: Any) -> str:
    """Name of an Ibis table's backend; empty where it has none, and counting will fail."""
    try:
        return str(table.get_backend().name)
    except failures():
        return ""


@dataclass(frozen=True)
class GroupQuery:
    """The query of a lazy frame that counts its rows, before it runs."""

    frame: nw.LazyFrame[Any] | None  # Columns k0, k1, ...; None where the groups already are.
    rows: nw.LazyFrame[Any] | None  # The same before the rows are grouped.
    columns: Sequence[str]  # Columns of the rows by which it groups: k0, k1, ...
    condition: Condition  # The part of the row filter that is left for DuckDB.
    weight: str | None  # The plan's column of weights, if the engine adds it up.
    filtered: bool  # Whether the engine evaluates a part of the row filter.

    def collect(self, connection: Connection, shown: str) -> Relation:
        """Run the query, once, and open its groups in DuckDB."""
        failed = False
        if self.frame is None:
            raise AssertionError("the groups are not there yet")
        try:
            with quiet():
                found = self.frame.collect()
            connection.register("groups", with_text(found, found.columns))
        except failures():
            failed = True
        if failed:
            raise DataError(f"{_failing(shown)}.")
        return self.opened(connection, shown)

    def opened(self, connection: Connection, shown: str) -> Relation:
        """Open groups that are registered in DuckDB as `groups`."""
        table = describe(connection, self._renamed(), shown, unfit(shown))
        rest = {name: kind for name, kind in table.columns.items() if name != RECORDS}
        return replace(table, columns=rest, weight=identifier(RECORDS))

    def _renamed(self) -> str:
        """SQL of the groups, with the names of the rows' columns."""
        picks = [f"k{i} AS {identifier(name)}" for i, name in enumerate(self.columns)]
        records = "records"
        if self.weight is not None:
            picks.append(f"CASE WHEN whole THEN 1 END AS {identifier(self.weight)}")
            records = f"CASE WHEN whole THEN CAST(high AS HUGEINT) * {_PART} + low ELSE 1 END"
        if self.filtered:
            picks.append(f"kept AS {identifier(KEPT)}")
        return f"(SELECT {', '.join(picks)}, {records} AS {identifier(RECORDS)} FROM groups)"


def count_in_place(
    connection: Connection, plan: Plan, public: Public, frame: nw.LazyFrame[Any], needed: list[str]
) -> GroupQuery:
    """Write the query that counts a lazy frame's rows; nothing runs yet."""
    check_arrow(frame)
    written = None
    try:
        written = _written(connection, plan, public, frame, needed)
    except CongenialError:
        raise
    except failures():
        pass  # outside the handler, whose error may quote a cell
    if written is None:
        raise DataError(f"{_failing('the frame')}.")
    return written


def _written(
    connection: Connection, plan: Plan, public: Public, frame: nw.LazyFrame[Any], needed: list[str]
) -> GroupQuery:
    engine, schema = engine_of(frame), frame.collect_schema()
    frame = _named(frame, needed, engine)
    types = {c.casefold(): kind for c, kind in (plan.data.types or {}).items()}
    columns = {
        name.casefold(): Column(f"c{i}", schema[name], types.get(name.casefold()))
        for i, name in enumerate(needed)
    }
    pushed, left = _divided(public.condition, columns, engine)
    rest = public.condition if not pushed else _with_flag(public.condition, left)
    if engine.spark:
        frame = _merge_keys(connection, plan, public, frame, columns, left)
    weight = plan.data.weight
    if weight is not None and not _is_number(columns[weight.casefold()], engine):
        weight = None
    used = _used(plan, left) - {"" if weight is None else weight.casefold()}
    groups = [name for name in needed if name.casefold() in used]
    values = {name: nw.col(columns[name.casefold()].name) for name in groups}
    flags = []
    if pushed:
        # the excluded rows are one group, or one for each weight that DuckDB is to read
        kept = nw.when(reduce(and_, pushed)).then(nw.lit(True)).otherwise(nw.lit(False))
        frame, flags = frame.with_columns(kept.alias("kept")), ["kept"]
        values |= {
            name: nw.when(nw.col("kept")).then(value)
            for name, value in values.items()
            if name != plan.data.weight
        }
    picks = [value.alias(f"k{i}") for i, value in enumerate(values.values())]
    keys = [f"k{i}" for i in range(len(picks))] + flags
    if weight is None:
        picked = frame.select(*picks, *flags)
        counted = picked.group_by(*keys).agg(nw.len().alias("records"))
        rows = picked.with_columns(nw.lit(1).alias("records"))
        return GroupQuery(counted, rows, groups, rest, None, bool(pushed))
    frame = _weighted(frame, columns[weight.casefold()].name)
    picked = frame.select(*picks, *flags, "whole", "high", "low")
    added = picked.group_by(*keys, "whole").agg(nw.col("high").sum(), nw.col("low").sum())
    wide = nw.col("high", "low").cast(nw.Int64)
    counted, rows = added.with_columns(wide), picked.with_columns(wide)
    return GroupQuery(counted, rows, groups, rest, weight, bool(pushed))


def _failing(shown: str) -> str:
    return (
        f"a column of {shown} cannot be given to Arrow, or its engine fails to count it; give each "
        "column values of one type, and see that the query runs without congenial"
    )


def _named(frame: nw.LazyFrame[Any], needed: list[str], engine: Engine) -> nw.LazyFrame[Any]:
    """Pick the columns that counting needs, under names that every engine takes: c0, c1, ..."""
    if not engine.spark:
        return frame.select(*(nw.col(c).alias(f"c{i}") for i, c in enumerate(needed)))
    # by place: Spark reads a dot in a name as a field, and takes Zone and zone for one
    native = frame.to_native()
    places = [f"p{i}" for i in range(len(native.columns))]
    if any(native.columns.count(name) > 1 for name in needed):
        raise ArgumentError(
            "the frame gives one name to two columns that the plan needs; rename one."
        )
    place = dict(zip(native.columns, places, strict=True))
    frame = nw.from_native(native.toDF(*places))
    schema = frame.collect_schema()
    picks = []
    for i, name in enumerate(needed):
        value = nw.col(place[name])
        if schema[place[name]] == nw.String:
            value = value.cast(nw.String)  # a text with a collation is compared by its bytes
        picks.append(value.alias(f"c{i}"))
    return frame.select(*picks)


def _divided(
    condition: Condition, columns: dict[str, Column], engine: Engine
) -> tuple[list[nw.Expr], list[Conjunct]]:
    """Divide a row filter into expressions for the engine, and the conjuncts left for DuckDB."""
    pushed, left = [], []
    for conjunct in condition.conjuncts:
        found = None
        if engine.alike and conjunct.columns <= columns.keys():
            found = translate(conjunct.tree, columns, ordered_text=engine.ordered_text)
        if found is None:
            left.append(conjunct)
        else:
            pushed.append(found)
    return pushed, left


def _with_flag(condition: Condition, left: Iterable[Conjunct]) -> Condition:
    """Replace a filter's evaluated conjuncts by the flag of the groups."""
    flag = Conjunct(identifier(KEPT), frozenset((KEPT,)), {})
    return replace(condition, conjuncts=(*left, flag))


def _used(plan: Plan, left: Iterable[Conjunct]) -> set[str]:
    """Columns that DuckDB needs of each group, in lower case."""
    lookup, weight = plan.data.lookup, plan.data.weight
    used = {*plan.hierarchy.levels, *plan.attributes}
    used |= {lookup.on} if lookup is not None else set()
    used |= {weight} if weight is not None else set()
    return {c.casefold() for c in used}.union(*(conjunct.columns for conjunct in left))


def _is_number(column: Column, engine: Engine) -> bool:
    """Whether the engine adds up a column of weights as DuckDB does."""
    kind = column.dtype
    number = kind.is_integer() or kind in (nw.Float32, nw.Float64) or kind.is_decimal()
    return engine.alike and number and column.declared is None


def _weighted(frame: nw.LazyFrame[Any], name: str) -> nw.LazyFrame[Any]:
    """Add to each row whether its weight is a whole number from 0, and the weight in two parts.

    The rule is that of `records_of_row`; a row of weight 0 has no record.
    """
    value = nw.col(name).cast(nw.Float64)
    whole = (value == value.floor()) & (value >= 0) & (value <= MOST_RECORDS)
    flag = nw.when(whole).then(nw.lit(True)).otherwise(nw.lit(False))
    frame = frame.with_columns(flag.alias("whole"))
    records = nw.when(nw.col("whole")).then(value).otherwise(nw.lit(0.0))
    frame = frame.with_columns(records.alias("records"))
    frame = frame.filter(~nw.col("whole") | (nw.col("records") > 0))
    frame = frame.with_columns((nw.col("records") / _PART).floor().alias("high"))
    low = nw.col("records") - nw.col("high") * _PART
    return frame.with_columns(nw.col("high").cast(nw.Int64), low.cast(nw.Int64).alias("low"))


def _merge_keys(
    connection: Connection,
    plan: Plan,
    public: Public,
    frame: nw.LazyFrame[Any],
    columns: dict[str, Column],
    left: Iterable[Conjunct],
) -> nw.LazyFrame[Any]:
    """Replace each key of the rows by one whose columns in the lookup are the same.

    Many keys may lie in one node, such as blocks in a county. Nothing is replaced where the plan
    counts by the rows' key itself.
    """
    lookup, table = plan.data.lookup, public.lookup
    if lookup is None or table is None:
        return frame
    used = {c.casefold() for c in (*plan.hierarchy.levels, *plan.attributes)}
    used = used.union(*(conjunct.columns for conjunct in left))
    key = columns[lookup.on.casefold()]
    text = key.dtype == nw.String
    if (
        lookup.on.casefold() in used
        or key.declared is not None
        or not (text or key.dtype.is_integer())
    ):
        return frame
    value = name_of(lookup.key, table.columns[lookup.key])
    number = f"TRY_CAST({value} AS BIGINT)"
    if not text:  # only a text that a whole number has can be the key of a row
        value = f"CASE WHEN {value} = CAST({number} AS VARCHAR) THEN {number} END"
    alike = [f"CAST({identifier(c)} AS VARCHAR)" for c in table.columns if c.casefold() in used]
    over = f"PARTITION BY {', '.join(alike)}" if alike else ""
    keys, merged = ask_columns(
        connection,
        f"SELECT key, merged FROM (SELECT key, min(key) OVER ({over}) AS merged FROM "
        f"(SELECT *, {value} AS key FROM {table.sql}) WHERE key IS NOT NULL) WHERE key <> merged",
        f"{table.shown} could not be read",
    )
    return frame if not keys.size else _replaced(frame, key.name, keys, merged, text=text)


def _replaced(
    frame: nw.LazyFrame[Any], name: str, keys: Any, merged: Any, *, text: bool
) -> nw.LazyFrame[Any]:
    """Replace values of a Spark frame's column, by a join with a small table."""
    import pyarrow as pa

    kind = pa.string() if text else pa.int64()
    small = pa.table({"key": pa.array(keys, type=kind), "merged": pa.array(merged, type=kind)})
    session = frame.to_native().sparkSession
    joined = frame.with_columns(nw.col(name).cast(nw.String if text else nw.Int64)).join(
        nw.from_native(session.createDataFrame(small)), how="left", left_on=name, right_on="key"
    )
    own = nw.when(~nw.col("merged").is_null()).then(nw.col("merged")).otherwise(nw.col(name))
    return joined.with_columns(own.alias(name)).drop("merged")
