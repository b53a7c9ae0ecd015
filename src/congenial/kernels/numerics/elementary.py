"""Elementary functions that have the same bits on every processor.

The C library and numpy have a version of each function for each kind of processor, and these
versions may differ in the last bit. The functions here use sums, products, quotients and `fused`
products and sums of doubles, each rounded once (IEEE 754), and operations on the bits of doubles.
Bounds on errors: `proofs/elementary-functions.md`.
"""

from __future__ import annotations

import math
from decimal import Decimal, localcontext

import numpy as np

from congenial.kernels.numerics.compiling import fused, njit

# An exponent is a multiple of log(2) / 32 and a rest.
PARTS = 32
# Beyond these, an exponential is below half of the smallest double, or above the largest one.
_LEAST, _MOST = -745.2, 709.79
# Up to here, the power of two in an exponential is a normal number.
_NORMAL = 700.0
# Added to a number and subtracted again, this rounds the number to an integer.
_SHIFT = 1.5 * 2.0**52
# Logarithms are known at knots, (128 + j) / 256 for j up to 128; below 54, at twice that.
_KNOTS, _DOUBLED = 128, 54
# Within this distance of 1, a logarithm needs no knot.
_NEAR = 2.0**-8
# The last of the coefficients 1 / (i + 2)! of exp(x) - 1 - x.
_LAST = 11
_FACTORIAL = np.array([1.0 / math.factorial(i + 2) for i in range(_LAST + 1)])


def _in_parts(number: Decimal) -> tuple[float, float, float]:
    """Return three doubles that add up to a number below 2; the first two have 32 bits each."""
    high = round(number * 2**32)
    middle = round(number * 2**64) - (high << 32)
    rest = number - Decimal(high) / 2**32 - Decimal(middle) / 2**64
    return high / 2**32, middle / 2**64, float(rest)


def _angle(tangent: Decimal) -> Decimal:
    """Return the angle whose tangent is given, between 0 and 1."""
    # twice half the angle, until the series converges fast
    for _ in range(4):
        tangent /= 1 + (1 + tangent * tangent).sqrt()
    square, power, terms = tangent * tangent, tangent, Decimal(0)
    for j in range(25):
        terms += power / (2 * j + 1)
        power *= -square
    return 16 * terms


with localcontext(prec=60):
    _log_2 = Decimal(2).ln()
    _powers = [(_log_2 * i / PARTS).exp() for i in range(PARTS)]
    # 2^(i / 32) as doubles, and what these lack
    POWER = np.array([float(p) for p in _powers])
    POWER_LOW = np.array([float(p - Decimal(float(p))) for p in _powers])
    _knots = [1 + Decimal(j) / _KNOTS for j in range(_KNOTS + 1)]
    _logs = [_in_parts((k if j < _DOUBLED else k / 2).ln()) for j, k in enumerate(_knots)]
    _LOG = np.array([high for high, *_ in _logs])
    _LOG_LOW = np.array([middle + low for _, middle, low in _logs])
    _INVERSE = np.array([float(2 / knot) for knot in _knots])
    _LOG_2, *_rest = _in_parts(_log_2)
    _PI_HALF = 2 * _angle(Decimal(1))
    _TURN, _TURN_LOW, _TURN_LEAST = _in_parts(_PI_HALF)
    # the angles whose tangents are i / 8
    _ANGLE = np.array([float(_angle(Decimal(i) / 8)) for i in range(9)])
    # log(2 pi) / 2
    _HALF_LOG_TURN = float((4 * _PI_HALF).ln() / 2)
_LOG_2_LOW = sum(_rest)
_PART, _PART_LOW, _PER_NAT = _LOG_2 / PARTS, _LOG_2_LOW / PARTS, PARTS / (_LOG_2 + _LOG_2_LOW)
_PER_TURN = 1.0 / (_TURN + _TURN_LOW)


@njit(inner=True)
def power_of_two(n):
    """Return 2^n, for n from -1022 to 1023."""
    return np.int64((n + 1023) << 52).view(np.float64)


@njit(inner=True)
def _reduced(x):
    """Return k and exp(r) - 1, where x = k log(2) / 32 + r and r is below 0.011 in size."""
    k = fused(x, _PER_NAT, _SHIFT) - _SHIFT
    r = fused(-k, _PART_LOW, fused(-k, _PART, x))
    z = r * r
    high = fused(z, 1.0 / 720.0, fused(r, 1.0 / 120.0, 1.0 / 24.0))
    return np.int64(k), fused(z, fused(z, high, fused(r, 1.0 / 6.0, 0.5)), r)


@njit(inner=True)
def exp(x):
    """Return exp(x)."""
    if not x > _LEAST:
        return 0.0 if x <= _LEAST else x
    if x > _MOST:
        return np.inf
    k, more = _reduced(x)
    i, n = k & (PARTS - 1), k >> 5
    value = POWER[i] + fused(POWER[i], more, POWER_LOW[i])
    if -_NORMAL < x < _NORMAL:
        return value * power_of_two(n)
    half = n >> 1
    return value * power_of_two(half) * power_of_two(n - half)


