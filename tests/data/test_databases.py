"""Tables of DuckDB and SQLite files: their names, their columns, and rows batch by batch."""

from __future__ import annotations

import sqlite3
from contextlib import suppress

import duckdb
import pytest

from congenial.data import databases
from congenial.data.counts import count
from congenial.data.databases import (
    SqliteTable,
    attach,
    is_database,
    is_sqlite,
    no_table,
    tables_in,
)
from congenial.errors import DataError
from congenial.plan.plan import read_plan
from support.city import make_city


def test_databases_are_known_by_their_ending():
    assert [is_database(s) for s in ("a.db", "A.DUCKDB", "b.sqlite", "c.csv", "d.parquet")] == [
        True,
        True,
        True,
        False,
        False,
    ]


def test_tables_of_a_duckdb_file_are_found_and_read(tmp_path):
    file = tmp_path / "rows.duckdb"
    with duckdb.connect(str(file)) as database:
        database.execute("CREATE TABLE trips AS SELECT range AS zone FROM range(5)")
    with duckdb.connect() as connection:
        assert [name for _, name in tables_in(connection, file, "rows.duckdb")] == ["trips"]
    with duckdb.connect() as connection, pytest.raises(DataError, match="trips"):
        attach(connection, file, "rows.duckdb", "nosuch")
    assert "nosuch" in str(no_table("rows.duckdb", "nosuch", ["trips"]))


@pytest.fixture
def file(tmp_path):
    """Return a database with two tables."""
    path = tmp_path / "rows.db"
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE rows (zone INTEGER, name TEXT)")
        database.executemany("INSERT INTO rows VALUES (?, ?)", [(i, f"n{i}") for i in range(25)])
        database.execute("CREATE TABLE other (a)")
    database.close()
    return path


def test_rows_come_in_batches_in_their_order(file, monkeypatch):
    monkeypatch.setattr(databases, "BATCH", 10)
    table = SqliteTable(file, "rows.db", "rows")
    assert is_sqlite(file)
    assert sorted(table.tables()) == ["other", "rows"]
    assert table.columns() == ["zone", "name"]
    with duckdb.connect() as connection:
        found = [
            connection.execute(f"SELECT name, zone FROM {batch.sql}").fetchall()
            for batch in table.batches(connection, ["name", "zone"])
        ]
    assert [len(batch) for batch in found] == [10, 10, 5]
    assert [row for batch in found for row in batch] == [(f"n{i}", str(i)) for i in range(25)]


def test_a_missing_table_is_refused_with_the_names_of_existing_tables(file, tmp_path):
    with pytest.raises(DataError, match="other"):
        SqliteTable(file, "rows.db", "nosuch").columns()
    (tmp_path / "text.db").write_text("not a database")
    assert not is_sqlite(tmp_path / "text.db")


def test_a_damaged_schema_is_refused(file):
    whole = file.read_bytes()
    spots = [i for i in range(len(whole)) if whole.startswith(b"CREATE TABLE rows", i)]
    for at in range(spots[0] - 20, spots[0] + 45):
        file.write_bytes(whole[:at] + b"\xff" + whole[at + 1 :])
        with suppress(DataError):  # any other error is a fault
            SqliteTable(file, "rows.db", "rows").columns()
    file.write_bytes(whole[: spots[0]] + b"\xff" + whole[spots[0] + 1 :])
    with pytest.raises(DataError, match="cannot be read as a SQLite database"):
        SqliteTable(file, "rows.db", "rows").columns()


def test_a_view_of_another_file_is_refused_as_a_view_and_one_of_its_own_is_read(tmp_path):
    plan = make_city(
        tmp_path,
        data='source = "city.duckdb"\ntable = "VIEW"\n'
        'lookup = { source = "zones.csv", key = "zone_id", on = "zone" }\n',
    )
    rows = str(tmp_path / "rows.csv")
    with duckdb.connect(str(tmp_path / "city.duckdb")) as database:
        database.execute(f"CREATE VIEW outside AS SELECT * FROM read_csv('{rows}')")
        database.execute(f"CREATE TABLE trips AS SELECT * FROM read_csv('{rows}')")
        database.execute("CREATE VIEW inside AS SELECT * FROM trips")
    text = plan.read_text()
    plan.write_text(text.replace("VIEW", "outside"))
    with pytest.raises(DataError, match="the view 'outside' of the database cannot") as told:
        count(read_plan(plan), base=tmp_path)
    assert "store its rows as a table" in str(told.value)
    assert "damaged" not in str(told.value)
    plan.write_text(text.replace("VIEW", "inside"))
    assert count(read_plan(plan), base=tmp_path).counts.sum() > 0
