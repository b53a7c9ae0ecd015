"""The taxi example: its rows are the published counts, its plan is read, its source is stated."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from congenial.plan.plan import read_plan

TAXI = Path(__file__).parents[2] / "examples" / "taxi"
COUNTS = TAXI / "zone_hour_counts_2022_02.csv.gz"


def load_builder():
    """Return examples/taxi/build_trips.py as a module."""
    spec = importlib.util.spec_from_file_location("build_trips", TAXI / "build_trips.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


builder = load_builder()


@pytest.fixture(scope="module")
def trips(tmp_path_factory):
    """Build the rows once, away from the repository."""
    path = tmp_path_factory.mktemp("taxi") / "trips.parquet"
    assert builder.build(trips=path) == 2_979_379
    return path


def ask(query):
    """Return the rows of a query."""
    with duckdb.connect() as connection:
        return connection.sql(query).fetchall()


def test_rows_add_up_as_the_source_note_says(trips):
    total = ask(
        f"""SELECT count(*), count(*) FILTER (PULocationID <= 263),
            count(*) FILTER (PULocationID = 264), count(*) FILTER (PULocationID = 265),
            min(date)::VARCHAR, max(date)::VARCHAR, min(hour), max(hour) FROM '{trips}'"""
    )
    assert total == [(2_979_379, 2_944_056, 27_220, 8_103, "2022-02-01", "2022-02-28", 0, 23)]
    note = (TAXI / "SOURCE.md").read_text(encoding="utf-8")
    for number in ("2,979,379", "2,944,056", "27,220", "8,103", "64,473", "re-derived"):
        assert number in note


def test_every_cell_comes_back(trips):
    different = ask(
        f"""SELECT count(*) FROM
            (SELECT date, hour, PULocationID, count(*) AS n FROM '{trips}' GROUP BY ALL) AS made
            FULL JOIN '{COUNTS}' AS given ON made.date = given.date AND made.hour = given.hour
                AND made.PULocationID = given.zone_id
            WHERE made.n IS DISTINCT FROM given.trips"""
    )
    assert different == [(0,)]


def test_columns(trips):
    columns = ask(f"DESCRIBE FROM '{trips}'")
    assert [row[:2] for row in columns] == [
        ("date", "DATE"),
        ("hour", "TINYINT"),
        ("PULocationID", "SMALLINT"),
    ]


def test_wrong_counts_leave_no_file(tmp_path):
    counts = tmp_path / "counts.csv"
    counts.write_text("date,hour,zone_id,trips\n2022-02-01,0,4,3\n", encoding="utf-8")
    out = tmp_path / "made"
    out.mkdir()
    with pytest.raises(ValueError, match=r"counts.csv gives 3 trips instead of 4"):
        builder.build(counts, out / "trips.parquet", expected=4)
    assert list(out.iterdir()) == []
    assert builder.build(counts, out / "trips.parquet", expected=3) == 3
    assert [path.name for path in out.iterdir()] == ["trips.parquet"]


def test_a_lost_source_is_one_sentence(tmp_path):
    script = tmp_path / "build_trips.py"
    script.write_bytes((TAXI / "build_trips.py").read_bytes())
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 1
    assert done.stderr.startswith("Error: ")
    assert "Traceback" not in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["build_trips.py"]


def test_the_lookup_has_six_boroughs_for_the_plan():
    rows = ask(
        f"""SELECT Borough, count(*) FROM read_csv('{TAXI / "taxi_zone_lookup.csv"}', nullstr='')
            WHERE LocationID <= 263 GROUP BY ALL ORDER BY ALL"""
    )
    assert rows == [
        ("Bronx", 43),
        ("Brooklyn", 61),
        ("EWR", 1),
        ("Manhattan", 69),
        ("Queens", 69),
        ("Staten Island", 20),
    ]


def test_the_plan_says_what_the_readme_shows():
    plan = read_plan(TAXI / "plan.toml")
    assert plan.data.where == "PULocationID <= 263"
    assert plan.hierarchy.levels == ("Borough", "PULocationID")
    assert plan.hierarchy.domain == "lookup"
    assert plan.privacy.epsilon == 1.0
    assert plan.privacy.split == {"Borough": 0.4, "PULocationID": 0.6}
    assert plan.invariants.publish_exactly == ("root",)
    assert plan.invariants.nonnegative
    assert plan.method.name == "posterior"
    assert plan.release.measurements
