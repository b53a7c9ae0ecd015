"""What the exact sampler of a forest will cost, told before it is spent."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from congenial.invariants.resolved import ResolvedInvariant
from congenial.kernels.network.messages import MERGE
from congenial.noise.additive import Additive
from congenial.sum_network.direct import split_directly
from congenial.sum_network.forest import SumForest
from congenial.sum_network.fourier import DIRECT_LIMIT
from congenial.sum_network.network import compile_network
from congenial.sum_network.weights import SharedUnary, composable, share_noise
from congenial.sum_network.windows import improper_ends, place_classes, windows

# Multiplications a second of one core, to the order of magnitude.
RATE = 1e9


@dataclass(frozen=True)
class Cost:
    """Size of the tables and number of multiplications that fill them.

    Attributes
    ----------
    entries : float
    work : float
    """

    entries: float
    work: float

    def __str__(self) -> str:
        """Return both in words."""
        return (
            f"{self.entries:.1e} table entries ({told_bytes(10.0 * self.entries)}) and "
            f"{self.work:.1e} multiplications ({told_time(self.work / RATE)})"
        )


def forest_cost(
    forest: SumForest, weights: SharedUnary, *, shared: bool, compose: bool, cut: float = 1e-12
) -> Cost | None:
    """Estimate from the sums and the noise alone; no table is filled.

    Returns
    -------
    Cost or None
        None where bounds alone hold the law, so that nothing can be said without the data.
    """
    if any(improper_ends(forest, weights)):
        return None
    composed = composable(weights.unary) * np.int8(compose)
    network = compile_network(forest, weights, np.zeros(forest.m), composed)
    if compose:
        network = split_directly(network)
    lo, hi = windows(network, place_classes(network), cut=cut, generous=1.04)
    width = np.maximum(hi - lo + 1, 0).astype(np.float64)
    merges = network.ctype == MERGE
    direct = width[network.left] * width[network.right]
    # wide tables go by transforms of the padded length, several of them
    padded = 2.0 * (width[network.left] + width[network.right])
    work = np.where(direct > DIRECT_LIMIT, 60.0 * padded * np.log2(np.maximum(padded, 2.0)), direct)
    work = np.where(merges, work, width)
    if shared:
        return Cost(float(width.sum()), float(work.sum()))
    used = network.slot_class[network.slot_class >= 0]
    return Cost(float(width[used].sum()), float(work[used].sum()))


def data_free_weights(
    mechanism: Additive, resolved: ResolvedInvariant, fixed: npt.NDArray[np.bool_], size: int
) -> SharedUnary:
    """Weights without bounds, but where a query is not measured and bounds alone hold it."""
    scale = mechanism.noise.spread
    width = np.where(np.isfinite(scale), np.inf, resolved.hi - resolved.lo)
    width = np.where(np.isfinite(width), np.floor(width), np.inf)
    slacks = np.full(fixed.size - resolved.n, np.inf)
    if slacks.size:
        scale = np.append(mechanism.scales, slacks)
        width = np.append(width, slacks)
    return share_noise(mechanism.noise.kind, scale, (-width, width), fixed, size)


def told_cost(
    mechanism: Additive,
    resolved: ResolvedInvariant,
    forest: SumForest,
    fixed: npt.NDArray[np.bool_],
) -> str:
    """Return a sentence on the cost of one call, whatever number of draws shares it."""
    weights = data_free_weights(mechanism, resolved, fixed, forest.n)
    if not resolved.has_inequalities:
        cost = forest_cost(forest, weights, shared=True, compose=True)
        return "" if cost is None else f"Its tables take {cost}, once for all draws."
    least = forest_cost(forest, weights, shared=True, compose=False)
    most = forest_cost(forest, weights, shared=False, compose=False)
    if least is None or most is None:
        return "Bounds alone hold the law, so its cost cannot be told without the counts."
    return (
        f"Each call of sample() fills tables, the least where all counts lie alike within their "
        f"bounds: {least}; the most where no two do: {most}; told from the noise alone, without "
        "the confidential counts."
    )


def told_time(seconds: float) -> str:
    """Return an order of magnitude in words."""
    for limit, words in (
        (1e-2, "milliseconds"),
        (1.0, "less than a second"),
        (10.0, "seconds"),
        (90.0, "about a minute"),
    ):
        if seconds <= limit:
            return words
    return f"about {seconds / 60.0:.0f} minutes"


def told_bytes(count: float) -> str:
    """Return a number of bytes in a unit that fits."""
    for unit in ("B", "KiB", "MiB"):
        if count < 1024.0:
            return f"{count:.3g} {unit}"
        count /= 1024.0
    return f"{count:.3g} GiB"
