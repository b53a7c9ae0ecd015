"""Noise alone with its exact law, from the operating system's words: ours and OpenDP's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

import congenial as cg
from benchmarks.record import Case, Measure, Seen
from benchmarks.timing import ratio, rounds
from congenial.noise.law import find_law

LAWS = ("discrete-laplace", "discrete-gaussian")
SCALES = (1.0, 10.0, 1000.0)
MEASURE, MOST = "a draw over OpenDP's", 0.1


def cases(quick: bool) -> tuple[Case, ...]:
    """Return a case for each law and scale."""
    entries = 200 if quick else 100_000
    return tuple(
        Case(
            "noise",
            f"{entries:,} entries, {law}, scale {scale:g}",
            (Measure(MEASURE, "×", MOST),),
            60.0,
            partial(_run, entries, law, scale),
        )
        for law in LAWS
        for scale in SCALES
    )


def _run(entries: int, law: str, scale: float) -> Iterator[Seen]:
    from benchmarks.peers import opendp_noise

    ours = cg.Additive(find_law(law)(scale), entries)
    zeros = np.zeros(entries, dtype=np.int64)
    ours.sample(zeros)  # compiles
    steps: dict[str, Callable[[], object]] = {
        "ours": partial(ours.sample, zeros),
        "peer": opendp_noise.noise(law, entries, scale),
    }
    times = rounds(steps, repeats=9, budget=30.0)
    yield ratio(MEASURE, times["ours"], times["peer"])
