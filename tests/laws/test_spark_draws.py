"""A release that Spark draws has the files, the claims and the law of one drawn in one process."""

from __future__ import annotations

import csv
import os
import re
import socket

import numpy as np
import pyarrow as pa
import pytest

from congenial.verification.verdict import verify
from support.parts import keys_of, make_world, refused, stated_in, table_of
from support.spark import NEEDS_SPARK, WORKERS, make_session

pytest.importorskip("pyspark", reason="PySpark is not installed; `make spark` adds it")
pytestmark = NEEDS_SPARK


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    return tmp_path_factory.mktemp("events")


@pytest.fixture(scope="module")
def port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@pytest.fixture(scope="module")
def spark(logs, port):
    """One session with two threads, which writes event logs and also serves Spark Connect."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in WORKERS.items():
            patch.setenv(name, value)
        session = make_session(
            **{
                "spark.eventLog.enabled": "true",
                "spark.eventLog.dir": logs.as_uri(),
                "spark.eventLog.compress": "false",
                "spark.eventLog.rolling.enabled": "false",
                "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
                "spark.connect.grpc.binding.address": "127.0.0.1",
                "spark.connect.grpc.binding.port": str(port),
            }
        )
        yield session
        session.stop()


def as_parquet(place):
    """Write the rows of a world as Parquet too, with the types that a plan of CSV declares."""
    with (place / "rows.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    whole = [name for name in ("hour", "people", "zone") if name in rows[0]]
    columns = {
        name: [int(row[name]) if name in whole else row[name] for row in rows] for name in rows[0]
    }
    return pa.table(columns)


@pytest.mark.parametrize("seed", range(int(os.environ.get("CONGENIAL_SPARK_WORLDS", "6"))))
def test_random_releases_have_the_rows_and_claims_of_those_made_at_once(seed, spark, tmp_path):
    level = make_world(tmp_path, np.random.default_rng([seed, 2026]))
    frame = spark.createDataFrame(as_parquet(tmp_path))
    problems = [
        refused(tmp_path, "whole", seed),
        refused(tmp_path, "parts", seed, parts=level, on=spark, frame=frame),
    ]
    if any(problems):
        assert problems[0] == problems[1] or re.search("has one part|/.* no path", problems[1])
        return
    assert keys_of(tmp_path / "parts") == keys_of(tmp_path / "whole")
    whole, parts = (table_of(tmp_path / name) for name in ("whole", "parts"))
    assert [row["truth"] for row in parts] == [row["truth"] for row in whole]
    stated, expected = stated_in(tmp_path / "parts"), stated_in(tmp_path / "whole")
    assert stated.pop("keyed")["parts"] >= 1 and expected.pop("keyed") is None
    assert stated == expected
    assert [check for check in verify(tmp_path / "parts") if not check.passed] == []
