"""Counts agree with a plain Counter from every source, and no failure shows a row."""

from __future__ import annotations

import csv
import gzip
import io
import sqlite3
import subprocess
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from congenial import sources
from congenial.data import CountedTree, build_tree, count, count_frame
from congenial.errors import ArgumentError, CongenialError, DataError, PlanError
from congenial.plan import Plan, parse_plan

LOOKUP = [
    (1, "EWR"),
    (2, "Queens"),
    (3, "Bronx"),
    (7, "Queens"),
    (12, "Manhattan"),
    (13, "Manhattan"),
    (20, "Bronx"),
    (264, "Unknown"),
    (265, "N/A"),
]
BOROUGH = dict(LOOKUP)
Row = tuple[Any, ...]


def make_plan(
    source: str, *, where: str | None = "zone <= 263", extra: str = "", **keys: str
) -> Plan:
    lookup = keys.get("lookup", '{ source = "zones.csv", key = "LocationID", on = "zone" }')
    return parse_plan(
        f'[data]\nsource = "{source}"\n'
        + (f'where = """{where}"""\n' if where is not None else "")
        + (f"lookup = {lookup}\n" if lookup else "")
        + (f'table = "{keys["table"]}"\n' if "table" in keys else "")
        + f'[hierarchy]\nroot = "City"\nlevels = {keys.get("levels", ["Borough", "zone"])}\n'
        f'domain = "{keys.get("domain", "lookup")}"\n{extra}\n'
        '[privacy]\nneighbours = "substitute"\nepsilon = 1.0\n'
    )


def write_csv(file: Path, header: Sequence[str], rows: Sequence[Row]) -> None:
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(header)
    writer.writerows(rows)
    raw = text.getvalue().encode()
    file.write_bytes(gzip.compress(raw) if file.suffix == ".gz" else raw)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    write_csv(tmp_path / "zones.csv", ("LocationID", "Borough"), LOOKUP)
    return tmp_path


HEADER = ("zone", "hour", "kind")


def arrow(rows: Sequence[Row]) -> pa.Table:
    types = (pa.int64(), pa.int32(), pa.string())
    return pa.table(
        {
            name: pa.array([row[i] for row in rows], type=types[i])
            for i, name in enumerate(HEADER[: len(rows[0]) if rows else 3])
        }
    )


def as_csv(place: Path, rows: Sequence[Row]) -> tuple[str, dict[str, str]]:
    write_csv(place / "rows.csv", HEADER, rows)
    return "rows.csv", {}


def as_gzip(place: Path, rows: Sequence[Row]) -> tuple[str, dict[str, str]]:
    write_csv(place / "rows.csv.gz", HEADER, rows)
    return "rows.csv.gz", {}


def as_parquet(place: Path, rows: Sequence[Row]) -> tuple[str, dict[str, str]]:
    with closing(duckdb.connect()) as connection:
        connection.register("t", arrow(rows))
        connection.execute(f"COPY t TO '{place / 'rows.parquet'}'")
    return "rows.parquet", {}


def as_glob(place: Path, rows: Sequence[Row]) -> tuple[str, dict[str, str]]:
    (place / "parts").mkdir(exist_ok=True)
    half = len(rows) // 2
    for name, part in (("one", rows[:half]), ("two", rows[half:])):
        as_parquet(place, part)
        (place / "rows.parquet").rename(place / "parts" / f"{name}.parquet")
    return "parts/*.parquet", {}


def as_duckdb(place: Path, rows: Sequence[Row]) -> tuple[str, dict[str, str]]:
    (place / "rows.duckdb").unlink(missing_ok=True)
    with closing(duckdb.connect(str(place / "rows.duckdb"))) as connection:
        connection.register("t", arrow(rows))
        connection.execute("CREATE TABLE trips AS SELECT * FROM t")
    return "rows.duckdb", {"table": "trips"}


def as_sqlite(place: Path, rows: Sequence[Row]) -> tuple[str, dict[str, str]]:
    (place / "rows.db").unlink(missing_ok=True)
    with closing(sqlite3.connect(place / "rows.db")) as database:
        database.execute("CREATE TABLE trips (zone INTEGER, hour INT, kind TEXT)")
        database.executemany("INSERT INTO trips VALUES (?, ?, ?)", rows)
        database.commit()
    return "rows.db", {"table": "trips"}


