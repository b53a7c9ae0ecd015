"""Counts agree with a plain Counter from every source."""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from congenial.data.counts import Counted, build_domain, count, open_source
from congenial.plan.plan import parse_plan
from support.rows import (
    BOROUGH,
    HEADER,
    LOOKUP,
    Row,
    as_csv,
    as_parquet,
    as_sqlite,
    everywhere,
    make_plan,
    write_csv,
)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    write_csv(tmp_path / "zones.csv", ("LocationID", "Borough"), LOOKUP)
    return tmp_path


def as_dict(counted: Counted) -> dict[tuple[str, ...], int]:
    tree = counted.domain
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


@settings(max_examples=6, deadline=None)
@given(rows=ROWS)
def test_every_source_gives_the_counts_of_a_python_counter(
    rows: list[Row], tmp_path_factory: pytest.TempPathFactory
) -> None:
    place = tmp_path_factory.mktemp("rows")
    write_csv(place / "zones.csv", ("LocationID", "Borough"), LOOKUP)
    where = "zone <= 263 AND hour < 12 AND kind <> 'x/y'"
    kept = [r for r in rows if r[0] <= 263 and r[1] < 12 and r[2] != "x/y"]
    expected = {("City", b, str(z)): 0 for z, b in LOOKUP if z <= 263}
    expected |= Counter(("City", BOROUGH[z], str(z)) for z, _, _ in kept)
    types = '{ zone = "BIGINT", hour = "INTEGER" }'
    for name, counted in everywhere(place, rows, where=where, types=types):
        assert as_dict(counted) == expected, name
        assert counted.excluded == len(rows) - len(kept), name
        assert counted.counts[0] == len(kept), name
        assert counted.domain.is_consistent(counted.counts), name
        assert counted.counts.dtype == np.int64, name


@settings(max_examples=6, deadline=None)
@given(rows=ROWS)
def test_a_domain_from_the_data_has_the_values_that_occur(
    rows: list[Row], tmp_path_factory: pytest.TempPathFactory
) -> None:
    place = tmp_path_factory.mktemp("rows")
    keys = {"levels": ["kind", "hour"], "domain": "data", "lookup": "", "where": None}
    expected = Counter(("City", kind, str(hour)) for _, hour, kind in rows)
    paths = None
    for name, counted in everywhere(place, rows, extra="names_repeat = true", **keys):
        assert as_dict(counted) == expected, name
        assert counted.excluded == 0
        found = [counted.domain.path(v) for v in range(len(counted.domain))]
        assert paths is None or found == paths, name
        paths = found


def test_a_small_city(place: Path) -> None:
    rows = [(2, 0, "a"), (2, 5, "a"), (13, 1, "b"), (264, 1, "b"), (265, 1, "b"), (265, 2, "b")]
    source, _ = as_csv(place, rows)
    counted = count(make_plan(source), base=place)
    assert counted.domain.names == (
        *("City", "Bronx", "3", "20", "EWR", "1", "Manhattan", "12", "13", "Queens", "2", "7"),
    )
    assert counted.counts.tolist() == [3, 0, 0, 0, 0, 0, 1, 0, 1, 2, 2, 0]
    assert counted.excluded == 3
    assert "excluded" not in repr(counted)
    assert "counts" not in repr(counted)


def test_the_tree_needs_no_rows(place: Path) -> None:
    tree = build_domain(make_plan("nowhere.parquet"), base=place)
    assert tree.names[:3] == ("City", "Bronx", "3")
    assert tree.leaves.size == 7
    assert build_domain(make_plan("nowhere.parquet", where=None), base=place).leaves.size == 9


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
    assert build_domain(plan, base=place).leaves.size == leaves
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
    assert counted.domain.names == ("City", "a", "1", "9", "10", "b", "11")
    assert counted.counts.tolist() == [3, 2, 0, 2, 0, 1, 1]


def test_a_domain_file_may_use_columns_of_the_lookup(place: Path) -> None:
    write_csv(place / "nodes.csv", ("zone",), [(2,), (7,), (3,)])
    source, _ = as_csv(place, [(7, 9, "a")])
    counted = count(make_plan(source, domain="nodes.csv"), base=place)
    assert counted.domain.names == ("City", "Bronx", "3", "Queens", "2", "7")


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


