"""Weights of leaves that have a prior: the law of the noise times a count law, by ratios.

A prior is of Panjer's class (1981): ``p(k + 1) / p(k) = (a + b k) / (k + 1)`` for counts k >= 0.
For b = 0 it is Poisson with mean a; for 0 < b < 1 it is negative binomial with dispersion a / b. If
``a < 0``, there is no prior. The count of value u is ``u + base``. For zero inflation, a count of 0
has ``exp(zero)`` times its weight.
"""

from __future__ import annotations

import math

import numpy as np

from congenial.kernels.network.messages import PRODUCT, UNARY, multiply, parts, scale_down, widest
from congenial.kernels.network.weights import fill_unary
from congenial.kernels.numerics import elementary
from congenial.kernels.numerics.compiling import njit
from congenial.kernels.numerics.convolution import convolve_plainly
from congenial.kernels.numerics.laws import GAUSSIAN, LAPLACE

# Weights above this are scaled down, so that they do not overflow.
_LARGE = 1e150
# Exponents above this may overflow.
_MANY_NATS = 700.0
_PER_NAT = 1.4426950408889634
# Larger rises of the noise's log weight count as this, so that products with weights up to `_LARGE`
# and the prior's ratios, below 2^53, do not overflow. No weight is filled by such a rise.
_STEEP = 300.0


@njit(inner=True)
def _law_ratios(kind, inverse, center, tilt, lo, way, out):
    """Multiply `out` by the law's ratios from lo + i to lo + i + 1, or back if `way` is -1.

    For laws other than a Gaussian, a ratio takes one of two values. None rises beyond `_STEEP`.
    """
    if kind == GAUSSIAN:
        for i in range(out.size):
            step = -inverse * (2.0 * (float(lo + i) - center) + 1.0)
            out[i] *= elementary.exp(min(way * (step + tilt), _STEEP))
        return
    slope = inverse if kind == LAPLACE else 0.0
    rises = elementary.exp(min(way * (tilt + slope), _STEEP))
    falls = elementary.exp(min(way * (tilt - slope), _STEEP))
    mode = min(max(np.int64(math.ceil(center)) - lo, 0), out.size)
    for i in range(mode):
        out[i] *= rises
    for i in range(mode, out.size):
        out[i] *= falls


@njit(inner=True)
def _farthest(ratios):
    """Return the number of first ratios, possibly 0, whose product is largest, and its log.

    `e` counts how often products were divided by `_LARGE`, so that they neither overflow nor
    underflow.
    """
    p = best = 1.0
    e = best_e = at = 0
    for i in range(ratios.size):
        p *= ratios[i]
        if e == best_e:
            higher = p > best
        else:
            higher = elementary.log(p) - elementary.log(best) > (best_e - e) * elementary.log(
                _LARGE
            )
        if higher:
            best, best_e, at = p, e, i + 1
        if p > _LARGE:
            p /= _LARGE
            e += 1
        elif p < 1.0 / _LARGE:
            p *= _LARGE
            e -= 1
    return at, elementary.log(best) + best_e * elementary.log(_LARGE)


@njit(inner=True)
def _log_weight(kind, inverse, center, a, b, base, zero, tilt, u):
    """Return the log of a weight: the law's is 0 at its mode, the prior's at a count of 0."""
    d, k = abs(u - center), u + base
    law = inverse * d if kind == LAPLACE else inverse * d * d
    prior = -elementary.log_gamma(k + 1.0)
    if b > 0.0:
        prior += (
            elementary.log_gamma(k + a / b) - elementary.log_gamma(a / b) + k * elementary.log(b)
        )
    else:
        prior += k * elementary.log(a)
    if k == 0.0:
        prior += zero
    return prior - law + tilt * u


@njit()
def fill_leaf(kind, inverse, center, a, b, base, zero, tilt, lo, out):
    """Fill `out` with the weights at lo, lo + 1, ..., the largest 1; return the log of the factor.

    From the largest weight outwards, each weight is the last one times a ratio with a relative
    error of at most 8 units of 2^-53. A count of 0 can only be the first.
    """
    n = out.size
    first = float(lo) + base
    ratios = out[: n - 1]
    for i in range(n - 1):
        k = first + i
        ratios[i] = (a + b * k) / (k + 1.0)
    _law_ratios(kind, inverse, center, tilt, lo, 1.0, ratios)
    at, rise = _farthest(ratios)
    empty = first == 0.0
    if empty and zero > rise:
        at = 0
    w, ratio = 1.0, out[at]
    out[at] = 1.0
    for i in range(at, n - 1):
        w *= ratio
        if empty and i == 0:
            w *= elementary.exp(-zero)
        ratio = out[i + 1]
        out[i + 1] = w
    # the ratios of the way down are computed directly: inverses would be rounded once more
    ratios = out[:at]
    for i in range(at):
        k = first + i
        ratios[i] = (k + 1.0) / (a + b * k)
    _law_ratios(kind, inverse, center, tilt, lo, -1.0, ratios)
    w = 1.0
    for i in range(at - 1, -1, -1):
        w *= ratios[i]
        ratios[i] = w
    if empty and at > 0:
        # for a large `zero`, the product would be 0 times infinity
        out[0] = out[0] * elementary.exp(zero) if zero < _MANY_NATS else elementary.exp(zero - rise)
    u = float(lo + at)
    return _log_weight(kind, inverse, center, a, b, base, zero, tilt, u)


@njit()
def fill(begin, end, classes, law, windows, table, factor, powers, logs):
    """Fill the tables of classes begin..end-1, as `messages.fill`, with priors.

    Each table was divided by ``2^powers * exp(logs)``. Powers are integers, so two fillings of the
    same network differ only where windows differ.
    """
    ctype, left, right, _ = classes
    kind, inverse, center, a, b, base, zero, tilt = law
    lo, hi, offset = windows
    work = np.empty((4, 2 * widest(begin, end, classes, windows) + 16))
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
                logs[c] = fill_leaf(*law, a[c], b[c], base[c], zero[c], tilt[c], lo[c], out)
            powers[c] = 0
            continue
        if ctype[c] == PRODUCT:
            multiply(c, classes, windows, table, out)
        else:
            convolve_plainly(*parts(c, classes, windows, table), out, 0, width, work)
        factor[c] = scale_down(out)
        powers[c] = (
            powers[left[c]]
            + powers[right[c]]
            + np.int64(np.rint(elementary.log(factor[c]) * _PER_NAT))
        )
        logs[c] = logs[left[c]] + logs[right[c]]
