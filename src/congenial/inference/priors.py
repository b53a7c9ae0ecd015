"""Priors of the counts of leaves."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from congenial.errors import ArgumentError

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Prior:
    """Independent Poisson or negative binomial counts of leaves.

    Parameters
    ----------
    mean : float or array_like, shape (leaves,)
        Positive means, in the order of ``tree.leaves``.
    dispersion : float or array_like, shape (leaves,)
        The variance is ``mean + mean**2 / dispersion``; inf, the default, is Poisson.

    Raises
    ------
    ArgumentError
        If an entry is not positive, or a mean not finite.
    """

    mean: FloatArray
    dispersion: FloatArray

    def __init__(self, mean: npt.ArrayLike, dispersion: npt.ArrayLike = np.inf) -> None:
        """Check the numbers."""
        for name, given, most in (("mean", mean, 2.0**52), ("dispersion", dispersion, np.inf)):
            array = np.asarray(given)
            if array.dtype.kind not in "iuf" or array.ndim > 1:
                raise ArgumentError(
                    f"{name} is no number and no vector; give one, or one for each leaf."
                )
            real = array.astype(np.float64)
            if not ((real > 0.0) & (real <= most)).all():
                raise ArgumentError(
                    f"{name} has an entry that is not positive; give positive ones."
                )
            object.__setattr__(self, name, real)

    def panjer(self, leaves: int) -> tuple[FloatArray, FloatArray]:
        """Return a and b with ``p(k + 1) / p(k) = (a + b k) / (k + 1)``, shape (leaves,).

        Raises
        ------
        ArgumentError
            If there are neither one nor as many means or dispersions.
        """
        for name, array in (("means", self.mean), ("dispersions", self.dispersion)):
            if array.shape not in ((), (1,), (leaves,)):
                raise ArgumentError(f"the prior has {array.size} {name}; give one, or {leaves}.")
        mean = np.broadcast_to(self.mean, (leaves,))
        dispersion = np.broadcast_to(self.dispersion, (leaves,))
        b = mean / (mean + dispersion)
        with np.errstate(invalid="ignore"):
            a = np.where(np.isinf(dispersion), mean, b * dispersion)
        return a, b

    def log_pmf(self, counts: npt.NDArray[np.int64]) -> FloatArray:
        """Log probability of each leaf's count, shape (leaves,); -inf below 0."""
        a, b = self.panjer(counts.size)
        out = np.empty(counts.size)
        for j, count in enumerate(counts.tolist()):
            out[j] = _log_pmf(float(a[j]), float(b[j]), count)
        return out


def _log_pmf(a: float, b: float, count: int) -> float:
    """Log probability of a count under a prior of Panjer's class."""
    if count < 0:
        return -math.inf
    if b == 0.0:
        return count * math.log(a) - a - math.lgamma(count + 1.0)
    r = a / b
    shape = math.lgamma(count + r) - math.lgamma(r) - math.lgamma(count + 1.0)
    return shape + count * math.log(b) + r * math.log1p(-b)