@njit(inner=True)
def expm1(x):
    """Return exp(x) - 1."""
    if not -40.0 < x < 40.0:
        return exp(x) - 1.0
    if -0.3 < x < 0.3:
        rest = 0.0
        for i in range(_LAST, -1, -1):
            rest = fused(x, rest, _FACTORIAL[i])
        return fused(x * x, rest, x)
    k, more = _reduced(x)
    i, scale = k & (PARTS - 1), power_of_two(k >> 5)
    high = POWER[i] * scale
    return (high - 1.0) + fused(high, more, POWER_LOW[i] * scale)


@njit(inner=True)
def _with_second(r, more):
    """Return log(1 + r) - r + more, for r of at most 2^-8 in size."""
    z = r * r
    high = fused(z, fused(r, 1.0 / 7.0, -1.0 / 6.0), fused(r, 1.0 / 5.0, -1.0 / 4.0))
    return fused(z, fused(z, high, fused(r, 1.0 / 3.0, -0.5)), more)


@njit(inner=True)
def _log_of(x, low):
    """Return log(x + low), for a positive x; `low` is tiny beside x."""
    tiny = x < 2.0**-1022
    if tiny:
        x *= 2.0**54
    bits = np.float64(x).view(np.int64)
    n = float((bits >> 52) - (1076 if tiny else 1022))
    bits = (bits & 0xFFFFFFFFFFFFF) | (1022 << 52)
    # the knot next to it has a logarithm in the table; the rest is at most 1/256 of it
    knot = (bits + (1 << 44)) >> 45 << 45
    j = (knot >> 45) - (1022 << 7)
    if j < _DOUBLED:
        n -= 1.0
    r = (np.int64(bits).view(np.float64) - np.int64(knot).view(np.float64)) * _INVERSE[j]
    more = fused(n, _LOG_2_LOW, _LOG_LOW[j])
    if low != 0.0:
        more += low / x
    return fused(n, _LOG_2, _LOG[j]) + (r + _with_second(r, more))


@njit(inner=True)
def log(x):
    """Return log(x); -inf at 0 and nan below."""
    if not 0.0 < x < np.inf:
        return -np.inf if x == 0.0 else np.nan if x < 0.0 else x
    return _log_of(x, 0.0)


@njit(inner=True)
def log1p(x):
    """Return log(1 + x); -inf at -1 and nan below."""
    if -_NEAR < x < _NEAR:
        return x + _with_second(x, 0.0)
    if not -1.0 < x < np.inf:
        return -np.inf if x == -1.0 else np.nan if x < -1.0 else x
    whole = 1.0 + x
    return _log_of(whole, x - (whole - 1.0) if x < 1.0 else 1.0 - (whole - x))


@njit(inner=True)
def cos_sin(x):
    """Return cos(x) and sin(x); nan beyond 2^50."""
    if not -(2.0**50) < x < 2.0**50:
        return np.nan, np.nan
    k = np.rint(x * _PER_TURN)
    r = ((x - k * _TURN) - k * _TURN_LOW) - k * _TURN_LEAST
    z = r * r
    sin, cos = 1.0, 1.0
    for j in range(8, 0, -1):
        sin = 1.0 - z / (2.0 * j * (2.0 * j + 1.0)) * sin
    for j in range(8, 0, -1):
        cos = 1.0 - z / ((2.0 * j + 1.0) * (2.0 * j + 2.0)) * cos
    sin, cos = r * sin, 1.0 - 0.5 * z * cos
    quarter = np.int64(k) & 3
    if quarter & 1:
        cos, sin = -sin, cos
    return (-cos, -sin) if quarter & 2 else (cos, sin)


@njit(inner=True)
def atan(x):
    """Return the angle whose tangent is x."""
    if math.isnan(x):
        return x
    t = abs(x)
    inverted = t > 1.0
    if inverted:
        t = 1.0 / t
    i = np.int64(8.0 * t + 0.5)
    near = 0.125 * i
    u = (t - near) / (1.0 + near * t)
    z = u * u
    rest = 1.0 / 9.0 - z * (1.0 / 11.0 - z * (1.0 / 13.0 - z / 15.0))
    rest = z * (1.0 / 3.0 - z * (1.0 / 5.0 - z * (1.0 / 7.0 - z * rest)))
    out = _ANGLE[i] + (u - u * rest)
    if inverted:
        out = _TURN + ((_TURN_LOW + _TURN_LEAST) - out)
    return out if x >= 0.0 else -out


@njit(inner=True)
def power(x, y):
    """Return x^y for x >= 0; the relative error grows with the size of its logarithm."""
    if y == 0.0:
        return 1.0
    return exp(y * log(x))


@njit(inner=True)
def log_gamma(x):
    """Return the logarithm of the gamma function at x > 0; nan elsewhere."""
    if not x > 0.0:
        return np.nan
    # its value at x + k, less log(x (x + 1) ... (x + k - 1)), where Stirling's series is short
    product = 1.0
    while x < 16.0:
        product *= x
        x += 1.0
    z = 1.0 / (x * x)
    series = 1.0 / 1680.0 - z * (1.0 / 1188.0 - z * (691.0 / 360360.0))
    series = (1.0 / 12.0 - z * (1.0 / 360.0 - z * (1.0 / 1260.0 - z * series))) / x
    return (x - 0.5) * log(x) - x + (_HALF_LOG_TURN + (series - log(product)))
