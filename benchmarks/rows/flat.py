"""One draw of 2^20 leaves under one pinned total, equalities only, at four scales."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from benchmarks import ours, worlds
from benchmarks.ours import measures
from benchmarks.record import Case, Seen

SCALES = (0.5, 2.0, 10.0, 1000.0)


def cases(quick: bool) -> tuple[Case, ...]:
    """Return a case a scale."""
    leaves = 2**8 if quick else 2**20
    return tuple(
        Case(
            "flat",
            f"{leaves:,} leaves, scale {scale:g}",
            measures(3.0),
            60.0,
            partial(_run, leaves, scale),
        )
        for scale in SCALES
    )


def _run(leaves: int, scale: float) -> Iterator[Seen]:

    tree = worlds.grown([leaves])
    yield from ours.beside_noise(tree, worlds.poisson(tree), scale, bounded=False, budget=25.0)
