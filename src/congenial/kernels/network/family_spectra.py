"""Spectra of the sums of families of leaves, from the laws of lifts and of geometric variables.

For lifts see `family_sums`. Loops over frequencies have no branches and read no numbers out of
order, except where they only copy, so that processors work on several frequencies at once.

Benchmark row: `bounded`.
"""

from __future__ import annotations

import math

import numpy as np

from congenial.kernels.numerics import elementary
from congenial.kernels.numerics.compiling import njit

# Nats: frequencies at which the sum of the geometric variables alone is smaller are left out.
_FAINT = 36.0
# Most geometric variables whose spectrum is a power by multiplication: its error grows with their
# number, and that of logarithms with the root of it.
_FEW = 256
# Units of rounding of the spectrum of one geometric variable, and of a complex product.
_ONE, _PRODUCT = 20.0, 3.0


@njit()
def fill_spectra(number, families, size, turns, spectra, means):
    """Fill the spectra of families' sums for a period of n = turns.shape[1] values.

    `turns` (3, n) has the cosines and sines of 2 pi i / n, and the sines of pi i / n. `means`
    (families, 2) is filled with the mean of the sizes of a whole period, and a bound on the mean of
    their errors.
    """
    work = np.empty((9, spectra.shape[1]))
    for i in range(number.size):
        own = _fill_spectrum(number[i], families, size, turns, work, spectra[i])
        means[i, 0], means[i, 1] = own


@njit(inner=True)
def _fill_spectrum(f, families, size, turns, work, spectrum):
    """Fill the spectrum of one family. `work` is scratch, with frequency k in column k - 1."""
    begins, gaps, counts, _, inverses, tilts = families
    inverse, tilt, last = inverses[f], tilts[f], turns.shape[1] // 2
    rate, top = abs(tilt + inverse), tilt + inverse >= 0.0
    used = _fill_geometric(size[f], tilt - inverse, turns, work)
    _fill_shared(rate if top else -rate, turns, work, used)
    for i in range(begins[f], begins[f + 1]):
        if gaps[i] > 0:
            _multiply_lift(gaps[i], counts[i], inverse, rate, top, turns, work, used)
    re, im, error = work[0], work[1], work[2]
    sizes, errors = 1.0, 0.0
    spectrum[0] = 1.0
    for j in range(used):
        spectrum[j + 1] = complex(re[j], -im[j])
        here = math.sqrt(re[j] * re[j] + im[j] * im[j])
        sizes += 2.0 * here
        errors += 2.0 * here * error[j]
    spectrum[used + 1 :] = 0.0
    errors *= 2.0**-53
    if used < last:
        errors += 2.0 * (last - used) * elementary.exp(-_FAINT)
    return sizes / (2 * last), errors / (2 * last)


@njit(inner=True)
def _fill_geometric(number, log_ratio, turns, work):
    """Fill the spectrum of a sum of `number` geometric variables, and its errors.

    Returns the number of frequencies, up to which it is large enough to matter. The first rows of
    `work` get real and imaginary parts, and errors in units of rounding.
    """
    re, im, error = work[0], work[1], work[2]
    _, sin, half = turns[0], turns[1], turns[2]
    g, rest = elementary.exp(log_ratio), -elementary.expm1(log_ratio)
    # the size of 1 - g exp(i t) is rest sqrt(1 + wide half^2), with half of 1 - cos(t) = half^2
    wide, last = 4.0 * g / (rest * rest), half.size // 2
    most = elementary.expm1(2.0 * _FAINT / number)
    low, used = 0, last
    while low < used:
        k = (low + used + 1) // 2
        if wide * half[k] * half[k] > most:
            used = k - 1
        else:
            low = k
    if number <= _FEW:
        one_re, one_im = work[6], work[7]
        for j in range(used):
            down, up = rest + 2.0 * g * half[j + 1] * half[j + 1], g * sin[j + 1]
            by = rest / (down * down + up * up)
            one_re[j], one_im[j] = down * by, up * by
            re[j], im[j] = one_re[j], one_im[j]
            error[j] = number * (_ONE + _PRODUCT)
        bit = 1
        while 2 * bit <= number:
            bit *= 2
        while bit > 1:
            bit //= 2
            for j in range(used):
                re[j], im[j] = re[j] * re[j] - im[j] * im[j], 2.0 * re[j] * im[j]
            if number & bit:
                _multiply(one_re, one_im, re, im, used)
        return used
    for j in range(used):
        square = half[j + 1] * half[j + 1]
        x = 0.5 * number * elementary.log1p(wide * square)
        angle = number * elementary.atan(g * sin[j + 1] / (rest + 2.0 * g * square))
        a, b = elementary.cos_sin(angle)
        least = elementary.exp(-x)
        re[j], im[j] = a * least, b * least
        # in units of rounding: about 34 x for x, 20 |angle| for the angle, and some 7 x more for
        # the sine of t, whose absolute error is that of t
        error[j] = 48.0 * x + 24.0 * abs(angle) + 8.0
    return used


