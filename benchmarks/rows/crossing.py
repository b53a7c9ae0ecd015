"""Draws of a small table whose two crossing margins are exact, every count at least 0.

The sums have cycles. A few counts are left out and follow from the others; what they must be is
accepted by its weight. Counts are Poisson(3), the noise is discrete Laplace at every count.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

import congenial as cg
from benchmarks import ours, worlds
from benchmarks.record import Case, Measure, Seen
from benchmarks.timing import rounds

SIZES = (3, 4, 2.0), (3, 6, 2.0), (4, 6, 20.0), (6, 12, 20.0), (3, 4, 500.0)
MORE = 1000
FIRST, FURTHER = "first draw, tables included", "each further draw"


def cases(quick: bool) -> tuple[Case, ...]:
    """Return a case a size."""
    measures = Measure(FIRST, "ms"), Measure(FURTHER, "ms")
    return tuple(
        Case(
            "crossing",
            f"{rows} × {columns} counts, scale {scale:g}",
            measures,
            60.0,
            partial(_run, rows, columns, scale),
        )
        for rows, columns, scale in (SIZES[:1] if quick else SIZES)
    )


def _run(rows: int, columns: int, scale: float) -> Iterator[Seen]:
    names = {"row": tuple(map(str, range(rows))), "column": tuple(map(str, range(columns)))}
    workload = cg.Workload.of(cg.Table(names, name="table"), list(names))
    counts = np.random.default_rng(worlds.SEED).poisson(3.0, (rows, columns))
    x = workload.answers(counts)
    mechanism = cg.Additive(cg.DiscreteLaplace(scale), workload)
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
