"""Error margins of all counts, and of one sum, at Washington's blocks with 16 cells each.

Noise is discrete Laplace at each of the 3.33 million nodes and the root is exact. The time includes
the tables. The sum has five nodes; its margin comes from 9,999 simulated releases.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import cast

import numpy as np

import congenial as cg
from benchmarks import worlds
from benchmarks.record import Case, Measure, Seen
from benchmarks.timing import rounds
from congenial.conditioning.laws.forest_sampler import Conditioned
from congenial.inference import error_margin_of_sum, error_margins

SCALES = (2.0, 10.0, 20.0, 50.0)
MARGINS, SUM = "error margins of all counts", "error margin of a sum of five counts"
# Most seconds of processor time.
MOST = 10.0


def cases(quick: bool) -> tuple[Case, ...]:
    """Return a case a scale."""
    measures = (Measure(MARGINS, "s", MOST), Measure(SUM, "s", MOST))
    return tuple(
        Case("margins", f"scale {scale:g}", measures, 120.0, partial(_run, scale, quick))
        for scale in SCALES
    )


def _run(scale: float, quick: bool) -> Iterator[Seen]:
    tree, _ = worlds.washington_cells(200 if quick else None)
    summed = [*np.flatnonzero(tree.level == 1)[:1].tolist(), *tree.leaves[:4].tolist()]

    def conditioned(tree: cg.Tree = tree) -> Conditioned:
        mechanism = cg.Additive(cg.DiscreteLaplace(scale), tree)
        found = cg.condition(mechanism, cg.consistent(tree) & cg.exactly([0]))
        return cast(Conditioned, found)

    steps: dict[str, Callable[[], object]] = {
        MARGINS: lambda: error_margins(conditioned()),
        SUM: lambda: error_margin_of_sum(conditioned(), summed),
    }
    steps[SUM]()  # loads the kernels
    error_margins(conditioned(worlds.washington_cells(200)[0]))
    for name, seconds in rounds(steps, repeats=3, budget=60.0).items():
        yield Seen(name, float(np.median(seconds)), float(seconds.min()), float(seconds.max()))
