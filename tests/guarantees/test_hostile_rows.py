"""Rows that are damaged, ambiguous or far too many end in a sentence."""

from __future__ import annotations

import gzip
import math

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from congenial.data import memory, sources
from congenial.data import public_domain as domain
from congenial.data.counts import count
from congenial.errors import ArgumentError
from support.rows import make_plan, refusal

PLAIN = {"where": None, "lookup": "", "types": "", "domain": "data"}


def plan(source="x.parquet", levels=("k",), **keys):
    """Return a plan of the nodes that the rows name."""
    return make_plan(source, **(PLAIN | {"levels": [*levels]} | keys))


def counts(of, place):
    """Return all counts of a plan."""
    return count(of, base=place).counts.tolist()


def damaged(at):
    """Return CSV in gzip with one bit of the trailer changed: -8 its check sum, -1 its length."""
    raw = bytearray(gzip.compress(b"k\n" + b"a\nb\n" * 1000))
    raw[at] ^= 1
    return bytes(raw)


@pytest.mark.parametrize(
    "content",
    [damaged(-8), damaged(-1), damaged(-8) + gzip.compress(b"a\n"), damaged(-12)],
    ids=["check sum", "length", "first part", "data"],  # the bytes hold the time
)
def test_a_gzip_file_with_a_wrong_check_sum_is_refused(tmp_path, content):
    (tmp_path / "x.csv.gz").write_bytes(content)
    assert "give a whole CSV file" in refusal(lambda: count(plan("x.csv.gz"), base=tmp_path))


def test_gzip_files_of_several_parts_are_read_completely(tmp_path):
    (tmp_path / "x.csv.gz").write_bytes(gzip.compress(b"k\na\n") + gzip.compress(b"b\n"))
    assert counts(plan("x.csv.gz"), tmp_path) == [2, 1, 1]


def test_a_damaged_gzip_file_among_others_is_found(tmp_path):
    for i in range(3):
        (tmp_path / f"x{i}.csv.gz").write_bytes(gzip.compress(b"k\na\n"))
    assert counts(plan("x*.csv.gz"), tmp_path) == [3, 3]
    (tmp_path / "x1.csv.gz").write_bytes(damaged(-8))
    assert "one of its 3 files" in refusal(lambda: count(plan("x*.csv.gz"), base=tmp_path))


@pytest.mark.parametrize("names", [["k", "k"], ["k", "K"], ["k", "other", "other"], ["k ", "k"]])
def test_parquet_columns_of_one_name_are_refused(tmp_path, names):
    columns = [pa.array(["a", "b"])] * len(names)
    pq.write_table(pa.Table.from_arrays(columns, names=names), tmp_path / "x.parquet")
    said = refusal(lambda: count(plan(), base=tmp_path))
    assert "'x.parquet' gives one name to two columns" in said


def test_names_within_columns_may_repeat(tmp_path):
    inner = pa.array([{"k": 1, "v": {"k": 2}}, {"k": 3, "v": {"k": 4}}])
    table = pa.Table.from_arrays(
        [inner, pa.array(["a", "b"]), pa.array([[1, 2], []]), pa.array([[3], None])],
        names=["one", "k", "list", "more"],
    )
    pq.write_table(table, tmp_path / "x.parquet")
    assert counts(plan(), tmp_path) == [2, 1, 1]


def test_frames_with_one_name_in_two_spellings_are_refused(tmp_path):
    two = {"k": ["a"], "K": ["b"]}
    for frame in (pd.DataFrame(two), pl.DataFrame(two), pa.table(two)):
        said = refusal(lambda f=frame: count(plan(), frame=f, base=tmp_path), ArgumentError)
        assert "one name to two columns" in said
    spare = pd.DataFrame({"k": ["a"], "other": ["b"], "OTHER": ["c"]})
    assert count(plan(), frame=spare, base=tmp_path).counts.tolist() == [1, 1]


def test_polars_objects_that_cannot_be_exported_are_refused(tmp_path):
    # the names would be addresses in memory
    frame = pl.DataFrame({"k": [object(), object()]}, schema={"k": pl.Object})
    said = refusal(lambda: count(plan(), frame=frame, base=tmp_path), ArgumentError)
    assert "Python objects" in said


@pytest.mark.parametrize("kind", ["DOUBLE", "FLOAT"])
def test_nan_is_a_missing_value(tmp_path, kind):
    values = f"unnest([1::{kind}, 2, 'nan'::{kind}, 'nan'::{kind}]) AS k"
    with duckdb.connect() as connection:
        connection.execute(f"COPY (SELECT {values}) TO '{tmp_path / 'x.parquet'}'")
    said = refusal(lambda: count(plan(), base=tmp_path))
    assert "without a value in 'k'" in said
    # as the sentence says
    assert counts(plan(where='"k" IS NOT NULL'), tmp_path) == [2, 1, 1]
    # NaN would be the largest number
    assert counts(plan(where="k >= 2"), tmp_path) == [1, 1]


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"k": [1.0, math.nan]}),
        pd.DataFrame({"k": [1, math.nan]}, dtype=object),
        pl.DataFrame({"k": [1.0, math.nan]}),
        pl.LazyFrame({"k": [1.0, math.nan, math.nan]}),
        pa.table({"k": [1.0, math.nan]}),
        pa.table({"k": pa.array([1.0, math.nan]).dictionary_encode()}),
    ],
    ids=["pandas", "objects", "polars", "lazy", "arrow", "dictionary"],
)
def test_nan_is_a_missing_value_in_frames(tmp_path, frame):
    assert "without a value" in refusal(lambda: count(plan(), frame=frame, base=tmp_path))
    kept = count(plan(where='"k" IS NOT NULL'), frame=frame, base=tmp_path)
    assert (kept.counts.tolist(), kept.domain.names[1]) == ([1, 1], "1")


