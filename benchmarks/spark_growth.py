"""Release made-up counts in Spark, some millions after others, and draw what each size costs.

The records of the runs are docs/benchmarks-spark.json, and one more for the posterior. From each
comes a section of the page about Spark: the table, and the time on many workers by the measured
slopes; the plot is of TopDown. Needs Java and `make spark`, and some 15 GB of disk for each 10^8
counts. Usage: python -m benchmarks.spark_growth 1 10 100; without a number, it draws and writes
what the record says.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

import click
import duckdb

from benchmarks.machine import ROOT, described
from benchmarks.release_in_parts import write_rows, wrong_sums
from benchmarks.rows.pipeline import TOPDOWN
from benchmarks.spark_release import ON_TWO_CORES, adopt, cost_of
from congenial.cli.loading import compile_once

RECORDS = {
    "topdown": ROOT / "docs" / "benchmarks-spark.json",
    "posterior": ROOT / "docs" / "benchmarks-spark-posterior.json",
}
PLOT = ROOT / "docs" / "benchmarks-spark"
PAGE = ROOT / "docs" / "how-to" / "spark.md"
BEGIN, END = "<!-- written by benchmarks.spark_growth: {} -->\n", "<!-- end -->\n"
# Counts of the lowest level in a part, and parts of a million counts.
PART, PARTS = 500_000, 2
KINDS = ("driver", "java", "worker")
TITLES = {"driver": "driver", "java": "Java", "worker": "workers"}
# The size that is worked out from the slopes: 8 million blocks by 2,016 cells.
MANY, WORKERS = 8_000_000 * 2_016, 100


@dataclass(frozen=True)
class Run:
    """What a release in Spark took."""

    counts: int
    clock: float  # Seconds.
    seconds: dict[str, float]  # Processor time of all processes of a kind.
    megabytes: dict[str, float]  # The largest process of a kind.
    wrong: int  # Sums that do not hold, and negative counts.


@dataclass(frozen=True)
class Record:
    """Runs, and where, when and how they were made."""

    machine: dict[str, str]
    date: str
    command: str
    runs: tuple[Run, ...]


@dataclass(frozen=True)
class Slope:
    """Seconds of processor time for each million counts: in the driver, and in everything else.

    Java's time counts as the workers': on a cluster it reads, shuffles and runs their tasks.
    """

    driver: float
    others: float
    begin: float  # Seconds of all processes that do not depend on the number of counts.

    @property
    def balance(self) -> float:
        """The number of workers that take as long as the driver."""
        return self.others / self.driver

    def on_workers(self, counts: int, workers: int) -> tuple[float, float]:
        """Return the seconds of the driver, and of workers of one core each beside each other."""
        return self.driver * counts / 1e6, self.others * counts / 1e6 / workers


def slope_of(runs: Sequence[Run]) -> Slope:
    """Return the slope between the two largest sizes."""
    small, large = sorted(runs, key=lambda run: run.counts)[-2:]
    step = (large.counts - small.counts) / 1e6
    driver, java, worker = ((large.seconds[kind] - small.seconds[kind]) / step for kind in KINDS)
    begin = sum(large.seconds.values()) - (driver + java + worker) * large.counts / 1e6
    return Slope(driver, java + worker, begin)


def measured(millions: int, method: str) -> Run:
    """Release some millions of counts in Spark on this machine, and check the sums."""
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        with duckdb.connect(config={"memory_limit": "4GB"}) as connection:
            write_rows(connection, place, millions * PARTS, PART)
            plan = TOPDOWN.replace("rows.parquet", "rows-*.parquet").replace("topdown", method)
            (place / "plan.toml").write_text(plan)
            command = [sys.executable, "-m", "congenial.cli", "release", str(place / "plan.toml")]
            command += ["--parts", "county", "--on", "spark", "--quiet", "--out"]
            clock, use = cost_of([*command, str(place / "out")], ON_TWO_CORES)
            wrong = wrong_sums(connection, place / "out" / "release.parquet")
    seconds = {kind: round(use.spent(kind), 2) for kind in KINDS}
    megabytes = {kind: round(use.megabytes[kind], 1) for kind in KINDS}
    return Run(millions * PARTS * PART, round(clock, 1), seconds, megabytes, wrong)


def read(path: Path = RECORDS["topdown"]) -> Record:
    """Read a record."""
    found = json.loads(path.read_text(encoding="utf-8"))
    runs = tuple(Run(**run) for run in found.pop("runs"))
    return Record(**found, runs=runs)


def write(record: Record, path: Path) -> None:
    """Write a record."""
    path.write_text(json.dumps(asdict(record), indent=1) + "\n", encoding="utf-8")


def table(record: Record) -> list[str]:
    """Return the lines of the table of the page about Spark."""
    heads = [*(f"{TITLES[kind]}, processor time" for kind in KINDS)]
    heads += [f"{title}, memory" for title in ("driver", "Java", "largest worker")]
    lines = ["| counts | " + " | ".join(heads) + " |", "| ---: |" + " ---: |" * len(heads)]
    for run in record.runs:
        cells = [f"{run.seconds[kind]:,.0f} s" for kind in KINDS]
        cells += [f"{run.megabytes[kind]:,.0f} MB" for kind in KINDS]
        lines.append(f"| {run.counts:,} | " + " | ".join(cells) + " |")
    return lines


def estimate(record: Record) -> list[str]:
    """Return the lines of the table of slopes, and of the time that follows on many workers."""
    slope = slope_of(record.runs)
    driver, others = slope.on_workers(MANY, WORKERS)
    return [
        f"| | each million counts | {MANY / 1e9:.1f} billion counts, {WORKERS} workers |",
        "| --- | ---: | ---: |",
        f"| driver, alone | {slope.driver:.2f} s | {driver / 3600:.1f} hours |",
        f"| workers with their Java, beside each other | {slope.others:.1f} s "
        f"| {others / 3600:.1f} hours |",
        f"| together | | {(driver + others) / 3600:.1f} hours |",
    ]


def section(record: Record) -> str:
    """Return what the page about Spark says about a record."""
    slope = slope_of(record.runs)
    facts = {name: record.machine[name] for name in ("processor", "cores", "memory")}
    first = (
        f"`{record.command}` measured this on {record.date}, on {facts['cores']} cores "
        f"({facts['processor']}) and {facts['memory']}:"
    )
    last = (
        f"{slope.balance:,.0f} workers would take as long as the driver. With more of them, the "
        "driver is the bottleneck. Starting Spark and congenial takes another "
        f"{slope.begin:,.0f} s of processor time."
    )
    parts = [first, "\n".join(table(record)), "\n".join(estimate(record)), last]
    return "\n\n".join(parts) + "\n"


def with_section(page: str, text: str, method: str = "topdown") -> str:
    """Return a page with a text between the two marks of a method."""
    begin = BEGIN.format(method)
    before, rest = page.split(begin)
    _, after = rest.split(END, maxsplit=1)
    return f"{before}{begin}\n{text}\n{END}{after}"


def draw(record: Record, stem: Path = PLOT) -> list[Path]:
    """Draw time and memory against counts as PNG and SVG; return the files."""
    import matplotlib as mpl

    mpl.use("Agg")
    mpl.rcParams["svg.hashsalt"] = "spark"  # the same picture gives the same file
    from matplotlib import pyplot as plt

    figure, (time, memory) = plt.subplots(1, 2, figsize=(9.0, 4.0), layout="constrained")
    counts = [run.counts for run in record.runs]
    for kind, mark in zip(KINDS, "os^", strict=True):
        spent = [run.seconds[kind] for run in record.runs]
        (drawn,) = time.loglog(counts, spent, marker=mark, label=TITLES[kind])
        straight = [spent[-1] * n / counts[-1] for n in counts]
        time.loglog(counts, straight, linestyle=":", linewidth=1, color=drawn.get_color())
        title = "largest worker" if kind == "worker" else TITLES[kind]
        sizes = [run.megabytes[kind] for run in record.runs]
        memory.semilogx(counts, sizes, marker=mark, label=title)
    time.set_ylabel("processor time, seconds")
    time.set_title("Dotted: exactly linear", fontsize="small", loc="right")
    memory.set_ylabel("most memory of one process, MB")
    memory.set_ylim(bottom=0)
    for axes in (time, memory):
        axes.set_xlabel("counts of the lowest level")
        axes.grid(visible=True, which="major", alpha=0.3)
        axes.legend(frameon=False)
    paths = [stem.with_suffix(".png"), stem.with_suffix(".svg")]
    figure.savefig(paths[0], dpi=150, metadata={"Software": None})
    figure.savefig(paths[1], metadata={"Date": None})
    plt.close(figure)
    return paths


@click.command(help="Release so many MILLIONS of counts in Spark, and draw what each size costs.")
@click.argument("millions", type=click.IntRange(min=1), nargs=-1)
@click.option("--method", type=click.Choice(tuple(RECORDS)), default="topdown")
def main(millions: tuple[int, ...], method: str) -> None:
    """Measure the sizes, if any, and show what the record says."""
    adopt()
    names = ("processor", "cores", "memory", "system", "Python", "congenial")
    runs = list[Run]()
    if millions:
        compile_once(method, quiet=False)  # else the first size would have it in it
    for size in millions:
        runs.append(measured(size, method))
        click.echo(f"{runs[-1]}", err=True)
        machine = {name: described()[name] for name in names}
        machine["PySpark"] = metadata.version("pyspark")
        done = (str(run.counts // (PARTS * PART)) for run in runs)
        chosen = [] if method == "topdown" else ["--method", method]
        command = " ".join(["python -m benchmarks.spark_growth", *done, *chosen])
        # a run that is stopped keeps the sizes before
        write(
            Record(machine, f"{datetime.now(UTC):%Y-%m-%d}", command, tuple(runs)), RECORDS[method]
        )
    record = read(RECORDS[method])
    if len(record.runs) < 2:
        raise click.UsageError("a slope needs two sizes; give two.")
    text = section(record)
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(with_section(page, text, method), encoding="utf-8")
    if method == "topdown":
        draw(record)
    click.echo(text)


if __name__ == "__main__":
    main()
