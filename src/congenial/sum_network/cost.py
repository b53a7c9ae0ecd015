"""Predicted cost of the exact sampler of a forest: memory and time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from congenial.kernels.network.messages import MERGE
from congenial.kernels.numerics import elementwise
from congenial.sum_network.direct import split_directly
from congenial.sum_network.forest import SumForest
from congenial.sum_network.fourier import DIRECT_LIMIT
from congenial.sum_network.freed import free_sums
from congenial.sum_network.network import compile_network
from congenial.sum_network.weights import SharedUnary, composable
from congenial.sum_network.windows import is_proper, place_classes, windows

# Multiplications per second of one core (order of magnitude).
_RATE = 1e9


@dataclass(frozen=True)
class Cost:
    """Size of the tables and number of multiplications that fill them."""

    entries: float
    work: float

    def __str__(self) -> str:
        """Return both in words."""
        return (
            f"{bytes_text(10.0 * self.entries)} ({self.entries:.1e} table entries) and "
            f"{time_text(self.work)} ({self.work:.1e} multiplications)"
        )


def forest_cost(
    forest: SumForest, weights: SharedUnary, *, shared: bool, compose: bool
) -> Cost | None:
    """Estimate from the sums and the noise alone; no table is filled.

    Returns None if only bounds make the law finite, because the cost then depends on the data.
    """
    if not is_proper(forest, weights):
        return None
    if found := free_sums(forest, weights):
        forest, weights, _ = found
    composed = composable(weights.unary) if compose else None
    network = compile_network(forest, weights, np.zeros(forest.m), composed)
    if compose:
        network = split_directly(network)
    lo, hi = windows(network, place_classes(network), cut=1e-12, generous=1.04)
    width = np.maximum(hi - lo + 1, 0).astype(np.float64)
    merges = network.ctype == MERGE
    direct = width[network.left] * width[network.right]
    # wide tables go by transforms of the padded length, several of them
    padded = 2.0 * (width[network.left] + width[network.right])
    work = np.where(
        direct > DIRECT_LIMIT, 60.0 * padded * elementwise.log2(np.maximum(padded, 2.0)), direct
    )
    work = np.where(merges, work, width)
    if not shared:
        used = network.slot_class[network.slot_class >= 0]
        width, work = width[used], work[used]
    return Cost(float(width.sum()), float(work.sum()))


def work_text(work: float) -> str:
    """Return a number of multiplications, and the time that they take."""
    return f"{work:.1e} multiplications ({time_text(work)})"


def time_text(work: float) -> str:
    """Return the order of magnitude of the time of `work` multiplications."""
    seconds = work / _RATE
    limits = {1e-2: "milliseconds", 1.0: "less than a second", 10.0: "seconds"}
    longer = "about a minute" if seconds <= 90.0 else f"about {seconds / 60.0:.0f} minutes"
    return next((text for limit, text in limits.items() if seconds <= limit), longer)


def bytes_text(count: float) -> str:
    """Return a number of bytes in a unit that fits."""
    unit = "B"
    for larger in ("KiB", "MiB", "GiB"):
        if count >= 1024.0:
            count, unit = count / 1024.0, larger
    # three digits, without an exponent from 1000 on
    return f"{count:.3g} {unit}" if count < 999.5 else f"{count:.0f} {unit}"
