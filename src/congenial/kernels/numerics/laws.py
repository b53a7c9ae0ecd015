"""Logarithms of the unary weights of the noise laws; each law has an integer code."""

from __future__ import annotations

import numpy as np

from congenial.kernels.numerics import elementary
from congenial.kernels.numerics.compiling import njit

# Code of a law that has no weights here and whose conditional laws are therefore unknown.
OTHER = -1
FLAT = 0
LAPLACE = 1
GAUSSIAN = 2
# Codes of sums of several one-sided geometric variables, upwards or downwards from zero.
GEOMETRIC_SUM = 3
# Code of a weight that is a table, the message of a part of the network.
TABLE = 4
# Marks noise that the words of its entry do not decide.
UNDECIDED = np.iinfo(np.int64).min


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


@njit(inner=True)
def _whole_part(word, scale, slack):
    """Return floor(-scale log U) for a uniform U whose first 64 bits are `word`; -1 if undecided.

    U lies between word and word + 1, times 2^-64. The conversion, the logarithm and the product are
    together off by less than ``2^-50 x + 2^-51 scale``, because the logarithm is within 2.1 ulp.
    """
    w = float(word)
    if w < 1.0:
        return -1.0
    x = -scale * elementary.log((w + 1.0) * 2.0**-64)
    off = slack * (x * 2.0**-50 + scale * 2.0**-51)
    low = np.floor(max(x - off, 0.0))
    return low if low == np.floor(x + off + slack * scale / w) else -1.0


@njit()
def two_sided_geometric(
    words: np.ndarray, scales: np.ndarray, slack: float, out: np.ndarray
) -> int:
    """Fill `out` (r, n) with discrete Laplace noise, from two uniform words for each entry.

    `words` is uint64 (r, 2n); `scales` is float64 (n,). Each value is the difference of two
    geometric variables floor(-scale log U), U uniform. An entry whose scale is inf keeps its value.
    Entries that their words do not decide become `UNDECIDED`; returns their number. With a larger
    `slack` than 1, more are left undecided.
    """
    rows, n = out.shape
    undecided = 0
    for r in range(rows):
        for i in range(n):
            if scales[i] == np.inf:
                continue
            g = _whole_part(words[r, 2 * i], scales[i], slack)
            h = _whole_part(words[r, 2 * i + 1], scales[i], slack)
            if g < 0.0 or h < 0.0:
                out[r, i] = UNDECIDED
                undecided += 1
            else:
                out[r, i] = np.int64(g) - np.int64(h)
    return undecided
