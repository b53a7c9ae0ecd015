"""Draws of a small table whose two crossing margins are exact, every count at least 0.

The sums have cycles. Some counts are fixed at each of their values in turn, and the rest is a
forest. Counts are Poisson(3), the noise is discrete Laplace of scale 2 at every count.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

import congenial as cg
from benchmarks import ours, worlds
from benchmarks.record import Case, Measure, Seen
from benchmarks.timing import rounds

SCALE = 2.0
MORE = 1000
FIRST, FURTHER = "first draw, tables included", "each further draw"


def cases(quick: bool) -> tuple[Case, ...]:
    """Return a case a size."""
    measures = Measure(FIRST, "ms"), Measure(FURTHER, "ms")
    return tuple(
        Case("crossing", f"{rows} × {columns} counts", measures, 60.0, partial(_run, rows, columns))
        for rows, columns in (((3, 3),) if quick else ((3, 4), (3, 6)))
    )


def _run(rows: int, columns: int) -> Iterator[Seen]:
    names = {"row": tuple(map(str, range(rows))), "column": tuple(map(str, range(columns)))}
    workload = cg.Workload.of(cg.Table(names, name="table"), list(names))
    counts = np.random.default_rng(worlds.SEED).poisson(3.0, (rows, columns))
    x = workload.answers(counts)
    mechanism = cg.Additive(cg.DiscreteLaplace(SCALE), workload)
    invariant = cg.consistent(workload) & cg.exactly(margins=list(names)) & cg.nonnegative()
    steps = {
        "first": lambda: ours.condition(mechanism, invariant).sample(x),
        "many": lambda: ours.condition(mechanism, invariant).sample(x, 1 + MORE),
    }
    ours.condition(mechanism, invariant).sample(x, 2)  # loads the kernels
    times = rounds(steps, repeats=7, budget=30.0)
    further = np.maximum(times["many"] - times["first"], 0.0) / MORE
    for name, taken in ((FIRST, 1e3 * times["first"]), (FURTHER, 1e3 * further)):
        yield Seen(name, float(np.median(taken)), float(taken.min()), float(taken.max()))
