"""A release that Spark draws has the files, the claims and the law of one drawn in one process."""

from __future__ import annotations

import base64
import csv
import os
import re
import subprocess
import sys
from functools import partial

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from congenial.accounting.amounts import amount_of
from congenial.errors import ArgumentError, DataError, ReleaseError
from congenial.ledger.debits import read_ledger
from congenial.ledger.ledger_file import init_ledger
from congenial.randomness import derived_key
from congenial.releases.directory import MEASUREMENTS_CSV
from congenial.releases.making import spark_parts
from congenial.verification.verdict import verify
from support.city import listing, make_city
from support.part_worlds import make_world
from support.parts import PARTED, keys_of, make, refused, stated_in, table_of
from support.spark import NEEDS_SPARK, events_of

pytest.importorskip("pyspark", reason="PySpark is not installed; `make spark` adds it")
pytestmark = NEEDS_SPARK


def as_parquet(place):
    """Write the rows of a world as Parquet too, with the types that a plan of CSV declares."""
    with (place / "rows.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    whole = [name for name in ("hour", "people", "zone") if name in rows[0]]
    columns = {
        name: [int(row[name]) if name in whole else row[name] for row in rows] for name in rows[0]
    }
    return pa.table(columns)


@pytest.mark.parametrize("method", ["topdown", "conditioning", "imaging", "posterior"])
@pytest.mark.parametrize("seed", range(int(os.environ.get("CONGENIAL_SPARK_WORLDS", "4"))))
def test_random_releases_have_the_rows_and_claims_of_those_made_in_one_process(
    seed, method, spark, tmp_path
):
    level = make_world(tmp_path, np.random.default_rng([seed, 2026]), method=method)
    frame = spark.createDataFrame(as_parquet(tmp_path))
    problem = refused(tmp_path, "here", seed, parts=level)
    assert refused(tmp_path, "there", seed, parts=level, on=spark, frame=frame) == problem
    if problem:
        return
    assert keys_of(tmp_path / "there") == keys_of(tmp_path / "here")
    here, there = (table_of(tmp_path / name) for name in ("here", "there"))
    assert [row["truth"] for row in there] == [row["truth"] for row in here]
    stated, expected = stated_in(tmp_path / "there"), stated_in(tmp_path / "here")
    # the noise differs, and with it the prior that is fitted
    assert (stated.pop("prior") is None) == (expected.pop("prior") is None)
    assert stated.pop("keyed")["parts"] >= 1 and expected.pop("keyed") is None
    assert stated == expected
    assert [check for check in verify(tmp_path / "there") if not check.passed] == []


# Confidential counts that no other number in an event log is likely to be.
SECRET = {1: 7919003, 2: 6841007, 3: 5003021, 4: 4001089, 5: 9173021, 6: 8675309}
MASTER = bytes(range(100, 132))


def secrets_of(counts, keys):
    """Return all texts that would show one of the counts or keys, as a pattern."""
    found = {str(count) for count in counts}
    for key in keys:
        found |= {key.hex(), ", ".join(map(str, key)), ",".join(map(str, key))}
        signed = [byte - 256 * (byte > 127) for byte in key]
        found |= {", ".join(map(str, signed)), str(int.from_bytes(key, "big"))}
        for start in range(3):  # base64 of a text that the key is anywhere in
            text = base64.b64encode(bytes(start) + key).decode()[4:-4]
            found |= {text, text.replace("+", "-").replace("/", "_")}
    return sorted(found)


def seen(texts, log):
    return [
        text for text in texts if re.search(rf"(?<![0-9]){re.escape(text)}", log, re.IGNORECASE)
    ]


def weighted_city(place, **sections):
    """Write a city whose rows stand for many records, and return its rows."""
    make_city(
        place,
        **PARTED | sections,
        data='source = "rows.csv"\nweight = "people"\n'
        'lookup = { source = "zones.csv", key = "zone_id", on = "zone" }',
        privacy='neighbours = "substitute"\nepsilon = 1.0\nledger = "budget.ledger"',
    )
    init_ledger(place / "budget.ledger", budget=amount_of(3.0, 0.1), neighbours="substitute")
    return pa.table({"zone": list(SECRET), "people": list(SECRET.values())})


METHODS = [
    {},
    {"method": 'name = "conditioning"', "release": ""},
    {"method": 'name = "imaging"'},
    {"method": 'name = "posterior"'},
]


@pytest.mark.parametrize("method", METHODS)
def test_no_event_shows_a_count_or_a_key(method, spark, logs, tmp_path, monkeypatch):
    rows = weighted_city(tmp_path, **method)
    begun = len(events_of(spark, logs))
    monkeypatch.setattr(spark_parts, "fresh_key", lambda rng: MASTER)
    made = make(tmp_path, parts="borough", on=spark, frame=spark.createDataFrame(rows))
    log = events_of(spark, logs)[begun:]
    assert log.count("SparkListenerJobEnd") >= 2
    released = [int(row["value"]) for row in table_of(tmp_path / "out")]
    sums = [sum(SECRET.values()), 7919003 + 6841007 + 5003021, 4001089 + 9173021]
    measured = [] if method.get("release") == "" else table_of(tmp_path / "out", MEASUREMENTS_CSV)
    counts = [*SECRET.values(), *sums, *released]
    counts += [int(row["measurement"]) for row in measured if row["measurement"]]
    keys = [MASTER, *(derived_key(MASTER, str(part).encode()) for part in range(3))]
    texts = secrets_of(counts, keys)
    assert seen(texts, log) == []
    # names of nodes are in the lookup only
    assert seen(["Arden", "Combe"], log) == []
    assert made.debit is not None and not made.certificate.simulation
    # the search finds what is there
    for text in (keys[1].hex(), str(SECRET[4]), base64.b64encode(b"x" + keys[2]).decode()):
        spark.sparkContext.setJobDescription(text)
        spark.range(1).collect()
    spark.sparkContext.setJobDescription(None)
    assert len(seen(texts, events_of(spark, logs)[begun:])) >= 3


def test_a_session_of_spark_connect_draws(spark, port, logs, tmp_path, monkeypatch):
    pytest.importorskip("grpc", reason="Spark Connect needs grpcio; `make spark` adds it")
    from pyspark.sql.connect.session import SparkSession

    weighted_city(tmp_path)
    remote = SparkSession.builder.remote(f"sc://127.0.0.1:{port}").create()
    begun = len(events_of(spark, logs))
    monkeypatch.setattr(spark_parts, "fresh_key", lambda rng: MASTER)
    try:
        frame = remote.createDataFrame([(zone,) for zone in (1, 1, 4, 6, 6, 6)], "zone int")
        frame = frame.withColumn("people", frame["zone"] * 1000003)
        make(tmp_path, parts="borough", on=remote, frame=frame)
        make(tmp_path, "test", parts="borough", on=remote, frame=frame, simulate=1, with_truth=True)
    finally:
        remote.stop()  # without this it would try for minutes to reach a server that has ended
    assert [check for check in verify(tmp_path / "out") if not check.passed] == []
    truth = {row["zone"]: int(row["truth"]) for row in table_of(tmp_path / "test") if row["zone"]}
    assert truth["1"] == 2000006 and truth["6"] == 18000054 and truth["2"] == 0
    keys = [MASTER, *(derived_key(MASTER, str(part).encode()) for part in range(3))]
    assert seen(secrets_of(set(truth.values()) - {0}, keys), events_of(spark, logs)[begun:]) == []


def test_a_plan_of_a_file_is_read_by_spark(spark, tmp_path):
    make_city(tmp_path, **PARTED)
    with pytest.raises(DataError, match="Spark reads Parquet files only"):
        make(tmp_path, parts="borough", on=spark)
    duckdb.sql(f"COPY (FROM '{tmp_path}/rows.csv') TO '{tmp_path}/rows.parquet'")
    plan = (tmp_path / "plan.toml").read_text().replace("rows.csv", "rows.parquet")
    (tmp_path / "plan.toml").write_text(plan)
    make(tmp_path, parts="borough", on=spark, simulate=2, with_truth=True)
    make(tmp_path, "again", parts="borough", on=spark, simulate=2, with_truth=True)
    assert [row["truth"] for row in table_of(tmp_path / "out")][:3] == ["79", "43", "31"]
    assert table_of(tmp_path / "again") == table_of(tmp_path / "out")


def test_the_command_line_starts_spark_and_draws(tmp_path):
    make_city(tmp_path, **PARTED)
    duckdb.sql(f"COPY (FROM '{tmp_path}/rows.csv') TO '{tmp_path}/rows.parquet'")
    plan = (tmp_path / "plan.toml").read_text().replace("rows.csv", "rows.parquet")
    (tmp_path / "plan.toml").write_text(plan)
    command = [sys.executable, "-m", "congenial.cli", "release", "plan.toml", "--out", "out"]
    run = partial(subprocess.run, cwd=tmp_path, capture_output=True, text=True, check=False)
    alone = run([*command, "--on", "spark"])
    assert alone.returncode == 2 and "give --parts LEVEL" in alone.stderr
    env = {k: v for k, v in os.environ.items() if k != "PYSPARK_PYTHON"}
    done = run([*command, "--on", "spark", "--parts", "borough"], env=env)
    assert done.returncode == 0, done.stderr
    assert "computed from a secret key of 256 bits by SHAKE-256" in done.stdout
    assert [check for check in verify(tmp_path / "out") if not check.passed] == []
    assert [path for path in listing(tmp_path) if path.startswith(".")] == []


def test_what_drawing_needs_is_refused_before_anything_is_spent(spark, tmp_path):
    rows = weighted_city(tmp_path)
    frame = spark.createDataFrame(rows)
    with pytest.raises(ArgumentError, match="give `parts` a level"):
        make(tmp_path, on=spark, frame=frame)
    with pytest.raises(ArgumentError, match="give a session of Spark"):
        make(tmp_path, on="spark", parts="borough", frame=frame)
    with pytest.raises(ArgumentError, match="frame is no dataframe of Spark"):
        make(tmp_path, on=spark, parts="borough", frame=rows)
    blank = spark.createDataFrame([(1, 5), (77, 5)], "zone int, people int")
    with pytest.raises(DataError, match="the lookup lacks"):
        make(tmp_path, on=spark, parts="borough", frame=blank)
    failing = frame.selectExpr("raise_error('7919003') as zone", "people")
    with pytest.raises(ReleaseError, match="Spark failed to count") as caught:
        make(tmp_path, on=spark, parts="borough", frame=failing)
    assert "7919003" not in str(caught.value)
    assert caught.value.__cause__ is None and caught.value.__context__ is None
    assert [account.entries for account in read_ledger(tmp_path / "budget.ledger").accounts] == []
    assert not [name for name in listing(tmp_path) if "out" in name]


def test_a_worker_that_cannot_draw_fails_the_release_and_the_debit_stays(spark, tmp_path):
    rows = weighted_city(tmp_path)

    def break_stage(step):
        if step.startswith("drawing 3 parts"):
            [stage] = tmp_path.glob(".*.stage")
            assert stage.stat().st_mode & 0o777 == 0o700
            for file in (stage / "counts").iterdir():
                file.unlink()

    with pytest.raises(ReleaseError, match="Spark failed to draw the parts"):
        make(
            tmp_path,
            on=spark,
            parts="borough",
            frame=spark.createDataFrame(rows),
            notify=break_stage,
        )
    [account] = read_ledger(tmp_path / "budget.ledger").accounts
    assert [debit.state for debit in account.entries] == ["reserved"]
    names = ["budget.ledger", "plan.toml", "rows.csv", "zones.csv"]
    assert listing(tmp_path) == names


def test_a_frame_that_selects_rows_at_random_is_read_once(spark, tmp_path):
    from pyspark.sql import functions

    make_city(tmp_path, **PARTED)
    frame = spark.range(20_000).select((functions.rand() * 6 + 1).cast("int").alias("zone"))
    make(tmp_path, parts="borough", on=spark, frame=frame, simulate=1, with_truth=True)
    truth = {
        tuple(row[c] for c in ("borough", "zone")): int(row["truth"])
        for row in table_of(tmp_path / "out")
    }
    assert truth["", ""] == 20_000
    for borough in ("Arden", "Brook", "Combe"):
        inside = [n for (name, zone), n in truth.items() if name == borough and zone]
        assert truth[borough, ""] == sum(inside) and min(inside) > 0
