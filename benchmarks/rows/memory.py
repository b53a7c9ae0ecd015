"""Peak memory of the first draw, in bytes a leaf, at a million leaves."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import congenial as cg
from benchmarks import ours, worlds
from benchmarks.machine import peak_bytes
from benchmarks.record import Case, Measure, Seen
from benchmarks.rows.everywhere import FANS, QUICK_FANS

SCALE = 2.0
TARGET = 200.0


def cases(quick: bool) -> tuple[Case, ...]:
    """Return a flat case, and the tree without and with bounds."""
    measures = (
        Measure("peak, tree and counts included", "bytes/leaf", TARGET),
        Measure("of which tree and counts", "bytes/leaf"),
    )
    tree = QUICK_FANS if quick else FANS
    flat = (2**8 if quick else 2**20,)
    return tuple(
        Case("memory", name, measures, 60.0, partial(_run, fans, bounded))
        for name, fans, bounded in (
            ("one pinned total", flat, False),
            ("tree, equalities only", tree, False),
            ("tree, every count ≥ 0", tree, True),
        )
    )


def _run(fans: tuple[int, ...], bounded: bool) -> Iterator[Seen]:

    ours.warm(bounded=False)
    ours.warm(bounded=True)
    start = peak_bytes()
    tree = worlds.grown(fans)
    x = worlds.poisson(tree)
    built = peak_bytes()
    mechanism = cg.Additive(cg.DiscreteLaplace(SCALE), tree)
    invariant = ours.tree_invariant(tree, pinned=True, bounded=bounded)
    ours.first_draw(mechanism, invariant, x)
    leaves = tree.leaves.size
    yield Seen(
        "peak, tree and counts included",
        (peak_bytes() - start) / leaves,
        detail={"interpreter_and_libraries_bytes": float(start), "leaves": float(leaves)},
    )
    yield Seen("of which tree and counts", (built - start) / leaves)
