"""Means and variances of exponentially tilted unary weights."""

from __future__ import annotations

import numpy as np

from congenial.kernels.numerics import elementary
from congenial.kernels.numerics.compiling import njit
from congenial.kernels.numerics.laws import FLAT, GAUSSIAN, GEOMETRIC_SUM


@njit(inner=True)
def _geometric_moments(rate: float, length: float) -> tuple[float, float, float]:
    """Return log-sum, mean and second moment of exp(rate * j), j = 0..length (may be inf)."""
    if length == 0.0:
        return 0.0, 0.0, 0.0
    if length < 16.0:
        top = max(0.0, rate * length)
        s0 = s1 = s2 = 0.0
        for j in range(np.int64(length) + 1):
            w = elementary.exp(rate * j - top)
            s0 += w
            s1 += w * j
            s2 += w * j * j
        return top + elementary.log(s0), s1 / s0, s2 / s0
    span = rate * length if length < np.inf else -np.inf
    if abs(span) < 0.02:  # nearly uniform
        mean = length * (0.5 + span / 12.0)
        var = length * (length + 2.0) / 12.0
        return elementary.log(length + 1.0) + 0.5 * span, mean, var + mean * mean
    mirrored = rate > 0.0  # j -> length - j
    rate = -abs(rate)
    gap = -elementary.expm1(rate)
    q = elementary.exp(rate)
    mean = q / gap
    var = q / (gap * gap)
    log_sum = -elementary.log(gap)
    if abs(span) < 700.0:
        m = length + 1.0
        tail = elementary.exp(rate * m)
        keep = -elementary.expm1(rate * m)
        log_sum += elementary.log(keep)
        mean -= m * tail / keep
        var -= m * m * tail / (keep * keep)
    second = max(var, 1e-12) + mean * mean
    mean = max(mean, 0.0)
    if mirrored:
        far = length - mean
        return log_sum + span, far, second - mean * mean + far * far
    return log_sum, mean, second


@njit(inner=True)
def _gaussian_moments(
    scale: float, center: float, lo: float, hi: float, tilt: float
) -> tuple[float, float]:
    """Return mean and variance, summed over intervals of values from the mode outwards."""
    peak = min(max(np.rint(center + tilt * scale * scale), lo), hi)
    slope = tilt - (peak - center) / (scale * scale)
    curve = 1.0 / (scale * scale)
    z, m1, m2 = 1.0, 0.0, 0.0
    for side in range(2):
        up = slope if side == 0 else -slope
        end = hi - peak if side == 0 else peak - lo
        end = min(end, np.ceil(min(7.0 * scale, 25.0 / max(-up, 1e-300))) + 2.0)
        step = max(1.0, np.floor(end / 48.0))
        # the weight at j is exp(up j - curve j^2 / 2); the middle represents its interval
        j = 0.5 * (step + 1.0)
        w = step * elementary.exp(up * j - 0.5 * curve * j * j)
        ratio = elementary.exp(step * (up - curve * (j + 0.5 * step)))
        shrink = elementary.exp(-curve * step * step)
        while j <= end:
            z += w
            m1 += w * j if side == 0 else -w * j
            m2 += w * j * j
            j += step
            w *= ratio
            ratio *= shrink
    mean = m1 / z
    return peak + mean, max(m2 / z - mean * mean, 1e-12)


@njit(inner=True)
def poles(kind: int, scale: float, lo: float, hi: float) -> tuple[float, float]:
    """Return the least and the largest tilt between which the weight can be normalised."""
    if kind == GAUSSIAN:
        return -np.inf, np.inf
    rate = 0.0 if kind == FLAT and lo == -np.inf and hi == np.inf else 1.0 / scale
    return -rate if lo == -np.inf else -np.inf, rate if hi == np.inf else np.inf


@njit(inner=True)
def unary_moments(
    kind: int, scale: float, center: float, lo: float, hi: float, tilt: float
) -> tuple[float, float]:
    """Return mean and variance of weight * exp(tilt * u) on [lo, hi].

    For a sum of geometric variables, `center` is their number. A flat law without ends has infinite
    variance; a flat law with an end is treated as a very wide Laplace law. A tilt at which the sum
    diverges is reduced until the sum converges.
    """
    if lo == hi:
        return lo, 0.0
    if kind == GEOMETRIC_SUM:
        side = 1.0 if hi > 0.0 else -1.0
        q = elementary.exp(side * tilt - 1.0 / scale)
        return side * center * q / (1.0 - q), center * q / (1.0 - q) ** 2
    if kind == FLAT and lo == -np.inf and hi == np.inf:
        return 0.0, np.inf
    if kind == GAUSSIAN:
        return _gaussian_moments(scale, center, lo, hi, tilt)
    rate = 1.0 / scale
    least, most = poles(kind, scale, lo, hi)
    tilt = min(max(tilt, least + 1e-6 * rate), most - 1e-6 * rate)
    up, down = tilt - rate, -tilt - rate
    if center <= lo:  # one geometric upwards from lo
        _, mean, second = _geometric_moments(up, hi - lo)
        return lo + mean, max(second - mean * mean, 1e-12)
    if center >= hi:
        _, mean, second = _geometric_moments(down, hi - lo)
        return hi - mean, max(second - mean * mean, 1e-12)
    log_r, mean_r, second_r = _geometric_moments(up, hi - center)
    log_l, mean_l, second_l = _geometric_moments(down, center - lo - 1.0)
    log_l += down  # the left part begins one step from the centre
    second_l = second_l + 2.0 * mean_l + 1.0
    mean_l += 1.0
    top = max(log_r, log_l)
    wr, wl = elementary.exp(log_r - top), elementary.exp(log_l - top)
    z = wr + wl
    mean = (wr * mean_r - wl * mean_l) / z
    second = (wr * second_r + wl * second_l) / z
    return center + mean, max(second - mean * mean, 1e-12)


@njit()
def moments(kind, scale, center, lo, hi, tilt, mean, var):
    """Fill means and variances, float64 (n,)."""
    for v in range(tilt.size):
        mean[v], var[v] = unary_moments(kind[v], scale[v], center[v], lo[v], hi[v], tilt[v])
