"""The same draws with every count at least 0: Poisson(3) leaves, a state's census blocks and cells.

A plan of epsilon 1 over five levels has noise of scale 10 to 20.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from benchmarks import ours, worlds
from benchmarks.ours import measures
from benchmarks.record import Case, Seen
from benchmarks.rows.everywhere import FANS, QUICK_FANS

SCALE = 2.0
FIRST_TARGET, FURTHER_TARGET = 60.0, 10.0
WIDE, WIDE_TARGET = (0.5, 2.0, 10.0, 20.0, 50.0), 100.0
# Scales for seven levels, 4.9 million nodes, and for blocks alone, most of which are not empty.
DEEP, FULL = (0.5, 10.0, 50.0), (0.5, 10.0, 50.0)


def cases(quick: bool) -> tuple[Case, ...]:
    """Return a case of made-up and one of real counts."""
    targets = measures(FIRST_TARGET, FURTHER_TARGET)
    return (
        Case("bounded", "Poisson(3) leaves", targets, 120.0, partial(_poisson, quick)),
        Case("bounded", "Washington's blocks", targets, 90.0, partial(_washington, quick)),
        *(
            Case("bounded", f"{name}, scale {scale:g}", measures(WIDE_TARGET), seconds, make)
            for name, scale, seconds, make in _wide(quick)
        ),
    )


def _wide(quick: bool) -> Iterator[tuple[str, float, float, Callable[[], Iterator[Seen]]]]:
    """Yield name, scale, budget in seconds, and what is timed, for scales of real plans."""
    for scale in FULL:
        yield "Washington's blocks", scale, 90.0, partial(_washington, quick, scale)
    for scale in WIDE:
        yield "Washington's blocks and cells", scale, 240.0, partial(_cells, quick, scale)
    deep = partial(_cells, quick, races=True, repeats=6, budget=300.0)
    for scale in DEEP:
        yield "Washington's blocks, races and ages", scale, 420.0, partial(deep, scale)


def _poisson(quick: bool) -> Iterator[Seen]:

    tree = worlds.grown(QUICK_FANS if quick else FANS)
    yield from ours.beside_noise(tree, worlds.poisson(tree), SCALE, bounded=True, budget=60.0)


def _washington(quick: bool, scale: float = SCALE) -> Iterator[Seen]:

    tree, x = worlds.washington(200 if quick else None)
    yield from ours.beside_noise(tree, x, scale, bounded=True, budget=40.0)


def _cells(
    quick: bool, scale: float, *, races: bool = False, repeats: int = 3, budget: float = 120.0
) -> Iterator[Seen]:

    tree, x = worlds.washington_cells(200 if quick else None, races=races)
    yield from ours.beside_noise(tree, x, scale, bounded=True, repeats=repeats, budget=budget)
