"""One draw of a tree 1-50-2,000-50,000-1,000,000 with noise at every node, root pinned."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from benchmarks import ours, worlds
from benchmarks.ours import measures
from benchmarks.record import Case, Seen

FANS = (50, 40, 25, 20)
QUICK_FANS = (3, 2, 2, 2)
SCALES = (2.0, 10.0)


def cases(quick: bool) -> tuple[Case, ...]:
    """Return a case a scale."""
    return tuple(
        Case(
            "everywhere",
            f"scale {scale:g}",
            measures(6.0),
            60.0,
            partial(_run, QUICK_FANS if quick else FANS, scale),
        )
        for scale in SCALES
    )


def _run(fans: tuple[int, ...], scale: float) -> Iterator[Seen]:

    tree = worlds.grown(fans)
    yield from ours.beside_noise(tree, worlds.poisson(tree), scale, bounded=False, budget=25.0)