def test_integers_have_the_same_name_in_every_type(place: Path) -> None:
    plan = make_plan("rows.csv", where="zone IS NOT NULL")
    floats = pd.DataFrame({"zone": [2.0, None, 7.0]})
    assert count(plan, frame=floats, base=place).counts[0] == 2
    decimals = pa.table({"zone": pa.array([2, 7, 7]).cast(pa.decimal128(25, 3))})
    assert count(plan, frame=decimals, base=place).counts[0] == 3
    texts = pl.DataFrame({"zone": ["2", "7", None]})
    assert count(plan, frame=texts, base=place).counts[0] == 2
    groups = pd.DataFrame({"zone": pd.Categorical([2, 7, 2, None])})
    assert count(plan, frame=groups, base=place).counts[0] == 3


@pytest.mark.parametrize("compact", [2, 1_000_000])
def test_sqlite_is_read_in_batches(
    place: Path, monkeypatch: pytest.MonkeyPatch, compact: int
) -> None:
    rows = [(k, None if i % 3 else i % 24, "a") for i, (k, _) in enumerate(LOOKUP * 5)]
    source, named = as_sqlite(place, rows)
    where = "zone <= 263 AND hour IS NULL"
    plan = make_plan(source, where=where, types='{ zone = "BIGINT" }', **named)
    whole = count(plan, base=place)
    monkeypatch.setattr("congenial.data.databases.BATCH", 4)
    monkeypatch.setattr("congenial.data.counts._COMPACT", compact)
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


@pytest.mark.parametrize("kind", ["VARCHAR", "BIGINT", "DOUBLE", "DECIMAL(9, 1)", "DATE"])
def test_rows_on_a_path_are_counted_alone(tmp_path, kind):
    texts = {
        "VARCHAR": "chr(97 + (i % 3)::INT) || chr(39)",
        "DATE": "DATE '2020-01-01' + (i % 3)::INT",
    }
    column = f"CAST({texts.get(kind, 'i % 3')} AS {kind})"
    duckdb.sql(
        f"COPY (SELECT {column} AS upper, i % 7 AS lower FROM range(100) t(i)) "
        f"TO '{tmp_path / 'rows.parquet'}'"
    )
    plan = parse_plan(
        """
        [data]
        source = "rows.parquet"
        [hierarchy]
        root = "r"
        levels = ["upper", "lower"]
        domain = "data"
        names_repeat = true
        [privacy]
        neighbours = "add-remove"
        epsilon = 1.0
        """
    )
    whole = count(plan, base=tmp_path)
    paths = [whole.domain.path(v) for v in range(len(whole.domain))]
    at = np.flatnonzero(whole.domain.level == 1).tolist()
    for some in (at[:1], at[1:2], at[2:], at[:2], at[::2], at):
        within = [paths[v][1:] for v in some]
        with open_source(plan, base=tmp_path, within=within) as source:
            part = source.counted
        below = [u for u in range(len(paths)) if paths[u][1:2] in within]
        assert [part.domain.path(u) for u in range(1, len(part.domain))] == [
            paths[u] for u in below
        ]
        assert part.counts[1:].tolist() == whole.counts[below].tolist()


def test_rows_on_paths_of_two_levels_are_counted_alone(tmp_path):
    # a row of no path has names that lie between theirs
    names = [("a", "x"), ("a", "z"), ("b", "y"), ("c", "x"), ("b", None), (None, "x")]
    listed = ", ".join(
        "({})".format(", ".join("NULL" if name is None else f"'{name}'" for name in path))
        for path in names
    )
    duckdb.sql(
        f"COPY (SELECT upper, middle, i AS lower FROM (VALUES {listed}) t(upper, middle), "
        f"range(3) r(i)) TO '{tmp_path / 'rows.parquet'}'"
    )
    plan = parse_plan(
        """
        [data]
        source = "rows.parquet"
        where = "middle IS NOT NULL AND upper IS NOT NULL"
        [hierarchy]
        root = "r"
        levels = ["upper", "middle", "lower"]
        domain = "data"
        names_repeat = true
        [privacy]
        neighbours = "add-remove"
        epsilon = 1.0
        """
    )
    within = [("a", "x"), ("b", "y"), ("c", "x")]
    with open_source(plan, base=tmp_path, within=within) as source:
        found = source.counted
    tree = found.domain
    assert [tree.path(v)[1:] for v in np.flatnonzero(tree.level == 2)] == within
    assert found.counts[tree.level == 2].tolist() == [3, 3, 3]
