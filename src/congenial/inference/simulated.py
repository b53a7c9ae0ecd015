"""Order statistics of simulated noise, with no more of it held at once than they take."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from congenial.randomness import Randomness
from congenial.types import FloatArray

Draw = Callable[[int, Randomness], npt.NDArray[Any]]

# Values of simulated noise held at once.
_VALUES = 1 << 24


def batches(draw: Draw, n: int, size: int, source: Randomness) -> Iterator[npt.NDArray[Any]]:
    """Yield `size` draws of n values, as many at once as memory should hold."""
    batch = max(1, _VALUES // n)
    for begin in range(0, size, batch):
        yield draw(min(batch, size - begin), source)


def rank(size: int, alpha: float) -> int:
    """Return the least k of at least (1 - alpha) (size + 1), or size."""
    return min(size, int(np.ceil((1.0 - alpha) * (size + 1) * (1.0 - 1e-15))))


def order_statistic(values: FloatArray, alpha: float) -> float:
    """Return the value of that rank."""
    return float(np.sort(values)[rank(values.size, alpha) - 1])


def largest(parts: Iterator[npt.NDArray[Any]], kept: int) -> npt.NDArray[Any]:
    """Return the `kept`-th largest absolute value of each column of rows that come in parts."""
    top: npt.NDArray[Any] | None = None
    for part in parts:
        sizes = np.abs(part)
        top = sizes if top is None else np.concatenate((top, sizes))
        if top.shape[0] > kept:
            top = np.partition(top, top.shape[0] - kept, axis=0)[-kept:].copy()
    if top is None:
        raise AssertionError("there is at least one part")
    return np.asarray(top.min(axis=0))


def cautious_alpha(alpha: float, size: int, risk: float) -> float | None:
    """Return an alpha whose order statistic is a quantile of 1 - `alpha` or more, almost surely.

    Returns
    -------
    float or None
        None where even the largest value may be too small.

    Notes
    -----
    The k-th smallest of N values lies below the quantile where at least k of them do, and the
    number that do is at most binomial: a tolerance limit (Wilks 1941).
    """
    k = np.arange(size + 1)
    steps = np.log(np.arange(size, 0, -1.0)) - np.log(np.arange(1.0, size + 1.0))
    ways = np.concatenate(([0.0], np.cumsum(steps)))
    terms = ways + k * math.log1p(-alpha) + (size - k) * math.log(alpha)
    at_least = np.logaddexp.accumulate(terms[::-1])[::-1]
    # the cumulated logarithms may be off in their last digits
    fit = np.flatnonzero(at_least + 1e-9 <= math.log(risk))
    # half a rank less, so that rounding finds the same one again
    return 1.0 - (float(fit[0]) - 0.5) / (size + 1) if fit.size else None