FILES = [as_csv, as_gzip, as_parquet, as_glob, as_duckdb, as_sqlite]
FRAMES: dict[str, Callable[[pa.Table], Any]] = {
    "arrow": lambda t: t,
    "pandas": lambda t: t.to_pandas(),
    "polars": pl.from_arrow,
    "polars lazy": lambda t: pl.from_arrow(t).lazy(),
}


def everywhere(place: Path, rows: Sequence[Row], **keys: Any) -> Iterator[tuple[str, CountedTree]]:
    """Count the same rows from every kind of source."""
    for write in FILES:
        source, named = write(place, rows)
        yield write.__name__, count(make_plan(source, **keys, **named), base=place)
    plan = make_plan("rows.csv", **keys)
    for name, make in FRAMES.items():
        yield name, count_frame(make(arrow(rows)), plan, base=place)
    with closing(duckdb.connect()) as connection:
        table = arrow(rows)
        yield "relation", count_frame(connection.from_arrow(table), plan, base=place)


def as_dict(counted: CountedTree) -> dict[tuple[str, ...], int]:
    tree = counted.tree
    return {tree.path(int(v)): int(counted.counts[v]) for v in tree.leaves}


ROWS = st.lists(
    st.tuples(
        st.sampled_from([k for k, _ in LOOKUP]),
        st.integers(0, 23),
        st.sampled_from(["a", "b c", 'é, "q"', "N/A", "x/y", "'"]),
    ),
    min_size=1,
    max_size=40,
)


@settings(max_examples=8, deadline=None)
@given(rows=ROWS)
def test_every_source_counts_like_a_counter(
    rows: list[Row], tmp_path_factory: pytest.TempPathFactory
) -> None:
    place = tmp_path_factory.mktemp("rows")
    write_csv(place / "zones.csv", ("LocationID", "Borough"), LOOKUP)
    where = "zone <= 263 AND hour < 12 AND kind <> 'x/y'"
    kept = [r for r in rows if r[0] <= 263 and r[1] < 12 and r[2] != "x/y"]
    expected = {("City", b, str(z)): 0 for z, b in LOOKUP if z <= 263}
    expected |= Counter(("City", BOROUGH[z], str(z)) for z, _, _ in kept)
    for name, counted in everywhere(place, rows, where=where):
        assert as_dict(counted) == expected, name
        assert counted.excluded == len(rows) - len(kept), name
        assert counted.counts[0] == len(kept), name
        assert counted.tree.is_consistent(counted.counts), name
        assert counted.counts.dtype == np.int64, name


@settings(max_examples=8, deadline=None)
@given(rows=ROWS)
def test_a_domain_from_the_data_is_what_occurs(
    rows: list[Row], tmp_path_factory: pytest.TempPathFactory
) -> None:
    place = tmp_path_factory.mktemp("rows")
    keys = {"levels": ["kind", "hour"], "domain": "data", "lookup": "", "where": None}
    expected = Counter(("City", kind, str(hour)) for _, hour, kind in rows)
    paths = None
    for name, counted in everywhere(place, rows, extra="names_repeat = true", **keys):
        assert as_dict(counted) == expected, name
        assert counted.excluded == 0
        found = [counted.tree.path(v) for v in range(len(counted.tree))]
        assert paths is None or found == paths, name
        paths = found


def test_a_small_city(place: Path) -> None:
    rows = [(2, 0, "a"), (2, 5, "a"), (13, 1, "b"), (264, 1, "b"), (265, 1, "b"), (265, 2, "b")]
    source, _ = as_csv(place, rows)
    counted = count(make_plan(source), base=place)
    assert counted.tree.names == (
        *("City", "Bronx", "3", "20", "EWR", "1", "Manhattan", "12", "13", "Queens", "2", "7"),
    )
    assert counted.counts.tolist() == [3, 0, 0, 0, 0, 0, 1, 0, 1, 2, 2, 0]
    assert counted.excluded == 3
    assert "excluded" not in repr(counted)
    assert "counts" not in repr(counted)


def test_the_tree_needs_no_rows(place: Path) -> None:
    tree = build_tree(make_plan("nowhere.parquet"), base=place)
    assert tree.names[:3] == ("City", "Bronx", "3")
    assert tree.leaves.size == 7
    assert build_tree(make_plan("nowhere.parquet", where=None), base=place).leaves.size == 9


