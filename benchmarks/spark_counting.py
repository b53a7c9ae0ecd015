"""Count the same made-up rows in DuckDB and in Spark, compare the counts, and print the times.

Needs Java and `make spark`. Usage: python -m benchmarks.spark_counting 1000000 10000000
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import duckdb
from pyspark.sql import SparkSession

from congenial.data.counts import Counted, count
from congenial.plan.plan import parse_plan

PLAN = """
[data]
source = "rows.parquet"
where = "age >= 18 AND NOT institution"
lookup = { source = "blocks.csv", key = "id", on = "block" }
[hierarchy]
root = "state"
levels = ["district", "block_group"]
domain = "lookup"
[table]
attributes = { sex = ["f", "m"] }
margins = ["total", "sex"]
[privacy]
neighbours = "substitute"
epsilon = 1.0
"""
ROWS = """
    SELECT CAST(hash(i) % 100000 AS INT) AS block, CAST(hash(i + 1) % 100 AS INT) AS age,
    CASE WHEN hash(i + 2) % 2 = 0 THEN 'm' ELSE 'f' END AS sex, hash(i + 3) % 50 = 0 AS institution
    FROM range({}) t(i)
"""


def processor_seconds() -> float:
    """Processor time of this process and of those below it, such as Java."""
    found: dict[int, tuple[int, float]] = {}
    for place in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = place.read_text().rsplit(")", 1)[1].split()
        except OSError:  # it has ended
            continue
        ticks = int(fields[11]) + int(fields[12])
        found[int(place.parent.name)] = (int(fields[1]), ticks / os.sysconf("SC_CLK_TCK"))
    below = {os.getpid()}
    while more := {p for p, (parent, _) in found.items() if parent in below} - below:
        below |= more
    return sum(found[p][1] for p in below if p in found)


def timed(work: Callable[[], Counted]) -> tuple[Counted, float, float]:
    """Run some work; return its result, and its seconds by the clock and by the processors."""
    clock, processor = time.perf_counter(), processor_seconds()
    found = work()
    return found, time.perf_counter() - clock, processor_seconds() - processor


def compare(spark: SparkSession, place: Path, size: int) -> None:
    """Count rows three times in both engines, and print the times."""
    file = place / "rows.parquet"
    with duckdb.connect() as connection:
        connection.execute(f"COPY ({ROWS.format(size)}) TO '{file}'")
    plan = parse_plan(PLAN)
    frame: Any = spark.read.parquet(str(file))
    for _ in range(3):
        own, *first = timed(lambda: count(plan, base=place))
        other, *second = timed(lambda: count(plan, base=place, frame=frame))
        if (own.counts != other.counts).any() or own.excluded != other.excluded:
            raise RuntimeError("DuckDB and Spark count differently")
        for engine, (clock, processor) in (("DuckDB", first), ("Spark", second)):
            click.echo(f"{size:,} rows, {engine}: {clock:.1f} s, processors {processor:.1f} s")


def main() -> None:
    """Count the numbers of rows that the command line gives."""
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    spark = builder.config("spark.driver.memory", "3g").getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    with tempfile.TemporaryDirectory() as folder:
        blocks = (f"{b},d{b // 1000},g{b // 10}\n" for b in range(100_000))
        (Path(folder) / "blocks.csv").write_text("id,district,block_group\n" + "".join(blocks))
        for size in sys.argv[1:]:
            compare(spark, Path(folder), int(size))
    spark.stop()


if __name__ == "__main__":
    main()
