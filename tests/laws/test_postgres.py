"""Rows in PostgreSQL, and in queries of DuckDB, are counted where they lie."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import duckdb
import numpy as np
import pytest

from congenial.data.counts import count
from congenial.plan.plan import parse_plan
from support.random_plans import draw_case, outcome

PLAN = """
    data = { source = "visits.parquet" }
    hierarchy = { root = "city", levels = ["district", "clinic"], domain = "clinics.csv" }
    privacy = { neighbours = "substitute", epsilon = 1.0 }
    invariants = { publish_exactly = ["root"] }
"""
ROWS = """
    SELECT CASE WHEN i % 3 = 0 THEN 'south' ELSE 'north' END AS district,
    CASE i % 3 WHEN 0 THEN 'c' WHEN 1 THEN 'a' ELSE 'b' END AS clinic, i % 2 AS secret
"""


def counts(frame: object, place: Path) -> list[int]:
    """Count visits of the city, then of each district with its clinics."""
    (place / "clinics.csv").write_text("district,clinic\nnorth,a\nnorth,b\nsouth,c\n")
    counted = count(parse_plan(PLAN), base=place, frame=frame)
    return [int(counted.counts[counted.domain.find(v)]) for v in ("city", "a", "b", "c")]


def test_a_query_of_duckdb_is_counted(tmp_path):
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE visits AS {ROWS} FROM range(1, 3001) t(i)")
        connection.execute("CREATE VIEW fewer AS SELECT * FROM visits WHERE clinic <> 'b'")
        found = [
            counts(connection.sql(query), tmp_path)
            for query in ("FROM visits", "FROM fewer", "SELECT * FROM visits WHERE secret = 0")
        ]
    assert found == [[3000, 1000, 1000, 1000], [2000, 1000, 0, 1000], [1500, 500, 500, 500]]


@pytest.fixture(scope="module")
def postgres():
    """Start a PostgreSQL server of its own, and yield a connection of Ibis to it."""
    ibis = pytest.importorskip("ibis", reason="Ibis is not installed")
    pytest.importorskip("psycopg", reason="psycopg finds no libpq", exc_type=ImportError)
    found = [shutil.which("initdb"), *map(str, Path("/usr/lib/postgresql").glob("*/bin/initdb"))]
    initdb = next((Path(path) for path in reversed(found) if path), None)
    if initdb is None:
        pytest.skip("PostgreSQL is not installed")
    # the server refuses to run as root, and the path of its socket must be short
    owner = "postgres" if os.geteuid() == 0 else None
    place = Path(tempfile.mkdtemp(prefix="pg"))
    control = [str(initdb.with_name("pg_ctl")), "-D", str(place / "data"), "-w"]
    try:
        if owner:
            shutil.chown(place, owner)

        def run(*command: str) -> None:
            subprocess.run(command, check=True, capture_output=True, user=owner, cwd=place)

        run(str(initdb), "-D", str(place / "data"), "-A", "trust", "-U", "tester", "--no-sync")
        run(*control, "-l", str(place / "log"), "-o", f"-k {place} -c listen_addresses=''", "start")
        try:
            connection = ibis.postgres.connect(host=str(place), user="tester", database="postgres")
            yield connection
            connection.disconnect()
        finally:
            run(*control, "-m", "immediate", "stop")
    except LookupError:
        pytest.skip("there is no user 'postgres' to run the server as")
    finally:
        shutil.rmtree(place, ignore_errors=True)


def test_tables_views_and_expressions_of_postgresql_are_counted(postgres, tmp_path):
    made = "CREATE TABLE visits AS {} FROM generate_series(1, 3000) t(i)"
    postgres.raw_sql(made.format(ROWS)).close()
    view = "CREATE VIEW fewer AS SELECT * FROM visits WHERE clinic <> 'b'"
    postgres.raw_sql(view).close()
    visits = postgres.table("visits")
    found = [
        counts(frame, tmp_path)
        for frame in (visits, postgres.table("fewer"), visits.filter(visits.secret == 0))
    ]
    assert found == [[3000, 1000, 1000, 1000], [2000, 1000, 0, 1000], [1500, 500, 500, 500]]


def test_random_plans_count_in_postgresql_as_in_duckdb(postgres, tmp_path):
    rng = np.random.default_rng(3)
    for at in range(15):
        case = draw_case(rng, tmp_path)
        frame = postgres.create_table(f"random{at}", case.rows)
        expected = outcome(case, tmp_path, case.rows)
        assert outcome(case, tmp_path, frame) == expected, case.plan.data
