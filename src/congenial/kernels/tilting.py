"""Exponential tilts of a sum forest, by Newton steps of two passes of Gaussian messages.

Tilting every unary weight by exp(t * u), where t is the multiplier of the constraint above minus
those of the constraints below, leaves the conditional law unchanged and moves the bulk of every
message to where the constraints need it. Nothing here affects correctness: tilts and moments only
place the windows, which are verified afterwards.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from congenial.kernels.laws import GAUSSIAN, GEOMETRIC_SUM


@njit(cache=True)
def _geometric_moments(rate: float, length: float) -> tuple[float, float, float]:
    """Return log-sum, mean and second moment of exp(rate * j), j = 0..length (may be inf)."""
    if length == 0.0:
        return 0.0, 0.0, 0.0
    if length < 64.0:
        top = max(0.0, rate * length)
        s0 = s1 = s2 = 0.0
        for j in range(int(length) + 1):
            w = np.exp(rate * j - top)
            s0 += w
            s1 += w * j
            s2 += w * j * j
        return top + np.log(s0), s1 / s0, s2 / s0
    span = rate * length if length < np.inf else -np.inf
    if abs(span) < 0.02:  # nearly uniform
        mean = length * (0.5 + span / 12.0)
        var = length * (length + 2.0) / 12.0
        return np.log(length + 1.0) + 0.5 * span, mean, var + mean * mean
    if rate > 0.0:  # mirror: j -> length - j
        log_sum, mean, second = _geometric_moments(-rate, length)
        mirrored = length - mean
        return log_sum + span, mirrored, second - mean * mean + mirrored * mirrored
    gap = -np.expm1(rate)
    q = np.exp(rate)
    mean = q / gap
    var = q / (gap * gap)
    log_sum = -np.log(gap)
    if span > -700.0:
        m = length + 1.0
        tail = np.exp(rate * m)
        keep = -np.expm1(rate * m)
        log_sum += np.log(keep)
        mean -= m * tail / keep
        var -= m * m * tail / (keep * keep)
    return log_sum, max(mean, 0.0), max(var, 1e-12) + mean * mean


@njit(cache=True)
def unary_moments(
    kind: int, scale: float, center: float, lo: float, hi: float, tilt: float
) -> tuple[float, float, float]:
    """Return log-normaliser, mean and variance of weight * exp(tilt * u) on [lo, hi].

    The log-normaliser is inf where the sum diverges. A sum of geometric variables has their number
    as its `center`. A flat law must come with a finite scale
    that stands for "very wide".
    """
    if lo == hi:
        return tilt * lo, lo, 0.0
    if kind == GEOMETRIC_SUM:
        side = 1.0 if hi > 0.0 else -1.0
        q = np.exp(side * tilt - 1.0 / scale)
        return -center * np.log1p(-q), side * center * q / (1.0 - q), center * q / (1.0 - q) ** 2
    if kind == GAUSSIAN:
        middle = center + tilt * scale * scale
        peak = min(max(middle, lo), hi)
        pull = abs(peak - middle) / (scale * scale)
        reach = min(10.0 * scale + 2.0, 40.0 / max(pull, 1e-300) + 2.0)
        left, right = max(lo, np.floor(peak - reach)), min(hi, np.ceil(peak + reach))
        step = max(1.0, np.floor((right - left) / 192.0))
        z = m1 = m2 = 0.0
        at_peak = tilt * peak - 0.5 * ((peak - center) / scale) ** 2
        u = left
        while u <= right:
            w = np.exp(tilt * u - 0.5 * ((u - center) / scale) ** 2 - at_peak) * step
            z += w
            m1 += w * (u - peak)
            m2 += w * (u - peak) * (u - peak)
            u += step
        mean = m1 / z
        return at_peak + np.log(z), peak + mean, max(m2 / z - mean * mean, 1e-12)
    rate = 1.0 / scale
    up, down = tilt - rate, -tilt - rate
    if (hi == np.inf and up >= 0.0) or (lo == -np.inf and down >= 0.0):
        return np.inf, 0.0, 1.0
    if center <= lo:  # one geometric upwards from lo
        log_sum, mean, second = _geometric_moments(up, hi - lo)
        return log_sum + tilt * lo - (lo - center) * rate, lo + mean, second - mean * mean
    if center >= hi:
        log_sum, mean, second = _geometric_moments(down, hi - lo)
        return log_sum + tilt * hi - (center - hi) * rate, hi - mean, second - mean * mean
    log_r, mean_r, second_r = _geometric_moments(up, hi - center)
    log_l, mean_l, second_l = _geometric_moments(down, center - lo - 1.0)
    log_l += down  # the left part begins one step from the centre
    second_l = second_l + 2.0 * mean_l + 1.0
    mean_l += 1.0
    top = max(log_r, log_l)
    wr, wl = np.exp(log_r - top), np.exp(log_l - top)
    z = wr + wl
    mean = (wr * mean_r - wl * mean_l) / z
    second = (wr * second_r + wl * second_l) / z
    return top + np.log(z) + tilt * center, center + mean, max(second - mean * mean, 1e-12)


@njit(cache=True)
def moments(kind, scale, center, lo, hi, tilt, log_z, mean, var):
    """Fill unary log-normalisers, means and variances, all float64 (n,)."""
    for v in range(tilt.size):
        same = (
            v > 0
            and kind[v] == kind[v - 1]
            and scale[v] == scale[v - 1]
            and center[v] == center[v - 1]
            and lo[v] == lo[v - 1]
            and hi[v] == hi[v - 1]
            and tilt[v] == tilt[v - 1]
        )
        if same:
            log_z[v], mean[v], var[v] = log_z[v - 1], mean[v - 1], var[v - 1]
        else:
            log_z[v], mean[v], var[v] = unary_moments(
                kind[v], scale[v], center[v], lo[v], hi[v], tilt[v]
            )


@njit(cache=True)
def gaussian_pass(above, below_parent, sign, order, mean, var, step):
    """Fill `step` (m,) with the Newton step of every constraint's multiplier.

    Parameters
    ----------
    above : int64 (n,)
        Constraint that each variable is a summand of, -1 for none.
    below_parent : int64 (m,)
        Variable that each constraint's sum equals up to `sign`, -1 where the sum is zero.
    sign : int64 (m,)
    order : int64 (n + m,)
        Variables v as v and constraints k as n + k, every node after all that lie below it.
    mean, var : float64 (n,)
        Unary moments at the present tilts.
    """
    n, m = above.size, below_parent.size
    precision = np.empty(n)
    weighted = np.empty(n)
    pinned = np.empty(n, dtype=np.bool_)
    for v in range(n):
        pinned[v] = var[v] <= 0.0
        precision[v] = 0.0 if pinned[v] else 1.0 / var[v]
        weighted[v] = 0.0 if pinned[v] else mean[v] / var[v]
    total = np.zeros(m)
    spread = np.zeros(m)
    for i in order:
        if i < n:
            k = above[i]
            if k >= 0:
                total[k] += mean[i] if pinned[i] else weighted[i] / precision[i]
                spread[k] += 0.0 if pinned[i] else 1.0 / precision[i]
        else:
            k = i - n
            v = below_parent[k]
            if v >= 0 and not pinned[v]:
                p = 1.0 / max(spread[k], 1e-12)
                precision[v] += p
                weighted[v] += p * sign[k] * total[k]
    value = np.zeros(n)
    for j in range(order.size - 1, -1, -1):
        i = order[j]
        if i < n:
            k = above[i]
            value[i] = mean[i] if pinned[i] else weighted[i] / precision[i]
            if k >= 0 and not pinned[i]:
                value[i] += step[k] / precision[i]
        else:
            k = i - n
            v = below_parent[k]
            target = 0.0 if v < 0 else sign[k] * value[v]
            step[k] = (target - total[k]) / max(spread[k], 1e-12)


@njit(cache=True)
def node_tilts(above, below_parent, sign, theta, tilt):
    """Fill each variable's tilt: the multiplier above it less the signed ones below it."""
    for v in range(tilt.size):
        tilt[v] = theta[above[v]] if above[v] >= 0 else 0.0
    for k in range(theta.size):
        if below_parent[k] >= 0:
            tilt[below_parent[k]] -= sign[k] * theta[k]


