"""Lazy frames are counted by their own engine, with the result of DuckDB on the same rows."""

from __future__ import annotations

import duckdb
import numpy as np
import polars as pl
import pytest

from support.random_plans import draw_case, outcome


def as_relation(rows):
    connection = duckdb.connect()
    connection.register("rows", rows)
    return connection.sql("FROM rows")


def as_ibis(rows):
    ibis = pytest.importorskip("ibis", reason="Ibis is not installed")
    backend = ibis.duckdb.connect()
    backend.con.register("given", rows)
    backend.con.execute("CREATE TABLE rows AS FROM given")
    return backend.table("rows")


ENGINES = {
    "relation": as_relation,
    "polars": lambda rows: pl.from_arrow(rows).lazy(),
    "ibis": as_ibis,
}


# Ibis 12 calls a method that DuckDB 2.0 deprecates.
@pytest.mark.filterwarnings(r"ignore:fetch_arrow_table\(\) is deprecated:DeprecationWarning")
@pytest.mark.parametrize("engine", ENGINES)
def test_random_plans_count_as_duckdb_does(engine, tmp_path):
    rng = np.random.default_rng(len(engine))
    counted = 0
    for _ in range(25):
        case = draw_case(rng, tmp_path)
        expected = outcome(case, tmp_path, case.rows)
        assert outcome(case, tmp_path, ENGINES[engine](case.rows)) == expected, case.plan.data
        counted += len(expected) == 3
    assert 12 < counted < 25
