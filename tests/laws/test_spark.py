"""Rows of Spark are counted where they lie, with the result of DuckDB on the same rows."""

from __future__ import annotations

import json
import os
import re

import numpy as np
import pyarrow as pa
import pytest

import congenial as cg
from congenial.data.counts import build_domain, count, open_source
from congenial.errors import ArgumentError, DataError
from congenial.plan.plan import parse_plan
from support.pages import ROOT
from support.random_plans import draw_case, outcome
from support.spark import NEEDS_SPARK, events_of

pytest.importorskip("pyspark", reason="PySpark is not installed; `make spark` adds it")
pytestmark = NEEDS_SPARK


PLAN = """
[data]
source = "rows.parquet"
lookup = {{ source = "blocks.csv", key = "id", on = "block" }}
{data}
[hierarchy]
root = "all"
levels = ["district"]
domain = "{domain}"
[privacy]
neighbours = "substitute"
epsilon = 1.0
"""


def plan_of(data: str = "", domain: str = "lookup"):
    return parse_plan(PLAN.format(data=data, domain=domain))


@pytest.fixture
def place(tmp_path):
    """Write a lookup of a thousand blocks in ten districts."""
    blocks = (f"{block},district {block // 100}" for block in range(1000))
    (tmp_path / "blocks.csv").write_text("\n".join(["id,district", *blocks]) + "\n")
    return tmp_path


def test_random_plans_count_as_duckdb_does(spark, tmp_path):
    rng = np.random.default_rng(0)
    for _ in range(int(os.environ.get("CONGENIAL_SPARK_PLANS", "6"))):
        case = draw_case(rng, tmp_path)
        frame = spark.createDataFrame(case.rows)
        expected = outcome(case, tmp_path, case.rows)
        assert outcome(case, tmp_path, frame) == expected, case.plan.data


def events(spark, logs):
    return [json.loads(line) for line in events_of(spark, logs).splitlines()]


def test_a_frame_of_spark_connect_is_counted(spark, port, tmp_path):
    pytest.importorskip("grpc", reason="Spark Connect needs grpcio; `make spark` adds it")
    from pyspark.sql.connect.session import SparkSession

    remote = SparkSession.builder.remote(f"sc://127.0.0.1:{port}").create()
    rng = np.random.default_rng(1)
    try:
        for _ in range(3):
            case = draw_case(rng, tmp_path)
            expected = outcome(case, tmp_path, case.rows)
            assert outcome(case, tmp_path, remote.createDataFrame(case.rows)) == expected
    finally:
        remote.stop()  # without this it would try for minutes to reach a server that has ended


def test_no_more_rows_than_nodes_come_back_and_the_query_runs_once(spark, logs, place):
    # each action would draw its own rows
    from pyspark.sql import functions

    frame = spark.range(20_000).select(
        (functions.rand() * 1000).cast("int").alias("block"),
        (functions.rand() * 100).cast("int").alias("age"),
    )
    before = sum(e["Event"].endswith("SQLExecutionStart") for e in events(spark, logs))
    plan = plan_of('where = "age >= 18"', domain="data")
    with open_source(plan, base=place, frame=frame) as source:
        domain, counted = source.domain, source.counted
    after = events(spark, logs)
    assert sum(e["Event"].endswith("SQLExecutionStart") for e in after) == before + 1
    assert len(domain) == 11 and counted.counts[0] == counted.counts[1:].sum()
    assert counted.counts[0] + counted.excluded == 20_000
    [task] = [e for e in after if e["Event"] == "SparkListenerTaskEnd"][-1:]
    written = {a["Name"]: a["Update"] for a in task["Task Info"]["Accumulables"] if "Update" in a}
    # the ten districts and the excluded rows
    assert int(written["number of output rows"]) == 11


def test_a_mistake_of_the_plan_is_found_before_a_job_runs(spark, logs, place):
    before = len(events(spark, logs))
    frame = spark.createDataFrame([(1, 2)], "block int, age int")
    with pytest.raises(DataError, match="'hour', which is no column"):
        count(plan_of('where = "hour = 1"'), base=place, frame=frame)
    with open_source(plan_of('where = "age = 1"'), base=place, frame=frame) as source:
        assert len(source.domain) == len(build_domain(plan_of(), base=place)) == 11
    assert len(events(spark, logs)) == before


