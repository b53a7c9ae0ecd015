"""Timing that is fair on a noisy machine: steps take turns, and their ratios are compared.

The clock counts the processor time of this process, which runs on one core: time that other
processes take away is left out for ours and for the peer alike.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from benchmarks.record import Seen

Times = dict[str, npt.NDArray[np.float64]]
clock = time.process_time


def rounds(steps: Mapping[str, Callable[[], object]], *, repeats: int, budget: float) -> Times:
    """Time each step in turn, round after round.

    Parameters
    ----------
    steps : mapping of str to callable
        In the order in which a round takes them.
    repeats : int
        Number of rounds at most. The first of three or more is thrown away: it finds caches cold.
    budget : float
        Seconds of processor time; no round is begun that would likely end after them, but one is
        always made.

    Returns
    -------
    dict of str to ndarray of float64, shape (rounds kept,)
        Seconds of processor time.
    """
    times: dict[str, list[float]] = {name: [] for name in steps}
    begin, done = clock(), 0
    enabled = gc.isenabled()
    try:
        for done in range(1, repeats + 1):
            for name, step in steps.items():
                gc.collect()
                gc.disable()
                start = clock()
                step()
                times[name].append(clock() - start)
                if enabled:
                    gc.enable()
            if (clock() - begin) * (done + 1) / done > budget:
                break
    finally:
        if enabled:
            gc.enable()
    cold = 1 if done >= 3 else 0
    return {name: np.array(seconds[cold:]) for name, seconds in times.items()}


def repeated(step: Callable[[], object], times: int) -> Callable[[], None]:
    """Return a step that takes another so many times and lets go of what each gives."""

    def steps() -> None:
        for _ in range(times):
            step()

    return steps


def ratio(
    measure: str, ours: npt.NDArray[np.float64], peer: npt.NDArray[np.float64], note: str = ""
) -> Seen:
    """Return the median over the rounds of ours / peer, with its range and the best times."""
    each = ours / np.maximum(peer, 1e-9)
    return Seen(
        measure,
        float(np.median(each)),
        low=float(each.min()),
        high=float(each.max()),
        detail={
            "ours_best_s": float(ours.min()),
            "peer_best_s": float(peer.min()),
            "rounds": float(each.size),
        },
        note=note,
    )


def faster(
    measure: str, ours: npt.NDArray[np.float64], peer: npt.NDArray[np.float64], note: str = ""
) -> Seen:
    """Return the median over the rounds of peer / ours, with its range and the best times."""
    seen = ratio(measure, peer, ours, note)
    best = {"ours_best_s": float(ours.min()), "peer_best_s": float(peer.min())}
    return replace(seen, detail=seen.detail | best)