@pytest.mark.parametrize(
    ("where", "leaves"),
    [
        ("hour = 3", 9),
        ("hour = 3 AND zone <= 263", 7),
        ("(zone <= 263 AND (hour < 4 AND Borough <> 'EWR'))", 6),
        ("LocationID <= 263", 7),
        ("zone <= 3 OR hour = 3", 9),
        ("ZONE between 2 and 12 -- a comment", 4),
    ],
)
def test_where_restricts_the_domain_by_the_columns_that_it_has(
    place: Path, where: str, leaves: int
) -> None:
    source, _ = as_parquet(place, [(2, 3, "a")])
    plan = make_plan(source, where=where)
    assert build_tree(plan, base=place).leaves.size == leaves
    assert count(plan, base=place).counts[0] == 1


def test_a_row_whose_condition_is_unknown_is_left_out(place: Path) -> None:
    source, _ = as_parquet(place, [(2, None, "a"), (2, 1, "a")])
    counted = count(make_plan(source, where="hour < 5 AND zone <= 263"), base=place)
    assert (counted.counts[0], counted.excluded) == (1, 1)


def test_a_domain_from_a_file(place: Path) -> None:
    write_csv(place / "nodes.csv", ("kind", "hour"), [("a", 1), ("a", 10), ("a", 9), ("b", 11)])
    source, _ = as_csv(place, [(1, 9, "a"), (1, 9, "a"), (1, 11, "b")])
    keys = {"levels": ["kind", "hour"], "domain": "nodes.csv", "lookup": "", "where": None}
    counted = count(make_plan(source, **keys), base=place)
    assert counted.tree.names == ("City", "a", "1", "9", "10", "b", "11")
    assert counted.counts.tolist() == [3, 2, 0, 2, 0, 1, 1]


def test_a_domain_file_may_lean_on_the_lookup(place: Path) -> None:
    write_csv(place / "nodes.csv", ("zone",), [(2,), (7,), (3,)])
    source, _ = as_csv(place, [(7, 9, "a")])
    counted = count(make_plan(source, domain="nodes.csv"), base=place)
    assert counted.tree.names == ("City", "Bronx", "3", "Queens", "2", "7")


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("kind", ["'", "#", '"', "a;b", "1,5", "|", "\n", "\\", "\t", "-"])
def test_no_cell_decides_how_a_csv_file_is_read(place: Path, kind: str, delimiter: str) -> None:
    with (place / "rows.csv").open("w", newline="") as handle:
        writer = csv.writer(handle, delimiter=delimiter)
        writer.writerows([HEADER, *[(2, 0, kind)] * 3, (7, 0, "a"), *[(2, 1, kind)] * 2])
    counted = count(make_plan("rows.csv"), base=place)
    assert counted.counts[0] == 6
    assert as_dict(counted)[("City", "Queens", "2")] == 5
    assert counted.excluded == 0


def test_keys_keep_their_leading_zeros(place: Path) -> None:
    write_csv(place / "zones.csv", ("LocationID", "Borough"), [("01", "A"), ("02", "A")])
    write_csv(place / "rows.csv", HEADER, [("01", 1, "a"), ("02", 1, "a"), ("01", 1, "a")])
    counted = count(make_plan("rows.csv", where=None), base=place)
    assert as_dict(counted) == {("City", "A", "01"): 2, ("City", "A", "02"): 1}


def test_whole_numbers_are_one_name_in_every_type(place: Path) -> None:
    plan = make_plan("rows.csv", where="zone IS NOT NULL")
    floats = pd.DataFrame({"zone": [2.0, None, 7.0]})
    assert count_frame(floats, plan, base=place).counts[0] == 2
    decimals = pa.table({"zone": pa.array([2, 7, 7]).cast(pa.decimal128(25, 3))})
    assert count_frame(decimals, plan, base=place).counts[0] == 3
    texts = pl.DataFrame({"zone": ["2", "7", None]})
    assert count_frame(texts, plan, base=place).counts[0] == 2
    groups = pd.DataFrame({"zone": pd.Categorical([2, 7, 2, None])})
    assert count_frame(groups, plan, base=place).counts[0] == 3


