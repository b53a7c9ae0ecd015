"""Discrete Gaussian noise on the integers."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from congenial.kernels import laws
from congenial.mechanisms.law import FloatArray, Measure, Words, checked_scale

# Beyond this many sigmas (plus a few integers) the mass is below 2^-100.
_REACH = 12.0


@dataclass(frozen=True, eq=False)
class DiscreteGaussian:
    """Integer noise with pmf proportional to ``exp(-u ** 2 / (2 * sigma ** 2))``.

    Parameters
    ----------
    sigma : float or array_like of float, shape (n,)
        inf where a query is not measured.

    Raises
    ------
    ArgumentError
        If a sigma is not positive.

    References
    ----------
    Canonne, Kamath and Steinke (2020).
    """

    sigma: npt.ArrayLike
    spread: FloatArray = field(init=False, repr=False)
    name = "discrete-gaussian"
    kind = laws.GAUSSIAN
    discrete = True
    measure: Measure = "zcdp"
    words_per_entry = 1

    def __post_init__(self) -> None:
        """Check sigma."""
        object.__setattr__(self, "spread", checked_scale("sigma", self.sigma))

    def log_pmf(self, noise: npt.ArrayLike, scales: FloatArray) -> FloatArray:
        """Log probability of each noise value; 0 where nothing is measured."""
        measured = np.isfinite(scales)
        safe = np.where(measured, scales, 1.0)
        distinct, inverse = np.unique(safe, return_inverse=True)
        norms = np.array([np.log(_weights(s)[1].sum()) for s in distinct])
        u = np.asarray(noise, dtype=np.float64)
        return np.where(measured, -0.5 * (u / safe) ** 2 - norms[inverse], 0.0)

    def draw(self, words: Words, scales: FloatArray) -> npt.NDArray[np.int64]:
        """Noise of shape (rows, n) by inversion of the tabulated distribution function."""
        out = np.zeros((words.shape[0], scales.size), dtype=np.int64)
        uniform = (words >> np.uint64(11)).astype(np.float64) * 2.0**-53
        for sigma in np.unique(scales[np.isfinite(scales)]):
            columns = np.flatnonzero(scales == sigma)
            values, weights = _weights(float(sigma))
            cumulative = np.cumsum(weights)
            index = np.searchsorted(cumulative, uniform[:, columns] * cumulative[-1], side="right")
            out[:, columns] = values[np.minimum(index, values.size - 1)]
        return out

    def sampling_error(self, scales: FloatArray) -> float:
        """Bound on total variation: the 2^-53 grid and a running sum of that many terms."""
        finite = scales[np.isfinite(scales)]
        return float(np.sum((2 * _REACH * finite + 20.0) * 2.0**-51))


def _weights(sigma: float) -> tuple[npt.NDArray[np.int64], FloatArray]:
    reach = int(np.ceil(_REACH * sigma)) + 8
    values = np.arange(-reach, reach + 1, dtype=np.int64)
    return values, np.exp(-0.5 * (values / sigma) ** 2)
