"""The table of least expected absolute error, once the laws of all counts are known.

The trees, the noise and the projections are those of row `posterior`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

import congenial as cg
from benchmarks import worlds
from benchmarks.record import Case, Measure, Seen
from benchmarks.rows import posterior
from benchmarks.timing import ratio, repeated, rounds
from congenial.inference.point_tables import chances_of_draws, least_absolute

TABLE = "table, over the projection by L1"
# Draws over which the error is averaged.
_DRAWS = 101


def cases(quick: bool) -> tuple[Case, ...]:
    """Return the trees of row `posterior`."""
    return tuple(
        Case("point_table", case.name, (Measure(TABLE, "×"),), 60.0, partial(_run, case.name))
        for case in posterior.cases(quick)
    )


def _run(name: str) -> Iterator[Seen]:
    best, invariant, y = posterior.noisy(name)
    source = cg.seeded(worlds.SEED)
    draws = best.law(y).sample(_DRAWS, source)
    ends = np.where(best.resolved.pinned, draws[0], 0.0), np.full(y.size, np.inf)
    chances = chances_of_draws(draws)
    projection = cg.image(best.mechanism, invariant, "l1", integer=True)
    steps: dict[str, Callable[[], object]] = {
        "ours": partial(least_absolute, best.tree, chances, draws[0], ends, source),
        "L1": repeated(partial(projection.apply, y, source), 5),
    }
    for step in steps.values():
        step()  # loads the kernels
    times = rounds(steps, repeats=7, budget=20.0)
    yield ratio(TABLE, times["ours"], times["L1"] / 5)
