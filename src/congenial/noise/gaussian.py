"""Continuous Gaussian noise, for studies: floating-point draws are not private."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from congenial.kernels.numerics import laws
from congenial.noise.law import Measure, RealNoise, checked_scale
from congenial.types import FloatArray, Words


@dataclass(frozen=True, eq=False)
class Gaussian(RealNoise):
    """Normal noise of standard deviation `sigma`.

    Parameters
    ----------
    sigma : float or array_like of float, shape (n,)
        inf where a query is not measured.

    References
    ----------
    Two Views, Definition 2.6.
    """

    sigma: npt.ArrayLike
    spread: FloatArray = field(init=False, repr=False)
    name = "gaussian"
    text = "Gaussian"
    kind = laws.GAUSSIAN
    measure: ClassVar[Measure] = "zcdp"
    words_per_entry = 2

    def __post_init__(self) -> None:
        """Check sigma."""
        object.__setattr__(self, "spread", checked_scale("sigma", self.sigma))

    def variances(self, scales: FloatArray) -> FloatArray:
        """Variance of each entry; inf where nothing is measured."""
        with np.errstate(over="ignore", under="ignore"):
            return np.asarray(scales**2)

    def log_pmf(self, noise: npt.ArrayLike, scales: FloatArray) -> FloatArray:
        """Log density of each noise value; 0 where nothing is measured."""
        measured = np.isfinite(scales)
        safe = np.where(measured, scales, 1.0)
        log_density = -0.5 * (np.asarray(noise) / safe) ** 2 - np.log(safe * np.sqrt(2 * np.pi))
        return np.where(measured, log_density, 0.0)

    def standard(self, words: Words) -> FloatArray:
        """Noise of scale 1, shape (rows, n) by the Box-Muller transform."""
        uniform = ((words >> np.uint64(11)).astype(np.float64) + 1.0) * 2.0**-53
        radius = np.sqrt(-2.0 * np.log(uniform[:, 0::2]))
        return np.asarray(radius * np.cos(2.0 * np.pi * uniform[:, 1::2]))


LAW = Gaussian
