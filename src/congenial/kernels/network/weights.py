"""Unary weights of a sum network, each within one unit of the last place.

Exponents and exponentials are taken in doubled precision, as unevaluated sums of two doubles
(Dekker 1971), and rounded once.
"""

from __future__ import annotations

import numpy as np

from congenial.kernels.numerics import elementary
from congenial.kernels.numerics.compiling import fused, njit
from congenial.kernels.numerics.doubled import doubled_exp, times, two_product, two_sum
from congenial.kernels.numerics.laws import GAUSSIAN, GEOMETRIC_SUM, LAPLACE

# Powers of a ratio that are known at once.
_AT_ONCE = 16


@njit(inner=True)
def fill_unary(kind, inverse, center, tilt, lo, out):
    """Fill `out` with the tilted weights at lo, lo + 1, ...; return the log of the factor.

    From the mode outwards, each weight is the last one times a ratio, both in doubled precision,
    which loses less than 2^-60 in 10^6 steps. Each weight is then rounded once.
    """
    if kind == GEOMETRIC_SUM:
        return _fill_geometric_sum(inverse, center, tilt, lo, out)
    hi = float(lo + out.size - 1)
    mode = center
    if kind == GAUSSIAN:
        mode = np.rint(center + 0.5 * tilt / inverse)
    else:
        decay = inverse if kind == LAPLACE else 0.0
        if abs(tilt) > decay:
            mode = hi if tilt > 0.0 else float(lo)
    mode = min(max(mode, float(lo)), hi)
    h, l = exponent(kind, inverse, center, tilt, mode)
    top, at = h, np.int64(mode) - lo
    h, l = two_sum(h - top, l)
    h, l = doubled_exp(h, l)
    out[at] = h + l
    for step in (1, -1):
        _fill_on(kind, inverse, center, tilt, np.int64(mode), step, h, l, out, at)
    return top


@njit(inner=True)
def exponent(kind, inverse, center, tilt, u):
    """Return log(weight(u)) + tilt * u as an unevaluated sum of two doubles.

    `inverse` is 1 / scale for Laplace and 1 / (2 sigma^2) for Gaussian weights.
    """
    p, pe = two_product(tilt, u)
    d = abs(u - center)
    q, qe = 0.0, 0.0
    if kind == GAUSSIAN:
        q, qe = two_product(inverse, d * d)
    elif kind == LAPLACE:
        q, qe = two_product(inverse, d)
    x, e = two_sum(p, -q)
    return two_sum(x, e + (pe - qe))


@njit(inner=True)
def _fill_on(kind, inverse, center, tilt, u, step, h, l, out, at):
    """Fill `out` from `at` on to one end, by `step`; the weight at `u`, out[at], is h + l."""
    number = out.size - 1 - at if step > 0 else at
    rh, rl = doubled_exp(*_exponent_of_ratio(kind, inverse, center, tilt, u, step))
    if kind == GAUSSIAN:
        qh, ql = doubled_exp(-2.0 * inverse, 0.0)
        for _ in range(number):
            h, l = times(h, l, rh, rl)
            at += step
            out[at] = h + l
            rh, rl = times(rh, rl, qh, ql)
        return
    before = number
    if kind == LAPLACE and 0.0 < step * (center - u) < number:
        before = np.int64(step * (center - u))
    h, l = _fill_powers(h, l, rh, rl, step, out, at, before)
    if before < number:
        # beyond the mode of the untilted weight, its slope changes sign
        u += step * before
        rh, rl = doubled_exp(*_exponent_of_ratio(kind, inverse, center, tilt, u, step))
        _fill_powers(h, l, rh, rl, step, out, at + step * before, number - before)


@njit(inner=True)
def _fill_powers(h, l, rh, rl, step, out, at, number):
    """Fill the next entries of `out` with (h + l) (rh + rl)^i, i = 1, ..., number; return the last.

    Powers of the ratio up to some are known, so that products do not wait for each other. Each
    entry has one rounding, and errors of products that are far below it.
    """
    many = min(number, _AT_ONCE)
    powers, lows = np.empty(_AT_ONCE), np.empty(_AT_ONCE)
    ph, pl = 1.0, 0.0
    for i in range(many):
        ph, pl = times(ph, pl, rh, rl)
        powers[i], lows[i] = ph, pl
    done = 0
    while done < number:
        many = min(number - done, _AT_ONCE)
        first = at + step * (done + 1)
        for i in range(many):
            rest = fused(h, lows[i], l * powers[i])
            out[first + step * i] = fused(h, powers[i], rest)
        h, l = times(h, l, powers[many - 1], lows[many - 1])
        done += many
    return h, l


@njit(inner=True)
def _exponent_of_ratio(kind, inverse, center, tilt, u, step):
    """Return the log of the ratio of the weights at u + step and u, as a sum of two doubles."""
    if kind == GAUSSIAN:
        p, pe = two_product(inverse, 2.0 * step * (u - center) + 1.0)
        x, e = two_sum(step * tilt, -p)
        return two_sum(x, e - pe)
    if kind == LAPLACE:
        away = 1.0 if step * (u - center) >= 0.0 else -1.0
        return two_sum(step * tilt, -away * inverse)
    return step * tilt, 0.0


@njit(inner=True)
def _fill_geometric_sum(inverse, n, tilt, lo, out):
    """Fill `out` with C(k + n - 1, k) q^k, k = |v|, scaled to 1 at its mode.

    The values v lie on one side of zero, q = exp(-inverse + tilt * sign(v)). From the mode
    outwards, each weight is the last one times (k + n) q / (k + 1). The rounding errors of products
    and ratios are summed separately (Ogita, Rump and Oishi 2005), so that a weight has an error of
    at most two units of the last place.
    """
    sign = 1 if lo + out.size - 1 > 0 else -1
    first = lo if sign > 0 else -(lo + out.size - 1)
    x, xe = two_sum(-inverse, sign * tilt)
    q, ql = doubled_exp(x, xe)
    mode = np.floor(((n - 1.0) * q) / (1.0 - q)) - first
    middle = np.int64(min(max(mode, 0.0), out.size - 1.0))
    # k increases from one end of `out`
    start = 0 if sign > 0 else out.size - 1
    out[start + sign * middle] = 1.0
    p, off = 1.0, 0.0
    for i in range(middle + 1, out.size):
        k = float(first + i - 1)
        p, off = _step(p, off, q, ql, k + n, k + 1.0)
        out[start + sign * i] = p * (1.0 + off)
    p, off = 1.0, 0.0
    inverse_q = 1.0 / q
    a, b = two_product(inverse_q, q)
    inverse_ql = -inverse_q * ((a - 1.0) + b + inverse_q * ql)
    for i in range(middle - 1, -1, -1):
        k = float(first + i)
        p, off = _step(p, off, inverse_q, inverse_ql, k + 1.0, k + n)
        out[start + sign * i] = p * (1.0 + off)
    k = float(first + middle)
    return (
        elementary.log_gamma(k + n)
        - elementary.log_gamma(k + 1.0)
        - elementary.log_gamma(n)
        + x * k
    )


@njit(inner=True)
def _step(p, off, q, ql, up, down):
    """Multiply p (1 + off) by (q + ql) * up / down, and collect the rounding errors in `off`."""
    top, top_low = two_product(q, up)
    ratio = top / down
    back, back_low = two_product(ratio, down)
    missed = ((top - back) - back_low + top_low + ql * up) / top
    fresh, low = two_product(p, ratio)
    if fresh == 0.0:
        return 0.0, 0.0
    return fresh, off + missed + low / fresh
