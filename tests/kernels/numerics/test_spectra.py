"""Products of spectra equal numpy's complex products but for rounding."""

from __future__ import annotations

import numpy as np

from congenial.kernels.numerics import spectra

UNIT = 2.0**-53
# A part of a product has an error of at most two units of |a| |b|, so each of the two products that
# are compared is within 3 of the true one; sizes add another two.
ERROR = 8.0 * UNIT


def numbers(rng, size):
    return rng.normal(size=size) + 1j * rng.normal(size=size)


def test_products_and_the_sum_of_their_sizes_are_those_of_complex_numbers():
    rng = np.random.default_rng(1)
    for _ in range(3000):
        size = int(rng.integers(1, 100))
        a, b = numbers(rng, size), numbers(rng, size)
        expected, most = a * b, np.abs(a) * np.abs(b)
        total = spectra.multiply(a.view(np.float64), b.view(np.float64))
        assert (np.abs(a - expected) <= ERROR * most).all()
        assert abs(total - most.sum()) <= (size * UNIT + ERROR) * most.sum()


def test_a_spectrum_is_multiplied_by_itself():
    a = numbers(np.random.default_rng(2), 64)
    expected = a * a
    spectra.multiply(a.view(np.float64), a.view(np.float64))
    assert (np.abs(a - expected) <= ERROR * np.abs(expected)).all()


def test_parts_are_multiplied_apart_so_that_bits_do_not_depend_on_the_processor():
    rng = np.random.default_rng(3)
    a, b = numbers(rng, 1000), numbers(rng, 1000)
    real = a.real * b.real - a.imag * b.imag
    imaginary = a.real * b.imag + a.imag * b.real
    spectra.multiply(a.view(np.float64), b.view(np.float64))
    assert (a.real == real).all()
    assert (a.imag == imaginary).all()