@njit(cache=True)
def solve(kind, scale, center, lo, hi, above, below_parent, sign, order, theta, rounds):
    """Damped Newton minimisation of the summed log-normalisers over `theta` (m,), in place.

    `theta` must start where every log-normaliser is finite. Returns the number of steps taken.
    """
    n, m = above.size, theta.size
    tilt, log_z, mean, var = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    step, trial = np.zeros(m), np.empty(m)
    node_tilts(above, below_parent, sign, theta, tilt)
    moments(kind, scale, center, lo, hi, tilt, log_z, mean, var)
    value = log_z.sum()
    for it in range(rounds):
        gaussian_pass(above, below_parent, sign, order, mean, var, step)
        damping = 1.0
        moved = False
        for _ in range(40):
            for k in range(m):
                trial[k] = theta[k] + damping * step[k]
            node_tilts(above, below_parent, sign, trial, tilt)
            moments(kind, scale, center, lo, hi, tilt, log_z, mean, var)
            fresh = log_z.sum()
            if fresh < value:
                moved = True
                break
            damping *= 0.5
        if not moved:
            return it
        gain = value - fresh
        theta[:] = trial
        value = fresh
        if gain < 1e-3:
            return it + 1
    return rounds


@njit(cache=True)
def improper(above, owner, sign, order, up, down):
    """Return whether weights that never end cannot be normalised: (inside a sum, at a root).

    `up` and `down` (n,) say which variables' weights do not decrease towards either end; they are
    overwritten.
    """
    n, m = above.size, owner.size
    sum_up, sum_down = np.zeros(m, dtype=np.bool_), np.zeros(m, dtype=np.bool_)
    inside = at_root = False
    for i in order:
        if i < n:
            k = above[i]
            if k < 0:
                at_root |= up[i] or down[i]
                continue
            inside |= (sum_up[k] and down[i]) or (sum_down[k] and up[i])
            sum_up[k] |= up[i]
            sum_down[k] |= down[i]
        else:
            k = i - n
            v = owner[k]
            if v >= 0:
                up[v] &= sum_up[k] if sign[k] > 0 else sum_down[k]
                down[v] &= sum_down[k] if sign[k] > 0 else sum_up[k]
    return inside, at_root
