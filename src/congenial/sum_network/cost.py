"""Predicted cost of the exact sampler of a forest: memory and time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from congenial.kernels.network.messages import MERGE
from congenial.kernels.numerics import elementwise
from congenial.sum_network.direct import split_directly
from congenial.sum_network.filling import Compiled
from congenial.sum_network.forest import SumForest
from congenial.sum_network.fourier import DIRECT_LIMIT
from congenial.sum_network.freed import free_sums
from congenial.sum_network.network import Network, compile_network
from congenial.sum_network.tables import far_bounds, near_sums, without_bounds
from congenial.sum_network.weights import SharedUnary, composable
from congenial.sum_network.windows import is_proper, place_classes, windows
from congenial.types import FloatArray

# Multiplications per second of one core (order of magnitude).
_RATE = 1e9
# Mass beyond the windows, and their width as a factor.
_CUT, _WIDTH = 1e-12, 1.04
# Multiplications that take as long as one entry of a level of all transforms of a convolution: in
# order of magnitude, and beside sums term by term with their error bounds (measured).
_TRANSFORMED, _BESIDE = 60.0, 130.0


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
    lo, hi = windows(network, place_classes(network), cut=_CUT, generous=_WIDTH)
    width = np.maximum(hi - lo + 1, 0).astype(np.float64)
    work = _products(network, width, _TRANSFORMED)
    if not shared:
        used = network.slot_class[network.slot_class >= 0]
        width, work = width[used], work[used]
    return Cost(float(width.sum()), float(work.sum()))


def work_at(compiled: Compiled) -> tuple[float, float]:
    """Estimate the multiplications that fill the tables, and those of one draw; fills no table.

    Unlike `forest_cost`, this depends on the bounds of the weights, and so on the data.
    """
    forest, weights, theta = compiled.forest, compiled.weights, compiled.theta
    far = far_bounds(forest, weights, theta, 0, _CUT)
    network = compile_network(forest, without_bounds(weights, far), theta)
    place = place_classes(network)
    lo, hi = windows(network, place, cut=_CUT, generous=_WIDTH)
    width = np.maximum(hi - lo + 1, 0).astype(np.float64)
    # a draw looks for the left part of each sum among the values that are near
    near = np.minimum(near_sums(network, place).reach, width)
    return float(_products(network, width, _BESIDE).sum()), elementwise.dot(near, network.uses)


def _products(network: Network, width: FloatArray, transformed: float) -> FloatArray:
    """Estimate the multiplications that fill the table of each class, shape (c,)."""
    left, right = width[network.left], width[network.right]
    direct, padded = left * right, 2.0 * (left + right)
    # wide tables go by transforms of the padded length, several of them
    by_transforms = transformed * padded * elementwise.log2(np.maximum(padded, 2.0))
    work = np.where(direct > DIRECT_LIMIT, by_transforms, direct)
    return np.asarray(np.where(network.ctype == MERGE, work, width))


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
