"""Priors of the counts of leaves."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from congenial.errors import ArgumentError
from congenial.types import FloatArray


@dataclass(frozen=True, eq=False)
class Prior:
    """Independent Poisson or negative binomial counts of leaves, with extra zeros if asked for.

    Parameters
    ----------
    mean : float or array_like, shape (leaves,)
        Positive means, in the order of ``tree.leaves``.
    dispersion : float or array_like, shape (leaves,)
        The variance is ``mean + mean**2 / dispersion``; inf, the default, is Poisson.
    zeros : float or array_like, shape (leaves,)
        Zero inflation: with this probability a leaf is 0, else it follows the law above. At least
        0, below 1. If it raises the log probability of 0 by more than 20, the law has two modes,
        and `congenial.posterior` refuses it.

    Raises
    ------
    ArgumentError
        If a mean or a dispersion is not positive, a mean is infinite, or an entry of `zeros` is
        not at least 0 and below 1.
    """

    mean: FloatArray
    dispersion: FloatArray
    zeros: FloatArray

    def __init__(
        self, mean: npt.ArrayLike, dispersion: npt.ArrayLike = np.inf, zeros: npt.ArrayLike = 0.0
    ) -> None:
        """Check the numbers."""
        given = {"mean": mean, "dispersion": dispersion, "zeros": zeros}
        for name, values in given.items():
            array = np.asarray(values)
            if array.dtype.kind not in "iuf" or array.ndim > 1:
                raise ArgumentError(
                    f"{name} is neither a number nor a vector; give one, or one for each leaf."
                )
            object.__setattr__(self, name, array.astype(np.float64))
        if not ((self.zeros >= 0.0) & (self.zeros < 1.0)).all():
            raise ArgumentError(
                "zeros has an entry outside 0 to 1; give probabilities that are less than 1."
            )
        for name, most in (("mean", 2.0**52), ("dispersion", np.inf)):
            real = getattr(self, name)
            if not ((real > 0.0) & (real <= most)).all():
                raise ArgumentError(
                    f"{name} has an entry that is not positive; give positive ones."
                )

    def panjer(self, leaves: int) -> tuple[FloatArray, FloatArray]:
        """Return a and b with ``p(k + 1) / p(k) = (a + b k) / (k + 1)``, shape (leaves,).

        Raises
        ------
        ArgumentError
            If the number of means, dispersions or zeros is neither 1 nor `leaves`.
        """
        given = {"means": self.mean, "dispersions": self.dispersion, "zeros": self.zeros}
        for name, array in given.items():
            if array.shape not in ((), (1,), (leaves,)):
                raise ArgumentError(f"the prior has {array.size} {name}; give one, or {leaves}.")
        mean = np.broadcast_to(self.mean, (leaves,))
        dispersion = np.broadcast_to(self.dispersion, (leaves,))
        b = mean / (mean + dispersion)
        with np.errstate(invalid="ignore"):
            a = np.where(np.isinf(dispersion), mean, b * dispersion)
        return a, b

    def log_zero(self, leaves: int) -> FloatArray:
        """Return ``log(P / (P - q))``, shape (leaves,); P is the probability of 0, q is `zeros`."""
        mean = np.broadcast_to(self.mean, (leaves,))
        r = np.broadcast_to(self.dispersion, (leaves,))
        q = np.broadcast_to(self.zeros, (leaves,))
        with np.errstate(invalid="ignore", divide="ignore"):
            log_empty = np.where(np.isinf(r), -mean, -r * np.log1p(mean / r))
            return np.asarray(np.logaddexp(0.0, np.log(q) - np.log1p(-q) - log_empty))

    def log_pmf(self, counts: npt.NDArray[np.int64]) -> FloatArray:
        """Log probability of each leaf's count, shape (leaves,); -inf below 0."""
        a, b = self.panjer(counts.size)
        each = zip(a.tolist(), b.tolist(), counts.tolist(), strict=True)
        out = np.array([_log_pmf(*values) for values in each])
        q = np.broadcast_to(self.zeros, (counts.size,))
        return np.where(counts == 0, out + self.log_zero(counts.size), out) + np.log1p(-q)


def _log_pmf(a: float, b: float, count: int) -> float:
    """Log probability of a count under a prior of Panjer's class."""
    if count < 0:
        return -math.inf
    if b == 0.0:
        return count * math.log(a) - a - math.lgamma(count + 1.0)
    r = a / b
    shape = math.lgamma(count + r) - math.lgamma(r) - math.lgamma(count + 1.0)
    return shape + count * math.log(b) + r * math.log1p(-b)
