"""Whole-tree rounding of a point that adds up, root exact, every count at least 0.

Our time is that of all of `project(..., integer=True)` with a kept projector. It finds the point
again, the integers of least summed change and their certificate, and fetches random words for ties.
HiGHS gets the matrices of its programme ready-made. Unbiased rounding is that of `round_unbiased`,
including its setup.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

import congenial as cg
from benchmarks.record import Case, Measure, Seen
from benchmarks.rows.imaging import noisy
from benchmarks.timing import faster, rounds
from congenial.imaging.closest import Projector
from congenial.invariants.written import resolve_invariant

TARGET = 200.0
OVER = "HiGHS's time over ours"
EXCESS = "our summed change less HiGHS's"
UNBIASED = "unbiased rounding"
AGAIN = 5


def cases(quick: bool) -> tuple[Case, ...]:
    """Return one case."""
    leaves = 1_000 if quick else 100_000
    measures = (
        Measure(OVER, "×", TARGET, "higher"),
        Measure(EXCESS, "", 1e-3),
        Measure(UNBIASED, "ns/leaf"),
    )
    return (Case("rounding", f"{leaves:,} leaves", measures, 120.0, partial(_run, leaves)),)


def _run(leaves: int) -> Iterator[Seen]:
    from benchmarks.peers import integers

    tree, y, invariant = noisy(leaves)
    n = len(tree)
    z = np.asarray(cg.project(y, invariant), dtype=np.float64)
    projector = Projector(resolve_invariant(invariant, n, tree), np.ones(n), "l2", integer=True)
    ours, best = projector.apply(z), integers.rounded(tree, z)
    cg.imaging.round_unbiased(z, tree)
    steps = {
        "ours": lambda: [projector.apply(z) for _ in range(AGAIN)],
        "highs": lambda: integers.rounded(tree, z),
        "unbiased": lambda: [cg.imaging.round_unbiased(z, tree) for _ in range(AGAIN)],
    }
    times = rounds(steps, repeats=5, budget=60.0)
    yield faster(OVER, times["ours"] / AGAIN, times["highs"])
    yield Seen(EXCESS, float(np.abs(ours - z).sum() - np.abs(best - z).sum()))
    yield Seen(UNBIASED, 1e9 * float(np.median(times["unbiased"])) / AGAIN / leaves)
