"""Weights of leaves that have a prior: the law of the noise times a count law, by ratios.

A prior is of Panjer's class (1981): ``p(k + 1) / p(k) = (a + b k) / (k + 1)`` for counts k >= 0.
That is Poisson of mean a for b = 0, and negative binomial of dispersion a / b for 0 < b < 1. Where
``a < 0`` there is no prior. Values are counted from `base`: the count is ``u + base``.
"""

from __future__ import annotations

import math

import numpy as np

from congenial.kernels.compiling import njit
from congenial.kernels.laws import GAUSSIAN, LAPLACE
from congenial.kernels.messages import UNARY, combine, working_lines
from congenial.kernels.weights import fill_unary

# Where tails are judged, and where they are forgotten, in nats below the mode.
_JUDGED, _FORGOTTEN = 30.0, 60.0
# Steps after which a tail is no longer followed.
_MOST = 1 << 22


@njit(inner=True)
def _law_step(kind, inverse, center, u):
    """Return log law(u + 1) - log law(u)."""
    if kind == LAPLACE:
        return inverse if u < center else -inverse
    if kind == GAUSSIAN:
        return -inverse * (2.0 * (u - center) + 1.0)
    return 0.0


@njit(inner=True)
def _step(kind, inverse, center, a, b, base, tilt, u):
    """Return the log of the ratio of the weights at u + 1 and u."""
    k = u + base
    return _law_step(kind, inverse, center, u) + tilt + math.log((a + b * k) / (k + 1.0))


@njit(inner=True)
def _log_weight(kind, inverse, center, a, b, base, tilt, u):
    """Return the log of a weight: the law's is 0 at its mode, the prior's at a count of 0."""
    d, k = abs(u - center), u + base
    law = inverse * d if kind == LAPLACE else inverse * d * d
    prior = -math.lgamma(k + 1.0)
    if b > 0.0:
        prior += math.lgamma(k + a / b) - math.lgamma(a / b) + k * math.log(b)
    else:
        prior += k * math.log(a)
    return prior - law + tilt * u


@njit()
def fill_leaf(kind, inverse, center, a, b, base, tilt, lo, out):
    """Fill `out` with the weights at lo, lo + 1, ..., the largest 1; return the log of the factor.

    From the largest outwards each is the last one times a ratio, which is within 8 units of
    2^-53 as it is multiplied.
    """
    n = out.size
    top, best, at = 0.0, 0.0, 0
    for i in range(n - 1):
        top += _step(kind, inverse, center, a, b, base, tilt, float(lo + i))
        if top > best:
            best, at = top, i + 1
    out[at] = 1.0
    for i in range(at, n - 1):
        u = float(lo + i)
        k = u + base
        out[i + 1] = out[i] * (
            (a + b * k) / (k + 1.0) * math.exp(_law_step(kind, inverse, center, u) + tilt)
        )
    for i in range(at, 0, -1):
        u = float(lo + i - 1)
        k = u + base
        out[i - 1] = out[i] * (
            (k + 1.0) / (a + b * k) * math.exp(-_law_step(kind, inverse, center, u) - tilt)
        )
    u = float(lo + at)
    return _log_weight(kind, inverse, center, a, b, base, tilt, u)


