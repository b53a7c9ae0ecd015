"""One draw of three leaves under wide noise, every count at least 0: transforms fill tables."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

import congenial as cg
from benchmarks import ours, worlds
from benchmarks.record import Case, Measure, Seen
from benchmarks.timing import rounds

FIRST = "first draw, tables included"
SCALES = (3_000.0, 10_000.0)


def cases(quick: bool) -> tuple[Case, ...]:
    """Return a case a scale."""
    return tuple(
        Case("wide", f"scale {scale:,.0f}", (Measure(FIRST, "ms"),), 60.0, partial(_run, scale))
        for scale in ((100.0,) if quick else SCALES)
    )


def _run(scale: float) -> Iterator[Seen]:
    tree = worlds.grown((3,))
    mechanism = cg.Additive(cg.DiscreteLaplace(scale), tree)
    invariant = ours.tree_invariant(tree, pinned=False, bounded=True)
    x = worlds.poisson(tree)
    ours.first_draw(mechanism, invariant, x)  # loads the kernels
    step = {"first": partial(ours.first_draw, mechanism, invariant, x)}
    taken = 1e3 * rounds(step, repeats=7, budget=20.0)["first"]
    yield Seen(FIRST, float(np.median(taken)), float(taken.min()), float(taken.max()))
