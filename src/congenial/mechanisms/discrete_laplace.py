"""Discrete Laplace noise, the papers' double geometric mechanism."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from congenial.kernels import laws
from congenial.mechanisms.law import FloatArray, Measure, Words, checked_scale


@dataclass(frozen=True, eq=False)
class DiscreteLaplace:
    """Integer noise with pmf ``(1 - a) / (1 + a) * a ** abs(u)``, ``a = exp(-1 / scale)``.

    Parameters
    ----------
    scale : float or array_like of float, shape (n,)
        One over the privacy loss of a change by one; inf where a query is not measured.

    Raises
    ------
    ArgumentError
        If a scale is not positive.

    References
    ----------
    Gong and Meng (2020), Definition 1.2; Ghosh, Roughgarden and Sundararajan (2012).
    """

    scale: npt.ArrayLike
    spread: FloatArray = field(init=False, repr=False)
    name = "discrete-laplace"
    kind = laws.LAPLACE
    discrete = True
    measure: Measure = "pure"
    words_per_entry = 2

    def __post_init__(self) -> None:
        """Check the scale."""
        object.__setattr__(self, "spread", checked_scale("scale", self.scale))

    def log_pmf(self, noise: npt.ArrayLike, scales: FloatArray) -> FloatArray:
        """Log probability of each noise value; 0 where nothing is measured."""
        measured = np.isfinite(scales)
        safe = np.where(measured, scales, 1.0)
        norm = np.log(np.tanh(0.5 / safe))  # (1 - a) / (1 + a)
        return np.where(measured, norm - np.abs(np.asarray(noise)) / safe, 0.0)

    def draw(self, words: Words, scales: FloatArray) -> npt.NDArray[np.int64]:
        """Noise of shape (rows, n), the difference of two geometric variables each."""
        out = np.zeros((words.shape[0], scales.size), dtype=np.int64)
        laws.two_sided_geometric(words, scales, out)
        return out

    def sampling_error(self, scales: FloatArray) -> float:
        """Bound on total variation: rounding of log and product, and the 2^-64 grid.

        A cell boundary exp(-k / scale) is misplaced by at most k / scale * 2^-51 of itself
        (logarithm within one ulp, one product); summed over k that is below 2^-51 * scale for each
        of the two geometrics, and the grid adds 2^-63.
        """
        finite = scales[np.isfinite(scales)]
        return float(np.sum(2.0 * (finite + 1.0) * 2.0**-51 + 2.0**-62))
