"""Tables of SQLite files: their names, their columns, and their rows batch by batch."""

from __future__ import annotations

import sqlite3

import duckdb
import pytest

from congenial.data import sqlite
from congenial.data.sqlite import SqliteTable, is_sqlite
from congenial.errors import DataError


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
    monkeypatch.setattr(sqlite, "BATCH", 10)
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
