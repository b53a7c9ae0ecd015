"""Independent draws a second of the 270-node taxi tree, noise at every node."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

import congenial as cg
from benchmarks import ours, worlds
from benchmarks.record import Case, Measure, Seen
from benchmarks.timing import rounds

SCALE = 2.0
TARGET = 50_000.0


def cases(quick: bool) -> tuple[Case, ...]:
    """Return a case with equalities only and one with every count at least 0."""
    measures = (
        Measure("independent draws, upward pass included", "draws/s", TARGET, "higher"),
        Measure("upward pass and one draw", "ms"),
    )
    return tuple(
        Case("taxi", name, measures, 60.0, partial(_run, bounded, quick))
        for name, bounded in (("equalities only", False), ("every count ≥ 0", True))
    )


def _run(bounded: bool, quick: bool) -> Iterator[Seen]:

    ours.warm(bounded=bounded)
    tree, x = worlds.taxi()
    mechanism = cg.Additive(cg.DiscreteLaplace(SCALE), tree)
    invariant = ours.tree_invariant(tree, pinned=False, bounded=bounded)
    draws = 200 if quick else 50_000
    steps = {
        "many": lambda: ours.condition(mechanism, invariant).sample(x, draws),
        "one": lambda: ours.first_draw(mechanism, invariant, x),
    }
    times = rounds(steps, repeats=5, budget=20.0)
    each = draws / times["many"]
    yield Seen(
        "independent draws, upward pass included",
        float(np.median(each)),
        low=float(each.min()),
        high=float(each.max()),
        detail={"draws": float(draws), "best_s": float(times["many"].min())},
    )
    yield Seen("upward pass and one draw", 1e3 * float(np.median(times["one"])))
