"""Means, variances and tails of tilted weights of leaves that have a prior (see `priors`)."""

from __future__ import annotations

import math

import numpy as np

from congenial.kernels.numerics import elementary
from congenial.kernels.numerics.compiling import njit
from congenial.kernels.numerics.laws import FLAT, GAUSSIAN, LAPLACE, log_ratio

# Decays of tails are measured this much below the mode, some 30 nats.
_JUDGED = 1e13
# Weights above this are scaled down, so that they do not overflow.
_LARGE = 1e150
# Nats beyond which the exponential function may overflow.
_MANY_NATS = 700.0
# Longest step of the search for a mode: no window is as wide.
_FARTHEST = 2.0**60
# Most strides on one side, and the largest stride as a part of its distance from the mode.
_MOST, _SHARE = 1 << 14, 1.0 / 256.0


@njit(inner=True)
def leaf_pole(kind, scale, b, hi):
    """Return the least tilt at which the weight cannot be normalised."""
    if kind == GAUSSIAN or hi < np.inf or b <= 0.0:
        return np.inf
    return -elementary.log(b) + (0.0 if kind == FLAT else 1.0 / scale)


@njit(inner=True)
def _mode(kind, scale, center, lo, hi, a, b, base, tilt):
    """Return the largest value at least as likely as the one before it, or `lo`, without `zero`.

    Each part on which the rise from one value to the next is smooth has at most one such value: the
    prior's rise falls where ``a >= b`` and grows otherwise, and a Gaussian law's falls.
    """
    inverse = 0.5 / scale**2 if kind == GAUSSIAN else 1.0 / scale
    split = min(max(center, lo), hi) if kind == LAPLACE else lo
    for part in range(2):
        first, end = (split, hi) if part == 0 else (lo, split)
        if first == end:
            continue
        at = first
        if a < b:
            if kind == GAUSSIAN:  # where the rise is largest
                k = math.sqrt((b - a) ** 2 + 4.0 * b * (b - a) * scale**2) - a - b
                at = min(max(np.floor(0.5 * k / b - base), first), end - 1.0)
            elif end == np.inf:
                continue
            else:
                at = end - 1.0
        # the rise is at least 0 at `at`, and less at `above`, if that is not the end
        above, step = at, 0.0
        while above < end:
            k = above + base
            rise = elementary.log((a + b * k) / (k + 1.0)) + log_ratio(kind, inverse, center, above)
            if rise + tilt < 0.0 or step > _FARTHEST:
                break
            at, step = above, 2.0 * step + 1.0
            above = min(above + step, end)
        if step == 0.0:
            continue
        while above - at > 1.0:
            middle = np.floor(0.5 * (at + above))
            k = middle + base
            rise = elementary.log((a + b * k) / (k + 1.0)) + log_ratio(
                kind, inverse, center, middle
            )
            if rise + tilt < 0.0:
                above = middle
            else:
                at = middle
        return above
    return lo


@njit(inner=True)
def moments_of_leaf(kind, scale, center, lo, hi, a, b, base, zero, tilt, nats):
    """Return the mean, the variance, and the decay below and above.

    A decay is the slope of the log weight some nats below the mode; inf if the support ends before.
    Tails are cut `nats` below the mode. Far from it, sums go in strides of many values.
    """
    forgotten = elementary.exp(nats)
    start = _mode(kind, scale, center, lo, hi, a, b, base, tilt)
    z, m1, m2, one = 1.0, 0.0, 0.0, 1.0
    # for each side: the decay, the last distance that was judged, and the fall there as a factor
    fall_lo = fall_hi = np.inf
    far_lo = far_hi = 0.0
    drop_lo = drop_hi = 1.0
    # per step away from the centre, a Laplace law loses a constant, a Gaussian law ever more
    more = elementary.exp(-1.0 / scale**2) if kind == GAUSSIAN else 1.0
    spike = elementary.exp(zero)
    inverse = 0.5 / scale**2 if kind == GAUSSIAN else 1.0 / scale
    for side in range(2):
        up = side == 1
        way = 1.0 if up else -1.0
        end = hi if up else lo
        u, w, best, step = start, one, one, 0.0
        far, drop, fall = 0.0, 1.0, np.inf
        for _ in range(_MOST):
            room, k = abs(end - u), u + base
            if kind == LAPLACE:
                # the slope changes at the centre
                if (center - u) * way > 0.0:
                    room = min(room, abs(center - u))
                elif u == center:
                    step = 0.0
            if room == 0.0:
                break
            d = abs(u - start)
            stride = np.floor((d if up else min(d, k)) * _SHARE)
            stride = min(max(stride, 1.0), room)
            if stride == 1.0:
                k = k if up else k - 1.0
                if step == 0.0:
                    rise = log_ratio(kind, inverse, center, u if up else u - 1.0)
                    step = elementary.exp(min(way * (rise + tilt), _MANY_NATS))
                ratio = (a + b * k) / (k + 1.0)
                if k == 0.0:
                    ratio /= spike
                ratio = step * ratio if up else step / ratio
                step *= more
                w *= ratio
                d, mass = way * (d + 1.0), w
            else:
                # the rise in the middle of the stride represents the whole stride
                rise = log_ratio(kind, inverse, center, u + 0.5 * (way * stride - 1.0)) + tilt
                k += 0.5 * (way * stride - 1.0)
                rise = way * (rise + elementary.log((a + b * k) / (k + 1.0)))
                ratio, step = elementary.exp(rise), 0.0
                mass = w * stride * elementary.exp(0.5 * (stride + 1.0) * rise)
                w *= elementary.exp(stride * rise)
                d = way * (d + 0.5 * (stride + 1.0))
            u += way * stride
            best = max(best, w)
            z += mass
            m1 += mass * d
            m2 += mass * d * d
            if drop <= _JUDGED and w * drop < best:
                drop, far = best / w, abs(u - start)
                if drop > _JUDGED:
                    fall = max(-elementary.log(ratio), 1e-12)
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
        fall_lo = min(fall_lo, elementary.log(drop_lo) / (far_lo + mean))
    if start < hi and far_hi - mean > least:
        fall_hi = min(fall_hi, elementary.log(drop_hi) / (far_hi - mean))
    return start + mean, 0.0 if lo == hi else var, fall_lo, fall_hi


@njit()
def leaf_moments(kind, scale, center, lo, hi, a, b, base, zero, tilt, nats, out):
    """Fill `out` (c, 4) with the mean, the variance, and the decays of each leaf."""
    for v in range(kind.size):
        law = kind[v], scale[v], center[v], lo[v], hi[v]
        found = moments_of_leaf(*law, a[v], b[v], base[v], zero[v], tilt[v], nats)
        out[v, 0], out[v, 1], out[v, 2], out[v, 3] = found
