"""Recognising databases, and messages about missing tables."""

from __future__ import annotations

import duckdb
import pytest

from congenial.data.databases import attach, is_database, no_table, tables_in
from congenial.errors import DataError


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
