"""Means, variances and tails of tilted weights of leaves that have a prior (see `priors`)."""

from __future__ import annotations

import math

import numpy as np

from congenial.kernels.numerics.compiling import njit
from congenial.kernels.numerics.laws import FLAT, GAUSSIAN

# Decays of tails are measured 30 nats below the mode.
_JUDGED = math.exp(30.0)
# Weights above this are scaled down, so that they do not overflow.
_LARGE = 1e150
# Most steps along a tail.
_MOST = 1 << 22


@njit(inner=True)
def leaf_pole(kind, scale, b, hi):
    """Return the least tilt at which the weight cannot be normalised."""
    if kind == GAUSSIAN or hi < np.inf or b <= 0.0:
        return np.inf
    return -math.log(b) + (0.0 if kind == FLAT else 1.0 / scale)


@njit(inner=True)
def moments_of_leaf(kind, scale, center, lo, hi, a, b, base, zero, tilt, nats):
    """Return the mean, the variance, and the decay below and above.

    A decay is the slope of the log weight some nats below the mode; inf if the support ends before.
    Tails are cut `nats` below the mode.
    """
    forgotten = math.exp(nats)
    start = min(max(center, lo), hi)
    ahead = abs(start - center)
    z, m1, m2, one = 1.0, 0.0, 0.0, 1.0
    # for each side: the decay, how far the tail was followed, and the nats lost there
    fall_lo = fall_hi = np.inf
    far_lo = far_hi = 0.0
    drop_lo = drop_hi = 1.0
    # per step away from the centre, a Laplace law loses a constant, a Gaussian law ever more
    first = more = 1.0
    if kind == GAUSSIAN:
        inverse = 0.5 / scale**2
        first, more = math.exp(-inverse * (2.0 * ahead + 1.0)), math.exp(-2.0 * inverse)
    elif kind != FLAT:
        first = math.exp(-1.0 / scale)
    spike = math.exp(zero)
    for side in range(2):
        up = side == 1
        way = 1.0 if up else -1.0
        end = hi if up else lo
        u, w, best, step = start, one, one, first * math.exp(way * tilt)
        far, drop, fall = 0.0, 1.0, np.inf
        for _ in range(_MOST):
            if u == end:
                break
            k = u + base if up else u + base - 1.0
            ratio = (a + b * k) / (k + 1.0)
            if k == 0.0:
                ratio /= spike
            ratio = step * ratio if up else step / ratio
            step *= more
            w *= ratio
            u += way
            best = max(best, w)
            d = u - start
            z += w
            m1 += w * d
            m2 += w * d * d
            if drop <= _JUDGED and w * drop < best:
                drop, far = best / w, abs(d)
                if drop > _JUDGED:
                    fall = max(-math.log(ratio), 1e-12)
            if w * forgotten < best:
                break
            if w > _LARGE:
                one, w, best = one / _LARGE, w / _LARGE, best / _LARGE
                z, m1, m2 = z / _LARGE, m1 / _LARGE, m2 / _LARGE
        if up:
            far_hi, drop_hi, fall_hi = far, drop, fall
        else:
            far_lo, drop_lo, fall_lo = far, drop, fall
    mean = m1 / z
    var = max(m2 / z - mean * mean, 1e-12)
    # a tail falls no faster than on the way to it, unless the support ends at once
    least = 2.0 * math.sqrt(var) + 1.0
    if start > lo and far_lo + mean > least:
        fall_lo = min(fall_lo, math.log(drop_lo) / (far_lo + mean))
    if start < hi and far_hi - mean > least:
        fall_hi = min(fall_hi, math.log(drop_hi) / (far_hi - mean))
    return start + mean, 0.0 if lo == hi else var, fall_lo, fall_hi


@njit()
def leaf_moments(kind, scale, center, lo, hi, a, b, base, zero, tilt, nats, out):
    """Fill `out` (c, 4) with the mean, the variance, and the decays of each leaf."""
    for v in range(kind.size):
        law = kind[v], scale[v], center[v], lo[v], hi[v]
        found = moments_of_leaf(*law, a[v], b[v], base[v], zero[v], tilt[v], nats)
        out[v, 0], out[v, 1], out[v, 2], out[v, 3] = found
