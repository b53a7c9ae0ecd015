"""The whole job, rows to files and back: `release`, `verify` and `explain` beside plain counting.

A million leaves under 1,000 tracts and 20 counties, three million rows, the total exact. Each step
is a process of its own; its processor time and its largest memory are those of the whole process,
start included. The peer counts and adds noise, and writes the same two files.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from resource import struct_rusage

import duckdb
import numpy as np

from benchmarks.record import Case, Measure, Seen
from benchmarks.timing import ratio

STEPS = ("explain", "release", "verify")
MOST_TIMES, MOST_MEMORY = 3.0, 1000.0
ROUNDS = 3
PLAN = """
data = { source = "rows.parquet" }
hierarchy = { root = "state", levels = ["county", "tract", "block"], domain = "places.parquet" }
privacy = { neighbours = "substitute", epsilon = 1.0 }
invariants = { publish_exactly = ["root"] }
method = { name = "conditioning" }
"""


def cases(quick: bool) -> tuple[Case, ...]:
    """Return one case."""
    leaves = 2_000 if quick else 1_000_000
    measures = tuple(
        measure
        for step in STEPS
        for measure in (
            Measure(f"{step}, time over plain files'", "×", MOST_TIMES),
            Measure(f"{step}, peak memory", "MB", MOST_MEMORY),
        )
    )
    return (Case("pipeline", f"{leaves:,} leaves", measures, 240.0, partial(_run, leaves)),)


def _run(leaves: int) -> Iterator[Seen]:
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        _write(place, leaves)
        (place / "plan.toml").write_text(PLAN)
        command = [sys.executable, "-m", "congenial.cli"]
        steps = {
            "plain": [sys.executable, "-m", "benchmarks.peers.plain_files"]
            + [str(place / name) for name in ("rows.parquet", "places.parquet", "plain")],
            "explain": [*command, "explain", str(place / "plan.toml")],
            "release": [
                *(*command, "release", str(place / "plan.toml")),
                *("--out", str(place / "out"), "--overwrite"),
            ],
            "verify": [*command, "verify", str(place / "out")],
        }
        seen: dict[str, list[struct_rusage]] = {name: [] for name in steps}
        for _ in range(ROUNDS):
            for name, step in steps.items():
                seen[name].append(_used(step))
    times = {
        name: np.array([used.ru_utime + used.ru_stime for used in each])
        for name, each in seen.items()
    }
    for name in STEPS:
        yield ratio(f"{name}, time over plain files'", times[name], times["plain"])
        peak = max(used.ru_maxrss for used in seen[name]) / 1000.0
        yield Seen(f"{name}, peak memory", peak)


def _write(place: Path, leaves: int) -> None:
    """Write the places, and three rows a place on average, more at the first."""
    names = "'c' || (i // 50_000) AS county, 't' || (i // 1_000) AS tract, 'b' || i AS block"
    drawn = f"SELECT floor({leaves} * pow(random(), 2))::BIGINT AS i FROM range({3 * leaves})"
    with duckdb.connect() as connection:
        connection.execute("SELECT setseed(0.5)")
        for name, numbers in (
            ("places", f"SELECT range AS i FROM range({leaves})"),
            ("rows", drawn),
        ):
            target = place / f"{name}.parquet"
            connection.execute(f"COPY (SELECT {names} FROM ({numbers})) TO '{target}'")


def _used(command: Sequence[str]) -> struct_rusage:
    """Run a command, and return what its process used."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{command[2]} {command[3]} ended with {process.returncode}")
    return used
