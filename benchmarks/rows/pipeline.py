"""The whole job, rows to files and back: `release`, `verify` and `explain` beside plain counting.

A million leaves under 1,000 tracts and 20 counties, three million rows, the total exact. Each step
is a process of its own. Its processor time and its largest memory are those of the whole process,
including its start. The peer counts the rows, adds noise, and writes the same two files.

The third case is a release by TopDown, at once and in ten parts. The fourth is a table of 8 races
by 2 ages at 24,960 blocks, groups, tracts and counties, with four margins each: 706,483 crossing
counts, by TopDown with Gaussian noise.
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

from benchmarks import worlds
from benchmarks.record import Case, Measure, Seen
from benchmarks.timing import ratio

STEPS = ("explain", "release", "verify")
MOST_TIMES, MOST_MEMORY, MOST_OF_MANY = 3.0, 1000.0, 4000.0
ROUNDS = 3
PLAN = """
data = { source = "rows.parquet" }
hierarchy = { root = "state", levels = ["county", "tract", "block"], domain = "places.parquet" }
privacy = { neighbours = "substitute", epsilon = 1.0 }
invariants = { publish_exactly = ["root"] }
method = { name = "conditioning" }
"""
TOPDOWN = PLAN.replace("conditioning", "topdown").replace(
    "] }\nmethod", "], nonnegative = true }\nmethod"
)
# Most that a release in parts takes, as a multiple of one at once.
PARTS, PARTS_MEMORY, PARTS_TIME = 10, 0.5, 1.5
RACES, AGES = "abcdefgh", ("minor", "adult")
# Most seconds of processor time of each step, crossing counts.
SECONDS = {"explain": 10.0, "release": 60.0, "verify": 60.0}
CROSSING = """
data = { source = "rows.csv", weight = "people" }
hierarchy = { root = "us", levels = ["county", "tract", "group", "block"], domain = "places.csv" }
privacy = { neighbours = "substitute", epsilon = 4.0, delta = 1e-8, noise = "discrete-gaussian" }
invariants = { nonnegative = true, publish_exactly = ["root: total"] }
method = { name = "topdown" }
release = { publish = ["table", "measurements"] }
[table]
attributes.race = ["a", "b", "c", "d", "e", "f", "g", "h"]
attributes.age = ["minor", "adult"]
margins = ["total", "race", "age", "race by age"]
"""


def cases(quick: bool) -> tuple[Case, ...]:
    """Return the cases: trees and a table."""
    leaves, many, more = (2_000, 4_000, 10_000) if quick else (1_000_000, 10_000_000, 5_000_000)
    blocks = 240 if quick else 24_960
    alone = tuple(Measure(f"{step}, processor time", "s", most) for step, most in SECONDS.items())
    return (
        Case(
            "pipeline",
            f"{leaves:,} leaves",
            _measures(MOST_TIMES, MOST_MEMORY),
            240.0,
            partial(_beside, leaves, ROUNDS),
        ),
        Case(
            "pipeline",
            f"{many:,} leaves",
            _measures(None, MOST_OF_MANY),
            480.0,
            partial(_beside, many, 1),
        ),
        Case(
            "pipeline",
            f"{more:,} leaves, in parts",
            (
                Measure("release, peak memory over that at once", "×", PARTS_MEMORY),
                Measure("release, time over that at once", "×", PARTS_TIME),
            ),
            240.0,
            partial(_in_parts, more),
        ),
        Case("pipeline", f"{blocks:,} blocks, crossing", alone, 120.0, partial(_crossing, blocks)),
    )


def _measures(times: float | None, memory: float) -> tuple[Measure, ...]:
    """Return the measures of each step, with their targets."""
    return tuple(
        measure
        for step in STEPS
        for measure in (
            Measure(f"{step}, time over plain files'", "×", times),
            Measure(f"{step}, peak memory", "MB", memory),
        )
    )


def _beside(leaves: int, rounds: int) -> Iterator[Seen]:
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        write_rows(place, leaves)
        (place / "plan.toml").write_text(PLAN)
        plain = [sys.executable, "-m", "benchmarks.peers.plain_files"]
        plain += [str(place / name) for name in ("rows.parquet", "places.parquet", "plain")]
        steps = {"plain": plain, **_steps(place)}
        seen: dict[str, list[struct_rusage]] = {name: [] for name in steps}
        for _ in range(rounds):
            for name, step in steps.items():
                seen[name].append(used_by(step))
    times = {name: np.array(list(map(seconds_of, each))) for name, each in seen.items()}
    for name in STEPS:
        yield ratio(f"{name}, time over plain files'", times[name], times["plain"])
        peak = max(used.ru_maxrss for used in seen[name]) / 1000.0
        yield Seen(f"{name}, peak memory", peak)


def _in_parts(leaves: int) -> Iterator[Seen]:
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        write_rows(place, leaves, county=leaves // PARTS)
        (place / "plan.toml").write_text(TOPDOWN)
        release = _steps(place)["release"]
        whole, parts = used_by(release), used_by([*release, "--parts", "county"])
    yield Seen("release, peak memory over that at once", parts.ru_maxrss / whole.ru_maxrss)
    yield Seen("release, time over that at once", seconds_of(parts) / seconds_of(whole))


def _crossing(blocks: int) -> Iterator[Seen]:
    rng = np.random.default_rng(worlds.SEED)
    people = rng.lognormal(2.5, 1.3, size=blocks)[:, None] * rng.dirichlet(np.full(16, 0.3), blocks)
    counts = rng.poisson(people)
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        names = [f"c{b // 4_992},t{b // 104},g{b // 26},b{b}" for b in range(blocks)]
        listed = "\n".join(["county,tract,group,block", *names, ""])
        (place / "places.csv").write_text(listed)
        rows = [
            f"{names[b]},{RACES[cell // 2]},{AGES[cell % 2]},{counts[b, cell]}"
            for b, cell in np.argwhere(counts).tolist()
        ]
        header = "county,tract,group,block,race,age,people"
        (place / "rows.csv").write_text("\n".join([header, *rows, ""]))
        (place / "plan.toml").write_text(CROSSING)
        for name, step in _steps(place).items():
            used = used_by(step)
            memory = {"peak_MB": used.ru_maxrss / 1000.0}
            yield Seen(f"{name}, processor time", seconds_of(used), detail=memory)


def _steps(place: Path) -> dict[str, list[str]]:
    command = [sys.executable, "-m", "congenial.cli"]
    plan, out = str(place / "plan.toml"), str(place / "out")
    return {
        "explain": [*command, "explain", plan],
        "release": [*command, "release", plan, "--out", out, "--overwrite"],
        "verify": [*command, "verify", out],
    }


def seconds_of(used: struct_rusage) -> float:
    """Return the processor time of a process that has ended."""
    return used.ru_utime + used.ru_stime


def write_rows(place: Path, leaves: int, county: int = 50_000) -> None:
    """Write the places, and three rows a place on average, more at the first."""
    names = f"'c' || (i // {county}) AS county, 't' || (i // 1_000) AS tract, 'b' || i AS block"
    drawn = f"SELECT floor({leaves} * pow(random(), 2))::BIGINT AS i FROM range({3 * leaves})"
    with duckdb.connect() as connection:
        connection.execute("SELECT setseed(0.5)")
        for name, numbers in (
            ("places", f"SELECT range AS i FROM range({leaves})"),
            ("rows", drawn),
        ):
            target = place / f"{name}.parquet"
            connection.execute(f"COPY (SELECT {names} FROM ({numbers})) TO '{target}'")


def used_by(command: Sequence[str]) -> struct_rusage:
    """Run a command, and return what its process used."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{command[2]} {command[3]} ended with {process.returncode}")
    return used