@njit(inner=True)
def _fill_shared(rate, turns, work, used):
    """Fill what all lifts share: parts and size of z / (z - 1), z = exp(rate + i t)."""
    cos, sin, half = turns[0], turns[1], turns[2]
    re, im, far = work[3], work[4], work[5]
    r, more = elementary.exp(rate), elementary.expm1(rate)
    for j in range(used):
        low_re, low_im = more - 2.0 * r * (half[j + 1] * half[j + 1]), r * sin[j + 1]
        norm = 1.0 / (low_re * low_re + low_im * low_im)
        a = (r * cos[j + 1] * low_re + r * sin[j + 1] * low_im) * norm
        b = (r * sin[j + 1] * low_re - r * cos[j + 1] * low_im) * norm
        re[j], im[j], far[j] = a, b, math.sqrt(a * a + b * b)


@njit(inner=True)
def _multiply_lift(gap, count, inverse, rate, top, turns, work, used):
    """Multiply a spectrum `count` times by that of the lift of a leaf `gap` away from its bound.

    A lift has the generating function (constant + weight * (...)).
    """
    re, im, error, by_re, by_im, far = work[0], work[1], work[2], work[3], work[4], work[5]
    s_re, s_im, own = work[6], work[7], work[8]
    cos, sin, at = turns[0], turns[1], 0
    most, part = -elementary.expm1(-2.0 * inverse), elementary.exp(-gap * rate)
    body = elementary.expm1(-gap * rate) / elementary.expm1(-rate) if rate > 0.0 else float(gap)
    whole = most * body + part if top else most * body * elementary.exp(-rate) + 1.0
    constant, weight = (part if top else 1.0) / whole, most / whole
    # of exp(i t gap) times one number, less another
    times, less = (1.0, part) if top else (part, 1.0)
    for j in range(used):
        at = (at + gap) & (cos.size - 1)
        s_re[j], s_im[j] = cos[at], sin[at]
    for j in range(used):
        u_re, u_im = times * s_re[j] - less, times * s_im[j]
        a = constant + weight * (u_re * by_re[j] - u_im * by_im[j])
        b = weight * (u_re * by_im[j] + u_im * by_re[j])
        large = math.sqrt(a * a + b * b)
        s_re[j], s_im[j] = a, b
        own[j] = (64.0 * weight * far[j] * (1.0 + part) + 8.0) / max(large, 1e-30) + 3.0
    for _ in range(count):
        _multiply(s_re, s_im, re, im, used)
        for j in range(used):
            error[j] += own[j]


@njit(inner=True)
def _multiply(by_re, by_im, re, im, used):
    """Multiply some complex numbers by others."""
    for j in range(used):
        a, b = re[j], im[j]
        re[j], im[j] = a * by_re[j] - b * by_im[j], a * by_im[j] + b * by_re[j]
