"""Functions and order statistics of many draws, computed batch by batch to limit memory."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt

from congenial.errors import ArgumentError
from congenial.noise.additive import checked_size
from congenial.randomness import Randomness
from congenial.types import FloatArray, IntArray

Draw = Callable[[int, Randomness], npt.NDArray[Any]]

# Most values of draws in memory at once.
_VALUES = 1 << 24
# Number of values from which sums of some nodes are drawn without all other nodes.
MANY_VALUES = 1 << 28


def batches(draw: Draw, n: int, size: int, source: Randomness) -> Iterator[npt.NDArray[Any]]:
    """Yield `size` draws of n values, in batches that fit in memory."""
    batch = max(1, _VALUES // n)
    for begin in range(0, size, batch):
        yield draw(min(batch, size - begin), source)


def in_batches(
    draw: Draw, n: int, size: int, source: Randomness, ask: Callable[[IntArray], IntArray]
) -> IntArray:
    """Apply a function to `size` draws of n values, and return one value for each draw."""
    rows = checked_size(size)
    if rows < 1:
        raise ArgumentError("size is 0; give a positive number of draws.")
    return np.concatenate([ask(drawn) for drawn in batches(draw, n, rows, source)])


def truths(event: Callable[[IntArray], npt.ArrayLike]) -> Callable[[IntArray], IntArray]:
    """Return the event as a function with checked values 0 and 1."""

    def ask(z: IntArray) -> IntArray:
        found = np.asarray(event(z))
        if found.shape != (z.shape[0],) or found.dtype.kind != "b":
            raise ArgumentError(
                f"the event gave shape {found.shape} and dtype {found.dtype}; give one truth "
                "value for each of the draws."
            )
        return found.astype(np.int64)

    return ask


def rank(size: int, alpha: float) -> int:
    """Return the least integer k >= (1 - alpha) (size + 1), at most `size`."""
    return min(size, int(np.ceil((1.0 - alpha) * (size + 1) * (1.0 - 1e-15))))


def order_statistic(values: FloatArray, alpha: float) -> float:
    """Return the value whose rank is `rank(size, alpha)`."""
    return float(np.sort(values)[rank(values.size, alpha) - 1])


def largest(parts: Iterator[npt.NDArray[Any]], kept: int) -> npt.NDArray[Any]:
    """Return the `kept`-th largest absolute value of each column; rows come in batches."""

    def merged(top: npt.NDArray[Any], part: npt.NDArray[Any]) -> npt.NDArray[Any]:
        both = np.concatenate((top, part))
        return np.partition(both, max(len(both) - kept, 0), axis=0)[-kept:].copy()

    top = reduce(merged, map(np.abs, parts))
    return np.asarray(np.partition(top, len(top) - kept, axis=0)[-kept])


def cautious_alpha(alpha: float, size: int, risk: float) -> float | None:
    """Return an alpha whose order statistic reaches the 1 - `alpha` quantile, except with `risk`.

    Returns None if even the largest value may be below the quantile.

    Notes
    -----
    The k-th smallest of N values is below the quantile if at least k values are. The number of
    values below it is at most binomial: a tolerance limit (Wilks 1941).
    """
    k = np.arange(size + 1)
    steps = np.log(np.arange(size, 0, -1.0)) - np.log(np.arange(1.0, size + 1.0))
    ways = np.concatenate(([0.0], np.cumsum(steps)))
    terms = ways + k * math.log1p(-alpha) + (size - k) * math.log(alpha)
    at_least = np.logaddexp.accumulate(terms[::-1])[::-1]
    # 1e-9 covers the rounding errors of the cumulated logarithms
    fit = np.flatnonzero(at_least + 1e-9 <= math.log(risk))
    # half a rank less, so that `rank` gives this rank again despite rounding
    return 1.0 - (float(fit[0]) - 0.5) / (size + 1) if fit.size else None
