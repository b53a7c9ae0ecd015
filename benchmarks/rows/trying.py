"""A plan tried out before a release: `compare`, `audit` and `calibrate`.

The first case is a plan of 200,000 leaves under 200 tracts and 10 counties, nonnegative, the total
exact. `compare` draws by every method that fits it; `audit` tests the default one, and conditioning
in the second and third cases. Each command is a process of its own, whose processor time includes
its start. The last case is the noise for a goal at Washington's blocks with 16 cells each, under
the same bounds.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import congenial as cg
from benchmarks import worlds
from benchmarks.record import Case, Measure, Seen
from benchmarks.rows.pipeline import TOPDOWN, seconds_of, used_by, write_rows

# Most seconds of processor time.
COMMAND, CALIBRATION = 60.0, 3.0
COMMANDS = ("compare", "audit")
CALIBRATE = "calibrate for a goal"
GOAL = {1: 4.0, 2: 2.0, 3: 1.0, 4: 1.0, 5: 3.0}
ROUNDS = 3


def cases(quick: bool) -> tuple[Case, ...]:
    """Return the cases of the commands, and that of calibration."""
    leaves = 2_000 if quick else 200_000
    tried = (
        ("", "posterior", 1.0, COMMANDS),
        (", conditioning", "conditioning", 1.0, ("audit",)),
        (", conditioning, epsilon 0.1", "conditioning", 0.1, ("audit",)),
    )
    return (
        *(
            Case(
                "trying",
                f"{leaves:,} leaves{named}",
                tuple(Measure(f"{name}, processor time", "s", COMMAND) for name in commands),
                300.0,
                partial(_commands, leaves, method, epsilon, commands),
            )
            for named, method, epsilon, commands in tried
        ),
        Case(
            "trying",
            "Washington's blocks and cells",
            (Measure(CALIBRATE, "s", CALIBRATION),),
            120.0,
            partial(_calibrate, quick),
        ),
    )


def _commands(
    leaves: int, method: str, epsilon: float, commands: tuple[str, ...]
) -> Iterator[Seen]:
    command = [sys.executable, "-m", "congenial.cli"]
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        # in quick runs a county has one whole tract
        write_rows(place, leaves, county=max(1_000, leaves // 10))
        plan = TOPDOWN.replace("topdown", method).replace("epsilon = 1.0", f"epsilon = {epsilon}")
        (place / "plan.toml").write_text(plan)
        for name in commands:
            used = used_by([*command, name, str(place / "plan.toml")])
            memory = {"peak_MB": used.ru_maxrss / 1000.0}
            yield Seen(f"{name}, processor time", seconds_of(used), detail=memory)


def _calibrate(quick: bool) -> Iterator[Seen]:
    tree, _ = worlds.washington_cells(200 if quick else None)
    invariant = cg.consistent(tree) & cg.nonnegative() & cg.exactly("root")
    # the first 200 blocks lie in one county
    goal = {level: weight for level, weight in GOAL.items() if (tree.level == level).sum() > 1}
    times = []
    for _ in range(ROUNDS):
        began = time.process_time()
        cg.calibrate(tree, invariant, epsilon=1.0, neighbours="substitute", goal=goal)
        times.append(time.process_time() - began)
    yield Seen(CALIBRATE, min(times), low=min(times), high=max(times))
