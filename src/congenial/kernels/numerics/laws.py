"""Logarithms of the unary weights of the noise laws; each law has an integer code."""

from __future__ import annotations

import numpy as np

from congenial.kernels.numerics.compiling import njit

# Code of a law that has no weights here and whose conditional laws are therefore unknown.
OTHER = -1
FLAT = 0
LAPLACE = 1
GAUSSIAN = 2
# Codes of sums of several one-sided geometric variables, upwards or downwards from zero.
GEOMETRIC_SUM = 3


@njit(inline="always")
def log_weight(kind: int, scale: float, u: float) -> float:
    """Return log of the unnormalised pmf at noise value `u`; 0 at the mode."""
    if kind == LAPLACE:
        return -abs(u) / scale
    if kind == GAUSSIAN:
        return -0.5 * (u / scale) * (u / scale)
    return 0.0


@njit(inner=True)
def log_ratio(kind, inverse, center, u):
    """Return the log of the ratio of the weights at u + 1 and at u.

    `inverse` is 1 / scale, or 1 / (2 sigma^2) for a Gaussian law.
    """
    if kind == FLAT:
        return 0.0
    if kind == GAUSSIAN:
        return -inverse * (2.0 * (u - center) + 1.0)
    return -inverse if u >= center else inverse


@njit()
def two_sided_geometric(words: np.ndarray, scales: np.ndarray, out: np.ndarray) -> None:
    """Fill `out` (r, n) with discrete Laplace noise, from two uniform words for each entry.

    `words` is uint64 (r, 2n); `scales` is float64 (n,). Each value is the difference of two
    geometric variables floor(-scale * log U), U uniform on the 2^64 grid in (0, 1]; an entry
    whose scale is inf keeps its value.
    """
    rows, n = out.shape
    for r in range(rows):
        for i in range(n):
            if scales[i] == np.inf:
                continue
            u = (float(words[r, 2 * i]) + 1.0) * 2.0**-64
            v = (float(words[r, 2 * i + 1]) + 1.0) * 2.0**-64
            g = np.floor(-scales[i] * np.log(u))
            h = np.floor(-scales[i] * np.log(v))
            out[r, i] = np.int64(g) - np.int64(h)