def test_names_with_dots_cases_and_collations(spark, place):
    rows = [("3", 1, "x"), ("150", 2, "x"), ("3", 2, "X"), (None, 2, "X")]
    frame = spark.createDataFrame(rows, "`block.code` string, Age int, kind string")
    frame = frame.withColumn("kind", frame["kind"].try_cast("string collate UTF8_LCASE"))
    frame = frame.toDF("block.code", "Age", "age.kind")
    text = PLAN.replace('on = "block"', 'on = "block.code"')
    kept = """where = '''"block.code" IS NOT NULL AND "age.kind" = 'x' '''"""
    counted = count(parse_plan(text.format(data=kept, domain="lookup")), base=place, frame=frame)
    assert counted.counts.tolist()[:3] == [2, 1, 1]
    assert counted.excluded == 2


def test_two_columns_of_one_name_are_refused(spark, place):
    frame = spark.createDataFrame([(1, 2, 3)], "block int, age int, other int")
    twice = frame.toDF("block", "block", "other")
    with pytest.raises(ArgumentError, match="one name to two columns"):
        count(plan_of(), base=place, frame=twice)
    unused = frame.toDF("block", "other", "other")
    assert count(plan_of(), base=place, frame=unused).counts[0] == 1


def test_the_example_of_the_page_runs(spark, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / "how-to" / "spark.md").read_text(encoding="utf-8")
    clinics, example = re.findall(r"```text\n(district,.*?|from pathlib.*?)```", text, re.DOTALL)
    (tmp_path / "clinics.csv").write_text(clinics)
    visits = (
        "select district, clinic, 17 + id % 2 as age from values ('north', 'a'), ('south', 'c')"
    )
    spark.sql(f"{visits} as t(district, clinic), range(500)").createOrReplaceTempView("visits")
    names = {}
    exec(example, names)
    assert names["made"].nodes == 6
    found = cg.read_release(tmp_path / "release")
    assert found.value("city") == 500


STREET = "Sentinel Street"


def test_no_error_shows_a_cell(spark, place, capfd):
    frame = spark.createDataFrame([(STREET,)], "address string")
    failing = frame.selectExpr("cast(address as int) as block")
    unknown = frame.selectExpr("address as block")
    for rows, words in ((failing, "cannot be given"), (unknown, "'block' the lookup lacks")):
        with pytest.raises(DataError, match=words) as caught:
            count(plan_of(), base=place, frame=rows)
        assert STREET not in str(caught.value)
        assert STREET not in "".join(capfd.readouterr())
        assert caught.value.__cause__ is None and caught.value.__context__ is None


def test_the_event_log_holds_no_name_and_of_counts_only_those_of_rows(spark, logs, place):
    sizes = {3: 7919, 104: 6841, 999: 5003}
    blocks = np.repeat(list(sizes), list(sizes.values()))
    names = np.where(np.arange(blocks.size) % 2, STREET, "other")
    rows = pa.table({"block": blocks, "street": names, "people": np.full(blocks.size, 3)})
    rows = rows.append_column("age", pa.array(np.arange(blocks.size) % 90))
    begun = len(events(spark, logs))
    data = 'where = "age >= 18"\nweight = "people"'
    counted = count(plan_of(data), base=place, frame=spark.createDataFrame(rows))
    found = events(spark, logs)[begun:]
    assert STREET not in json.dumps(found) and "district 0" not in json.dumps(found)
    accumulated = [
        str(one.get(key))
        for event in found
        for one in event.get("Task Info", {}).get("Accumulables", [])
        + event.get("Stage Info", {}).get("Accumulables", [])
        for key in ("Update", "Value")
        if "row" in one["Name"] or "record" in one["Name"].casefold()
    ]
    # the number of all rows is there
    assert str(blocks.size) in accumulated
    secrets = {int(n) for n in counted.counts if n} | {counted.excluded}
    assert not secrets & {int(n) for n in accumulated if n.isdigit()}
