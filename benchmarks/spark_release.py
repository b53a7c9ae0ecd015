"""Release made-up counts in parts in one process and in Spark, check the sums, and print the cost.

Needs Java and `make spark`, and some 1 GB of disk for each 10^7 counts. Usage: python -m
benchmarks.spark_release 10
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

import click
import duckdb

from benchmarks.release_in_parts import PART, write_rows, wrong_sums
from benchmarks.rows.pipeline import TOPDOWN

# Number of prctl that makes orphans of this process's children its own, so that it sees them all.
_SUBREAPER = 36
# What starts Spark on two cores of this machine.
ON_TWO_CORES = {
    "PYSPARK_SUBMIT_ARGS": "--master local[2] --driver-memory 2g --conf spark.ui.enabled=false "
    "pyspark-shell"
}
_TICKS, _PAGE = os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE")


def adopt() -> None:
    """Let this process see all processes that are started below it until they end."""
    ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)


@dataclass
class Use:
    """The use of processors and memory by all processes below this one, sampled while they run."""

    # By the number of the process and its start.
    seconds: dict[tuple[int, int], float] = field(default_factory=dict)
    kinds: dict[tuple[int, int], str] = field(default_factory=dict)
    megabytes: dict[str, float] = field(default_factory=dict)  # The largest process of each kind.

    def sample(self) -> None:
        """Read the use of all processes below this one."""
        seen = {}
        for place in Path("/proc").glob("[0-9]*"):
            try:
                fields = (place / "stat").read_text().rsplit(")", 1)[1].split()
                seen[int(place.name)] = fields, (place / "cmdline").read_bytes()
            except OSError:  # it has ended
                continue
        below = {os.getpid()}
        while more := {p for p, (own, _) in seen.items() if int(own[1]) in below} - below:
            below |= more
        for process in (below & seen.keys()) - {os.getpid()}:
            fields, command = seen[process]
            kind = "worker" if b"pyspark.daemon" in command else "driver"
            kind = "java" if command.split(b"\0")[0].endswith(b"java") else kind
            key = process, int(fields[19])
            self.seconds[key] = (int(fields[11]) + int(fields[12])) / _TICKS
            if command:  # one that has ended has none
                self.kinds[key] = kind
            size = int(fields[21]) * _PAGE / 1e6
            self.megabytes[kind] = max(self.megabytes.get(kind, 0.0), size)

    def spent(self, kind: str) -> float:
        """Return the seconds of all processes of a kind."""
        return sum(seconds for key, seconds in self.seconds.items() if self.kinds.get(key) == kind)


def cost_of(command: list[str], environment: dict[str, str]) -> tuple[float, Use]:
    """Run a command; return its seconds by the clock, and what its processes used."""
    use, done, begun = Use(), threading.Event(), time.perf_counter()

    def watch() -> None:
        while not done.wait(0.1):
            use.sample()

    thread = threading.Thread(target=watch)
    thread.start()
    subprocess.run(command, check=True, env=os.environ | environment)
    clock = time.perf_counter() - begun
    done.set()
    thread.join()
    return clock, use


@click.command(help="Release PARTS million counts by TopDown in one process and in Spark.")
@click.argument("parts", type=click.IntRange(min=2))
@click.option("--only", type=click.Choice(["process", "spark"]))
def main(parts: int, only: str | None) -> None:
    """Write the rows, release them twice, and check what is released."""
    adopt()
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        with duckdb.connect(config={"memory_limit": "4GB"}) as connection:
            write_rows(connection, place, parts)
            (place / "plan.toml").write_text(TOPDOWN.replace("rows.parquet", "rows-*.parquet"))
            command = [sys.executable, "-m", "congenial.cli", "release", str(place / "plan.toml")]
            command += ["--parts", "county", "--quiet", "--out"]
            for name, more in (("process", []), ("spark", ["--on", "spark"])):
                if only not in (None, name):
                    continue
                run = [*command, str(place / name), *more]
                clock, use = cost_of(run, ON_TWO_CORES)
                wrong = wrong_sums(connection, place / name / "release.parquet")
                sizes = ", ".join(f"{kind} {size:,.0f} MB" for kind, size in use.megabytes.items())
                click.echo(
                    f"{parts * PART:,} counts, {name}: {clock:,.0f} s, processors "
                    f"{sum(use.seconds.values()):,.0f} s; "
                    f"{sizes}; sums that do not hold, and negative counts: {wrong}"
                )


if __name__ == "__main__":
    main()
