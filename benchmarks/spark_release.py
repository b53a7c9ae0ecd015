"""Release made-up counts in parts in one process and in Spark, check the sums, and print the cost.

Needs Java and `make spark`, and some 1 GB of disk for each 10^7 counts. Usage: python -m
benchmarks.spark_release 10
"""

from __future__ import annotations

import ctypes
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import click
import duckdb

from benchmarks.release_in_parts import PART, write_rows, wrong_sums
from benchmarks.rows.pipeline import TOPDOWN

# Number of prctl that makes this process reap the children of its children, to count their time.
_SUBREAPER = 36


def memory_below() -> dict[str, float]:
    """Return the megabytes of the largest process below this one, by the kind of process."""
    found: dict[str, float] = {}
    parents, sizes, kinds = {}, {}, {}
    for place in Path("/proc").glob("[0-9]*"):
        try:
            fields = (place / "stat").read_text().rsplit(")", 1)[1].split()
            command = (place / "cmdline").read_bytes()
        except OSError:  # it has ended
            continue
        number = int(place.name)
        parents[number], sizes[number] = int(fields[1]), int(fields[21]) * 4096 / 1e6
        kinds[number] = "worker" if b"pyspark.daemon" in command else "driver"
        if command.split(b"\0")[0].endswith(b"java"):
            kinds[number] = "java"
    below = {os.getpid()}
    while more := {p for p, parent in parents.items() if parent in below} - below:
        below |= more
    for number in below - {os.getpid()}:
        if number in sizes:
            found[kinds[number]] = max(found.get(kinds[number], 0.0), sizes[number])
    return found


def cost_of(
    command: list[str], environment: dict[str, str]
) -> tuple[float, float, dict[str, float]]:
    """Run a command; return its seconds by the clock and by processors, and its largest memory."""
    largest: dict[str, float] = {}
    done = threading.Event()

    def watch() -> None:
        while not done.wait(0.2):
            for kind, size in memory_below().items():
                largest[kind] = max(largest.get(kind, 0.0), size)

    thread = threading.Thread(target=watch)
    thread.start()
    before, clock = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, check=True, env=os.environ | environment)
    clock = time.perf_counter() - clock
    while True:  # the children of the command, which are ours now that it has ended
        try:
            os.wait()
        except ChildProcessError:
            break
    done.set()
    thread.join()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return clock, used, largest


@click.command(help="Release PARTS million counts by TopDown in one process and in Spark.")
@click.argument("parts", type=click.IntRange(min=2))
@click.option("--only", type=click.Choice(["process", "spark"]))
def main(parts: int, only: str | None) -> None:
    """Write the rows, release them twice, and check what is released."""
    ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        with duckdb.connect(config={"memory_limit": "4GB"}) as connection:
            write_rows(connection, place, parts)
            (place / "plan.toml").write_text(TOPDOWN.replace("rows.parquet", "rows-*.parquet"))
            command = [sys.executable, "-m", "congenial.cli", "release", str(place / "plan.toml")]
            command += ["--parts", "county", "--quiet", "--out"]
            submit = "--master local[2] --driver-memory 2g --conf spark.ui.enabled=false"
            for name, more in (("process", []), ("spark", ["--on", "spark"])):
                if only not in (None, name):
                    continue
                run = [*command, str(place / name), *more]
                environment = {"PYSPARK_SUBMIT_ARGS": f"{submit} pyspark-shell"}
                clock, used, memory = cost_of(run, environment)
                wrong = wrong_sums(connection, place / name / "release.parquet")
                sizes = ", ".join(f"{kind} {size:,.0f} MB" for kind, size in memory.items())
                click.echo(
                    f"{parts * PART:,} counts, {name}: {clock:,.0f} s, processors {used:,.0f} s; "
                    f"{sizes}; sums that do not hold, and negative counts: {wrong}"
                )


if __name__ == "__main__":
    main()
