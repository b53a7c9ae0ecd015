"""Continuous Laplace noise, for studies: floating-point draws are not private."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from congenial.kernels.numerics import laws
from congenial.noise.law import Measure, RealNoise, checked_scale
from congenial.types import FloatArray, Words


@dataclass(frozen=True, eq=False)
class Laplace(RealNoise):
    """Noise with density ``exp(-abs(u) / scale) / (2 * scale)``.

    Parameters
    ----------
    scale : float or array_like of float, shape (n,)
        inf where a query is not measured.

    References
    ----------
    Gong and Meng (2020), Definition 1.1; Two Views, Definition 2.5. Floating-point draws leak
    through their low bits (Mironov 2012), so a real release uses `DiscreteLaplace`.
    """

    scale: npt.ArrayLike
    spread: FloatArray = field(init=False, repr=False)
    name = "laplace"
    text = "Laplace"
    kind = laws.LAPLACE
    measure: ClassVar[Measure] = "pure"
    words_per_entry = 1

    def __post_init__(self) -> None:
        """Check the scale."""
        object.__setattr__(self, "spread", checked_scale("scale", self.scale))

    def variances(self, scales: FloatArray) -> FloatArray:
        """Variance of each entry; inf where nothing is measured."""
        with np.errstate(over="ignore", under="ignore"):
            return np.asarray(2.0 * scales**2)

    def log_pmf(self, noise: npt.ArrayLike, scales: FloatArray) -> FloatArray:
        """Log density of each noise value; 0 where nothing is measured."""
        measured = np.isfinite(scales)
        safe = np.where(measured, scales, 1.0)
        return np.where(measured, -np.abs(np.asarray(noise)) / safe - np.log(2 * safe), 0.0)

    def standard(self, words: Words) -> FloatArray:
        """Noise of scale 1, shape (rows, n): a sign bit and an exponential variable each."""
        sign = np.where(words & np.uint64(1), 1.0, -1.0)
        uniform = ((words >> np.uint64(11)).astype(np.float64) + 1.0) * 2.0**-53
        return np.asarray(-np.log(uniform) * sign)


LAW = Laplace
