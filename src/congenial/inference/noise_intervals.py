"""Error margins of independent noise: of one draw, and of a sum of draws."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from congenial.errors import ArgumentError
from congenial.kernels.numerics import laws
from congenial.noise.additive import checked_alpha
from congenial.noise.law import NoiseLaw, half_law

# Above this sigma, the quantile of a discrete Gaussian is the normal quantile, rounded up.
_WIDEST = 10_000.0
# Most points of the grid for the law of a sum, and the probability added to its tail for rounding.
_GRID = 1 << 22
_SLACK = 1e-9


def noise_margin(noise: NoiseLaw, scale: float, alpha: float) -> int:
    """Least m that the noise exceeds in absolute value with probability at most alpha.

    Notes
    -----
    With the pmf ``(1 - a) / (1 + a) * a ** abs(u)`` the probability beyond m is
    ``2 a ** (m + 1) / (1 + a)``. For a discrete Gaussian with sigma above 10,000 it is the normal
    quantile, rounded up.
    """
    if scale == 0.0:
        return 0
    if noise.kind == laws.LAPLACE:
        tail = 0.5 * alpha * (1.0 + math.exp(-1.0 / scale))
        return max(0, math.ceil(-math.log(tail) * scale - 1.0 - 1e-9))
    if noise.kind == laws.GAUSSIAN and scale > _WIDEST:
        return math.ceil(NormalDist().inv_cdf(1.0 - 0.5 * alpha) * scale)
    weights = half_law(noise, scale)
    weights[1:] *= 2.0
    # summed from the far end, so that small tail probabilities keep their precision
    beyond = np.cumsum(weights[::-1])[::-1] / weights.sum()
    return int(np.flatnonzero(np.append(beyond[1:], 0.0) <= alpha)[0])


def error_margin_of_noise_sum(
    noise: NoiseLaw, scales: npt.ArrayLike, alpha: float, *, times: npt.ArrayLike = 1
) -> int:
    """Margin that a sum of independent draws of noise exceeds with probability at most alpha.

    Returns the least error margin, up to rounding. If the law needs a grid of more than 2^22
    values, a larger margin by the union bound.

    Notes
    -----
    The law is the inverse Fourier transform of the product of the draws' transforms. Its absolute
    error is near 1e-15; alpha is lowered by 1e-9 for it.
    """
    checked_alpha(alpha)
    spread = np.atleast_1d(np.asarray(scales, dtype=np.float64))
    counted = np.broadcast_to(np.asarray(times, dtype=np.int64), spread.shape)
    if not (np.isfinite(spread) & (spread >= 0.0)).all() or (counted < 0).any():
        raise ArgumentError(
            "scales or times have an entry that is negative or not finite; give finite numbers of "
            "at least 0."
        )
    noisy = (spread > 0.0) & (counted > 0)
    pairs, number = np.unique(
        np.stack((spread[noisy], counted[noisy].astype(np.float64))), axis=1, return_counts=True
    )
    if number.size == 0:
        return 0
    if number.size == 1 and number[0] == 1:
        return int(pairs[1, 0]) * noise_margin(noise, float(pairs[0, 0]), alpha)
    # a Laplace tail falls by e^-40 within 40 scales; the tail of a long sum is nearly normal
    size = pairs[1] * [_width(noise, float(s)) for s in pairs[0]]
    half_width = 80.0 * float(size.max()) + 16.0 * math.sqrt(2.0 * float((number * size**2).sum()))
    length = 1 << max(6, math.ceil(math.log2(2.0 * half_width + 2.0)))
    if length > _GRID:
        parts = alpha / float(number.sum())
        return sum(
            int(k * t) * noise_margin(noise, float(s), parts)
            for s, t, k in zip(pairs[0], pairs[1], number, strict=True)
        )
    transform = np.ones(length // 2 + 1)
    values = np.arange(-(length // 2), length // 2)
    for scale, factor, k in zip(pairs[0], pairs[1], number, strict=True):
        law = np.zeros(length)
        reached = values[np.abs(values) * factor < length // 2]
        with np.errstate(under="ignore"):
            weight = np.exp(noise.log_pmf(reached, np.full(reached.size, scale)))
        law[(reached * int(factor)) % length] = weight / weight.sum()
        # the transform of a symmetric law is real
        transform *= np.fft.rfft(law).real ** int(k)
    pmf = np.fft.irfft(transform, length)[: length // 2]
    pmf[1:] *= 2.0
    beyond = np.cumsum(pmf[::-1])[::-1]
    return int(np.flatnonzero(np.append(beyond[1:], 0.0) <= alpha - _SLACK)[0])


def _width(noise: NoiseLaw, scale: float) -> float:
    """Length over which the tail of a law falls at least by a factor of e."""
    return scale if noise.kind != laws.OTHER else half_law(noise, scale).size / 40.0