@njit()
def leaf_moments(kind, inverse, center, lo, hi, a, b, base, tilt, out):
    """Fill `out` (c, 4) with the mean, the variance, and the decay below and above, of each leaf.

    A decay is the slope where a tail has lost some nats; inf where the support ends before.
    """
    far, drop = np.empty(2), np.empty(2)
    for v in range(kind.size):
        start = min(max(center[v], lo[v]), hi[v])
        z, m1, m2 = 1.0, 0.0, 0.0
        out[v, 2] = out[v, 3] = np.inf
        far[0] = far[1] = drop[0] = drop[1] = 0.0
        # sums are kept relative to the weight at `start`, and brought down where they grow
        scale = 0.0
        for side in range(2):
            way = 1.0 if side == 1 else -1.0
            end = hi[v] if side == 1 else lo[v]
            u, log_w, best, slope = start, 0.0, 0.0, 0.0
            judged = False
            for _ in range(_MOST):
                if u == end:
                    break
                at = u if side == 1 else u - 1.0
                move = way * _step(kind[v], inverse[v], center[v], a[v], b[v], base[v], tilt[v], at)
                slope = -move
                log_w += move
                u += way
                best = max(best, log_w)
                if not judged and best - log_w > drop[side]:
                    drop[side], far[side] = best - log_w, abs(u - start)
                if log_w - scale > 200.0:
                    shrink = math.exp(scale - log_w)
                    z, m1, m2, scale = z * shrink, m1 * shrink, m2 * shrink, log_w
                w = math.exp(log_w - scale)
                d = u - start
                z += w
                m1 += w * d
                m2 += w * d * d
                if not judged and log_w < best - _JUDGED:
                    judged = True
                    out[v, 2 + side] = max(slope, 1e-12)
                if log_w < best - _FORGOTTEN:
                    break
        mean = m1 / z
        out[v, 0] = start + mean
        out[v, 1] = max(m2 / z - mean * mean, 1e-12)
        # a tail is no faster than on its way there, unless the support ends at once
        for side in range(2):
            way = far[side] + mean * (1.0 if side == 0 else -1.0)
            if way > 2.0 * math.sqrt(out[v, 1]) + 1.0:
                out[v, 2 + side] = min(out[v, 2 + side], drop[side] / way)
        if lo[v] == hi[v]:
            out[v, 1] = 0.0


@njit()
def fill(
    begin,
    end,
    ctype,
    left,
    right,
    sign,
    kind,
    inverse,
    center,
    a,
    b,
    base,
    tilt,
    lo,
    hi,
    offset,
    table,
    factor,
    powers,
    logs,
):
    """Fill the tables of classes begin..end-1, as `congenial.kernels.messages.fill`, with priors.

    What a table was divided by is ``2^powers * exp(logs)``; powers are integers, so that this is
    the same for two fillings of the same network but for what windows change.
    """
    work = working_lines(begin, end, ctype, left, right, lo, hi)
    for c in range(begin, end):
        if lo[c] > hi[c]:
            continue
        width = hi[c] - lo[c] + 1
        out = table[offset[c] : offset[c] + width]
        if ctype[c] == UNARY:
            if a[c] < 0.0:
                logs[c] = fill_unary(kind[c], inverse[c], center[c], tilt[c], lo[c], out)
            else:
                law = kind[c], inverse[c], center[c]
                logs[c] = fill_leaf(*law, a[c], b[c], base[c], tilt[c], lo[c], out)
            powers[c] = 0
            continue
        top = combine(c, ctype, left, right, sign, lo, hi, offset, table, out, work)
        factor[c] = top
        powers[c] = powers[left[c]] + powers[right[c]] + np.int64(np.rint(math.log2(top)))
        logs[c] = logs[left[c]] + logs[right[c]]


@njit()
def log_marginals(kind, inverse, log_mode, y, mean, dispersion, reach, out):
    """Fill `out` (n,) with the log probability of each measurement under its prior.

    Priors are negative binomial, Poisson where `dispersion` is inf; sums run over counts within
    `reach` of the measurement, or of 0 where that is negative. `log_mode` is the log of the law's
    probability of zero noise.
    """
    for v in range(y.size):
        r, m = dispersion[v], mean[v]
        first = max(0.0, y[v] - reach[v])
        last = max(y[v], 0.0) + reach[v]
        if r == np.inf:
            a, b = m, 0.0
            log_p = first * math.log(m) - m - math.lgamma(first + 1.0)
        else:
            b = m / (m + r)
            a = b * r
            log_p = math.lgamma(first + r) - math.lgamma(r) - math.lgamma(first + 1.0)
            log_p += first * math.log(b) - r * math.log1p(m / r)
        d = abs(first - y[v])
        log_w = log_p - (inverse[v] * d if kind == LAPLACE else inverse[v] * d * d)
        total, top = 1.0, log_w
        k = first
        while k < last:
            log_w += math.log((a + b * k) / (k + 1.0)) + _law_step(kind, inverse[v], y[v], k)
            if log_w > top:
                total = total * math.exp(top - log_w) + 1.0
                top = log_w
            else:
                total += math.exp(log_w - top)
            k += 1.0
        out[v] = top + math.log(total) + log_mode[v]