def test_sqlite_is_read_in_batches(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [(k, None if i % 3 else i % 24, "a") for i, (k, _) in enumerate(LOOKUP * 5)]
    source, named = as_sqlite(place, rows)
    plan = make_plan(source, where="zone <= 263 AND hour IS NULL", **named)
    whole = count(plan, base=place)
    monkeypatch.setattr("congenial.sqlite.BATCH", 4)
    monkeypatch.setattr("congenial.data._COMPACT", 2)
    parts = count(plan, base=place)
    assert parts.counts.tolist() == whole.counts.tolist()
    assert parts.excluded == whole.excluded
    kept = [r for r in rows if r[0] <= 263 and r[1] is None]
    assert whole.counts[0] == len(kept)


def test_the_sources_of_a_name_with_a_pattern_in_it(place: Path) -> None:
    as_csv(place, [(2, 3, "a")])
    odd = "rows [1] it's?.csv"
    (place / "rows.csv").rename(place / odd)
    as_csv(place, [(2, 3, "a"), (3, 3, "a")])
    (place / "rows.csv").rename(place / "rows 1 it's.csv")
    assert count(make_plan(odd), base=place).counts[0] == 1
    assert count(make_plan("rows*.csv"), base=place).counts[0] == 3


# --- mistakes -----------------------------------------------------------------------------------


def refusal(act: Callable[[], object], kind: type[CongenialError] = DataError) -> str:
    with pytest.raises(kind) as caught:
        act()
    message = str(caught.value)
    assert "\n" not in message, message
    assert message.endswith("."), message
    assert ". " not in message, message
    return message


def counting(place: Path, source: str, **keys: Any) -> Callable[[], object]:
    return lambda: count(make_plan(source, **keys), base=place)


def test_missing_files_are_named(place: Path) -> None:
    as_csv(place, [(2, 3, "a")])
    assert "'gone.csv'" in refusal(counting(place, "gone.csv"))
    assert "'gone*.csv'" in refusal(counting(place, "gone*.csv"))
    assert "'gone.duckdb'" in refusal(counting(place, "gone.duckdb", table="t"))
    lookup = '{ source = "gone.csv", key = "a", on = "b" }'
    assert "data.lookup.source" in refusal(counting(place, "rows.csv", lookup=lookup))
    assert "hierarchy.domain" in refusal(counting(place, "rows.csv", domain="gone.csv"))
    (place / "dir.csv").mkdir()
    assert "not a file" in refusal(counting(place, "dir.csv"))
    (place / "void.csv").touch()
    assert "empty file" in refusal(counting(place, "void.csv"))


def test_missing_columns_are_named_with_those_there(place: Path) -> None:
    as_csv(place, [(2, 3, "a")])
    message = refusal(counting(place, "rows.csv", where="hours = 3"))
    assert "data.where" in message
    assert "'hours'" in message
    assert "zone, hour, kind" in message
    message = refusal(counting(place, "rows.csv", levels=["Boro", "zone"]))
    assert "'Boro'" in message
    assert "did you mean 'Borough'?" in message
    lookup = '{ source = "zones.csv", key = "LocationID", on = "PULocationID" }'
    message = refusal(counting(place, "rows.csv", lookup=lookup))
    assert "data.lookup.on names the column 'PULocationID'" in message
    lookup = '{ source = "zones.csv", key = "Location", on = "zone" }'
    message = refusal(counting(place, "rows.csv", lookup=lookup))
    assert "data.lookup.key names the column 'Location'" in message
    assert "LocationID, Borough" in message
    assert "'kind'" in refusal(counting(place, "rows.csv", levels=["Borough", "kind"]))
    (place / "nodes.csv").write_text("zone\n2\n")
    message = refusal(counting(place, "rows.csv", domain="nodes.csv", levels=["kind", "zone"]))
    assert "the domain 'nodes.csv' lacks" in message


def test_missing_tables_are_named_with_those_there(place: Path) -> None:
    for write in (as_duckdb, as_sqlite):
        source, _ = write(place, [(2, 3, "a")])
        message = refusal(counting(place, source, table="trip"))
        assert "data.table is 'trip'" in message
        assert "trips" in message


def test_files_that_are_not_what_they_say(place: Path) -> None:
    for name in ("bad.parquet", "bad.csv.gz", "bad.duckdb", "bad.sqlite"):
        (place / name).write_bytes(b"SQLite format 3\0 7654321 and so on" * 40)
        table = {"table": "t"} if name.endswith(("duckdb", "sqlite")) else {}
        message = refusal(counting(place, name, **table))
        assert name in message
        assert "cannot be" in message
        assert "7654321" not in message


@pytest.mark.parametrize("write", FILES)
def test_an_empty_table(place: Path, write: Callable[..., tuple[str, dict[str, str]]]) -> None:
    source, named = write(place, [])
    assert "holds no rows" in refusal(counting(place, source, **named))


def test_an_empty_frame(place: Path) -> None:
    plan = make_plan("rows.csv")
    for make in FRAMES.values():
        assert "holds no rows" in refusal(
            lambda m=make: count_frame(m(arrow([])), plan, base=place)
        )


def test_rows_that_are_all_left_out_are_counted_as_none(place: Path) -> None:
    source, _ = as_parquet(place, [(264, 3, "a")])
    counted = count(make_plan(source), base=place)
    assert not counted.counts.any()
    assert counted.excluded == 1


def test_a_key_twice_is_a_node_under_two_parents(place: Path) -> None:
    write_csv(place / "zones.csv", ("LocationID", "Borough"), [*LOOKUP, (7, "Bronx")])
    as_csv(place, [(2, 3, "a")])
    message = refusal(counting(place, "rows.csv"))
    assert "'7' 2 times, under the Borough 'Bronx' and 'Queens'" in message


def test_a_node_under_two_parents(place: Path) -> None:
    as_csv(place, [(2, 3, "a"), (2, 3, "b")])
    write_csv(place / "nodes.csv", ("kind", "hour"), [("a", 3), ("b", 3)])
    keys: dict[str, Any] = {"levels": ["kind", "hour"], "lookup": "", "where": None}
    message = refusal(counting(place, "rows.csv", domain="nodes.csv", **keys))
    assert "the hour '3' under two parents ('a' and 'b')" in message
    assert "names_repeat = true" in message
    keys["extra"] = "names_repeat = true"
    counted = count(make_plan("rows.csv", domain="nodes.csv", **keys), base=place)
    assert counted.tree.leaves.size == 2


def test_blanks_in_public_tables_are_refused(place: Path) -> None:
    as_csv(place, [(2, 3, "a")])
    write_csv(place / "zones.csv", ("LocationID", "Borough"), [*LOOKUP, ("", "Bronx")])
    assert "key 'LocationID'" in refusal(counting(place, "rows.csv"))
    write_csv(place / "zones.csv", ("LocationID", "Borough"), [*LOOKUP, (8, "")])
    assert "without a value in 'Borough'" in refusal(counting(place, "rows.csv"))
    write_csv(place / "zones.csv", ("LocationID", "Borough"), LOOKUP)
    write_csv(place / "nodes.csv", ("zone",), [(2,), (99,)])
    message = refusal(counting(place, "rows.csv", domain="nodes.csv"))
    assert "not in the lookup" in message


def test_a_domain_that_where_empties(place: Path) -> None:
    as_csv(place, [(2, 3, "a")])
    assert "no node that meets data.where" in refusal(counting(place, "rows.csv", where="zone < 0"))


def test_a_column_in_both_tables_is_ambiguous(place: Path) -> None:
    frame = pd.DataFrame({"zone": [2], "Borough": ["Bronx"]})
    message = refusal(lambda: count_frame(frame, make_plan("rows.csv"), base=place))
    assert "'Borough' is both in the frame and in the lookup" in message
    frame = pd.DataFrame({"zone": [2], "LocationID": [3]})
    assert count_frame(frame, make_plan("rows.csv"), base=place).counts[0] == 1


@pytest.mark.parametrize(
    "frame", [3, [1, 2], {"zone": [1]}, pd.DataFrame([[1, 2]]), pd.DataFrame()]
)
def test_what_is_no_frame_is_refused(place: Path, frame: object) -> None:
    plan = make_plan("rows.csv")
    message = refusal(lambda: count_frame(frame, plan, base=place), ArgumentError)
    assert type(frame).__name__ in message


@pytest.mark.parametrize(
    "where",
    [
        "zone <=",
        "zone < 3; DROP TABLE domain",
        "zone < 3) OR (hour < 3",
        "zone < 3) GROUP BY (zone",
        "zone < 3 LIMIT 1",
        "zone < 3, hour < 3",
        "zone IN (SELECT 1)",
        "EXISTS (FROM read_text('/etc/hostname'))",
        "count(*) > 1",
        "row_number() OVER () < 5",
        "random() < 0.5",
        "now() > '2022-01-01'",
        "error(kind)",
        "nosuch(zone)",
        "$1 < zone",
        "#1 < 3",
        "COLUMNS(*) > 3",
        "list_filter([1], x -> x > 0) = [1]",
        "zone",
        "zone + 1",
        "zone < 'a' + 1",
        "kind < 3",
        "kind + 1 < 3",
    ],
)
def test_where_is_one_condition_on_one_row(place: Path, where: str) -> None:
    source, _ = as_parquet(place, [(2, 3, "a")])
    message = refusal(counting(place, source, where=where), PlanError)
    assert message.startswith("data.where is ")
    assert where[:40] in message


def test_a_connection_reads_nothing_but_its_files(place: Path) -> None:
    source, _ = as_csv(place, [(2, 3, "a")])
    with sources.connect() as connection:
        sources.restrict(connection, [(place / source).resolve()])
        read = f"SELECT count(*) FROM read_csv('{place / source}')"
        assert connection.execute(read).fetchall() == [(1,)]
        for forbidden in (
            f"SELECT * FROM read_csv('{place / 'zones.csv'}')",
            f"COPY (SELECT 1) TO '{place / 'out.csv'}'",
            "SET enable_external_access = true",
            "INSTALL httpfs",
        ):
            with pytest.raises(duckdb.Error):
                connection.execute(forbidden)


def test_interruption_and_lack_of_memory_are_told_apart() -> None:
    class Failing:
        def __init__(self, error: Exception) -> None:
            self.error = error

        def execute(self, sql: str) -> None:
            raise self.error

    def run(error: Exception) -> None:
        sources.ask(Failing(error), "SELECT 1", "no; do better")  # type: ignore[arg-type]

    for interruption in (RuntimeError("Query interrupted"), duckdb.InterruptException("x")):
        with pytest.raises(KeyboardInterrupt):
            run(interruption)
    assert "memory" in refusal(lambda: run(duckdb.OutOfMemoryException("x")))
    assert refusal(lambda: run(duckdb.ConversionException("x"))) == "no; do better."
    assert refusal(lambda: run(RuntimeError("x"))) == "no; do better."


# --- nothing of a row is shown ------------------------------------------------------------------

KEY, TIMES, WORD = 987654321, 4321, "Sentinel-Street"


def everything_said(error: BaseException | None) -> str:
    """All text that an exception carries, hidden context included."""
    texts = []
    while error is not None:
        texts += [str(error), repr(error), *map(str, getattr(error, "__notes__", ()))]
        texts += traceback.format_exception_only(error)
        texts.append(everything_said(error.__cause__))
        error = error.__context__
    return "\n".join(texts)


def assert_secret(act: Callable[[], object], words: str) -> None:
    with pytest.raises(CongenialError) as caught:
        act()
    said = everything_said(caught.value)
    assert words in said
    for secret in (str(KEY), str(TIMES), WORD):
        assert secret not in said


def test_the_watch_on_secrets_can_fail() -> None:
    def leak() -> None:
        try:
            raise ValueError(WORD)
        except ValueError:
            raise DataError("words") from None

    with pytest.raises(AssertionError):
        assert_secret(leak, "words")


STRAY = [(2, 3, "a")] * 5 + [(KEY, 3, WORD)] * TIMES


def test_a_key_that_the_lookup_lacks_is_not_shown(place: Path) -> None:
    for write in FILES:
        source, named = write(place, STRAY)
        act = counting(place, source, where="kind <> 'x'", **named)
        assert_secret(act, "'zone' the lookup lacks")
    plan = make_plan("rows.csv", where="kind <> 'x'")
    for make in FRAMES.values():
        frame = make(arrow(STRAY))
        assert_secret(lambda f=frame: count_frame(f, plan, base=place), "'zone' the lookup lacks")


def test_a_node_that_the_domain_lacks_is_not_shown(place: Path) -> None:
    write_csv(place / "nodes.csv", ("kind", "hour"), [("a", 3)])
    source, _ = as_csv(place, STRAY)
    keys = {"levels": ["kind", "hour"], "lookup": "", "where": None, "domain": "nodes.csv"}
    assert_secret(counting(place, source, **keys), "the domain lacks")


def test_two_parents_in_the_data_are_not_shown(place: Path) -> None:
    source, _ = as_csv(place, [(KEY, 3, WORD), (KEY, 3, "a")] * TIMES)
    keys = {"levels": ["kind", "zone"], "lookup": "", "where": None, "domain": "data"}
    assert_secret(counting(place, source, **keys), "puts a zone under two parents")


def test_a_blank_level_is_told_without_its_row(place: Path) -> None:
    source, _ = as_parquet(place, [(KEY, None, WORD)] * TIMES)
    keys = {"levels": ["kind", "hour"], "lookup": "", "where": None, "domain": "data"}
    assert_secret(counting(place, source, **keys), "without a value in 'hour'")
    source, _ = as_parquet(place, [(None, 3, WORD)] * TIMES)
    assert_secret(counting(place, source, where=None), "without a value in 'zone'")


def test_a_value_of_another_type_is_not_shown(place: Path) -> None:
    rows: list[Row] = [(2, 3, "a")] * 60_000
    write_csv(place / "rows.csv", HEADER, [*rows, (WORD, 3, "a")])
    assert_secret(counting(place, "rows.csv"), "could not be read to its end")
    write_csv(place / "rows.csv", HEADER, [*rows, (2, 3, "a", WORD, KEY)])
    assert_secret(counting(place, "rows.csv"), "could not be read to its end")
    source, _ = as_parquet(place, [(2, 3, "a"), (2, 3, WORD)])
    act = counting(place, source, where="CAST(kind AS BIGINT) = 3")
    assert_secret(act, "could not be read to its end")


def test_a_mixed_column_of_a_frame_is_not_shown(place: Path) -> None:
    frame = pd.DataFrame({"zone": np.array([2, WORD, KEY, b"x", object], dtype=object)})
    plan = make_plan("rows.csv")
    assert_secret(lambda: count_frame(frame, plan, base=place), "values of one type")


def test_a_relation_that_fails_is_not_shown(place: Path) -> None:
    plan = make_plan("rows.csv")
    with closing(duckdb.connect()) as connection:
        rows = connection.sql(f"SELECT CAST(v AS BIGINT) AS zone FROM (VALUES ('{WORD}')) AS t(v)")
        assert_secret(lambda: count_frame(rows, plan, base=place), "the frame")


def test_sqlite_text_that_is_none_is_not_shown(place: Path) -> None:
    source, named = as_sqlite(place, [(2, 3, "a")])
    with closing(sqlite3.connect(place / source)) as database:
        database.execute(
            "INSERT INTO trips VALUES (2, 3, CAST(? AS TEXT))", [WORD.encode() + b"\xff\xfe"]
        )
        database.commit()
    assert_secret(counting(place, source, where="kind <> 'x'", **named), "SQLite database")


def test_nothing_is_left_on_the_disk(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work = place / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    for variable in ("TMPDIR", "HOME"):
        monkeypatch.setenv(variable, str(work))
    for write in FILES:
        source, named = write(place, [(2, 3, "a")] * 1000)
        before = sorted(place.rglob("*"))
        count(make_plan(source, **named), base=place)
        assert sorted(place.rglob("*")) == before


MEASURE = """
import resource, sys
from pathlib import Path
from congenial.data import count
from congenial.plan import parse_plan
place = Path(sys.argv[1])
counted = count(parse_plan((place / sys.argv[2]).read_text()), base=place)
print(int(counted.counts[0]), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""
PLAN = """
[data]
source = "{}.parquet"
where = "zone < 990"
[hierarchy]
root = "all"
levels = ["zone"]
domain = "data"
[privacy]
neighbours = "substitute"
epsilon = 1.0
"""


def test_memory_stays_flat_as_rows_grow(tmp_path: Path) -> None:
    """Five million rows need about as much as a tenth; held in Python they would need far more."""
    used = {}
    for rows in (500_000, 5_000_000):
        with closing(duckdb.connect()) as connection:
            connection.execute(
                f"COPY (SELECT range % 1000 AS zone, range AS id, hash(range) AS more FROM "
                f"range({rows})) TO '{tmp_path / str(rows)}.parquet'"
            )
        (tmp_path / f"{rows}.toml").write_text(PLAN.format(rows))
        done = subprocess.run(
            [sys.executable, "-c", MEASURE, str(tmp_path), f"{rows}.toml"],
            capture_output=True,
            text=True,
            check=True,
        )
        total, used[rows] = map(int, done.stdout.split())
        assert total == rows * 0.99
        assert not done.stderr
    assert used[5_000_000] < used[500_000] + 64  # MiB; one column of integers is 38, as objects 190
