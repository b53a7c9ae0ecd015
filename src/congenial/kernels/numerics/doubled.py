"""Doubled precision: numbers as unevaluated sums of two doubles (Dekker 1971).

Sums, products and quotients have a relative error of about 2^-100.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from congenial.kernels.numerics import elementary
from congenial.kernels.numerics.compiling import fused, njit

_LN2_HIGH = 0.6931471805599453
_LN2_LOW = 2.3190468138462996e-17
# The terms r^j / j! of an exponential up to the last one, and those that are doubled; 1 / j! as
# doubles, and what these lack.
_LAST, _DOUBLED = 12, 5
_EXACT = [Fraction(1, math.factorial(j)) for j in range(_LAST + 1)]
_INVERSE = np.array([float(c) for c in _EXACT])
_INVERSE_LOW = np.array([float(c - Fraction(float(c))) for c in _EXACT])


@njit(inner=True)
def two_product(x, y):
    """Return x * y exactly."""
    p = x * y
    return p, fused(x, y, -p)


@njit(inner=True)
def two_sum(x, y):
    """Return x + y exactly."""
    s = x + y
    t = s - x
    return s, (x - (s - t)) + (y - t)


@njit(inner=True)
def times(xh, xl, yh, yl):
    """Return (xh + xl) (yh + yl)."""
    p, e = two_product(xh, yh)
    e += xh * yl + xl * yh
    s = p + e
    return s, e - (s - p)


@njit(inner=True)
def plus(xh, xl, yh, yl):
    """Return (xh + xl) + (yh + yl), with an error of 2^-100 times the larger of the two."""
    s, e = two_sum(xh, yh)
    e += xl + yl
    t = s + e
    return t, e - (t - s)


@njit(inner=True)
def over(xh, xl, yh, yl):
    """Return (xh + xl) / (yh + yl)."""
    q = xh / yh
    p, e = two_product(q, yh)
    r = (((xh - p) - e) + xl - q * yl) / yh
    s = q + r
    return s, r - (s - q)


@njit(inner=True)
def doubled_exp(x, xl):
    """Return exp(x + xl) as an unevaluated sum of two doubles, with a relative error of 2^-95."""
    k = np.rint(x / _LN2_HIGH * elementary.PARTS)
    if k < -1060.0 * elementary.PARTS:
        return 0.0, 0.0
    # k log(2) / 32 and a rest of at most 0.011 in size
    part = k / elementary.PARTS
    p, pe = two_product(part, _LN2_HIGH)
    r, re = two_sum(x, -p)
    r, re = plus(r, re, xl - pe - part * _LN2_LOW, 0.0)
    # from r^6 / 6! on, doubles do: their errors are below 2^-100
    h, l = _INVERSE[_LAST], 0.0
    for j in range(_LAST - 1, _DOUBLED, -1):
        h = fused(h, r, _INVERSE[j])
    for j in range(_DOUBLED, -1, -1):
        p = h * r
        off = fused(h, r, -p) + (h * re + l * r)
        s = _INVERSE[j] + p
        h, l = s, (p - (s - _INVERSE[j])) + (off + _INVERSE_LOW[j])
    whole = np.int64(k)
    i, n = whole & (elementary.PARTS - 1), min(whole >> 5, np.int64(2000))
    h, l = times(h, l, elementary.POWER[i], elementary.POWER_LOW[i])
    half = n >> 1
    one, other = elementary.power_of_two(half), elementary.power_of_two(n - half)
    return h * one * other, l * one * other


@njit(inner=True)
def doubled_log(x, xl):
    """Return log(x + xl), x > 0, with an absolute error of 2^-93."""
    y = elementary.log(x)
    # one Newton step: log x = y + log(x exp(-y)), where x exp(-y) is nearly 1
    h, l = doubled_exp(-y, 0.0)
    h, l = times(h, l, x, xl)
    d, dl = plus(h, l, -1.0, 0.0)
    return plus(y, 0.0, d, dl - 0.5 * d * d)


@njit(inner=True)
def word_of(h, l):
    """Return (h + l) 2^64 rounded down, for h + l within [0, 1]; the largest word at 1."""
    h, l = h * 4294967296.0, l * 4294967296.0
    whole = np.floor(h)
    if h == whole and l < 0.0:
        whole -= 1.0
    if whole >= 4294967296.0:
        return ~np.uint64(0)
    # limited, because a product that rounds up to 2^32 would carry
    low = min(max((h - whole) + l, 0.0) * 4294967296.0, 4294967295.0)
    return (np.uint64(whole) << np.uint64(32)) + np.uint64(low)