def test_a_text_that_is_typed_as_a_number_may_be_nan(tmp_path):
    (tmp_path / "x.csv").write_text("k,v\na,1\na,NaN\nb,nan\n")
    types = '{ v = "DOUBLE" }'
    assert counts(plan("x.csv", where="v >= 0", types=types), tmp_path) == [1, 1]
    assert counts(plan("x.csv", where="v IS NULL", types=types), tmp_path) == [2, 1, 1]


def test_a_key_that_is_nan_is_a_missing_key(tmp_path):
    with duckdb.connect() as connection:
        rows = "unnest([1::DOUBLE, 2, 'nan'::DOUBLE]) AS zone"
        connection.execute(f"COPY (SELECT {rows}) TO '{tmp_path / 'x.parquet'}'")
        keys = "unnest([1::DOUBLE, 2, 'nan'::DOUBLE]) AS LocationID, unnest(['a','b','c']) AS k"
        connection.execute(f"COPY (SELECT {keys}) TO '{tmp_path / 'zones.parquet'}'")
    (tmp_path / "zones.csv").write_text("LocationID,k\n1,a\n2,b\n")
    lookup = '{{ source = "zones.{}", key = "LocationID", on = "zone" }}'
    one = plan(lookup=lookup.format("csv"), domain="lookup")
    assert "without a value in 'zone'" in refusal(lambda: count(one, base=tmp_path))
    kept = plan(lookup=lookup.format("csv"), where="zone IS NOT NULL", domain="lookup")
    assert counts(kept, tmp_path) == [2, 1, 1]
    other = plan(lookup=lookup.format("parquet"), domain="lookup")
    assert "without a value in its key" in refusal(lambda: count(other, base=tmp_path))


def bomb(place, distinct):
    """Write a million rows as a CSV file that gzip makes small."""
    with duckdb.connect() as connection:
        connection.execute(
            f"COPY (SELECT repeat('x', 200) || range % {distinct} AS v FROM range(1000000)) "
            f"TO '{place / 'x.csv.gz'}' (FORMAT csv, COMPRESSION gzip)"
        )


def test_a_file_that_expands_beyond_memory_is_refused_in_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "allowance", lambda: 200 * 2**20)
    bomb(tmp_path, 10)
    assert counts(plan("x.csv.gz", ["v"]), tmp_path)[0] == 1_000_000
    bomb(tmp_path, 1_000_000)
    assert (tmp_path / "x.csv.gz").stat().st_size < 20e6
    said = refusal(lambda: count(plan("x.csv.gz", ["v"]), base=tmp_path))
    assert "do not fit in memory" in said


def test_a_query_may_take_half_of_the_memory_that_is_free(tmp_path, monkeypatch):
    assert 2**20 < memory.allowance() < 2**50
    (tmp_path / "meminfo").write_text("MemTotal: 99 kB\nMemAvailable:   4096 kB\nCached: 1 kB\n")
    (tmp_path / "max").write_text("max\n")
    monkeypatch.setattr(memory, "_FREE", tmp_path / "meminfo")
    monkeypatch.setattr(memory, "_GROUPS", (tmp_path / "max", tmp_path / "none"))
    assert memory.allowance() == 2048 * 1024
    (tmp_path / "max").write_text("2097152\n")
    assert memory.allowance() == 1024 * 1024
    monkeypatch.setattr(memory, "_FREE", tmp_path / "none")
    monkeypatch.setattr(memory, "_GROUPS", ())
    assert memory.allowance() is None


def test_more_names_than_there_is_room_for_are_refused(tmp_path, monkeypatch):
    (tmp_path / "x.csv").write_text("k\na\nb\nc\nc\n")
    monkeypatch.setattr(domain, "_MOST", 3)
    assert counts(plan("x.csv"), tmp_path) == [4, 1, 1, 2]
    monkeypatch.setattr(domain, "_MOST", 2)
    assert "names more than 2 nodes" in refusal(lambda: count(plan("x.csv"), base=tmp_path))


def test_an_overlong_name_is_refused(tmp_path):
    (tmp_path / "x.csv").write_text(f"k\n{'é' * 1000}\n")
    assert counts(plan("x.csv"), tmp_path) == [1, 1]
    (tmp_path / "x.csv").write_text(f"k\n{'é' * 1001}\n")
    said = refusal(lambda: count(plan("x.csv"), base=tmp_path))
    assert "more than 1,000 characters" in said
    assert "é" not in said
