"""Products of spectra equal numpy's complex products but for rounding."""

from __future__ import annotations

import numpy as np

from congenial.kernels.numerics import spectra

# Relative error of a complex product by four products and two sums, and of a size.
ERROR = 4.0 * 2.0**-53


def numbers(rng, size):
    return rng.normal(size=size) + 1j * rng.normal(size=size)


def test_products_and_the_sum_of_their_sizes_are_those_of_complex_numbers():
    rng = np.random.default_rng(1)
    for size in range(1, 200):
        a, b = numbers(rng, size), numbers(rng, size)
        expected, most = a * b, np.abs(a) * np.abs(b)
        total = spectra.multiply(a.view(np.float64), b.view(np.float64))
        assert (np.abs(a - expected) <= 2.0 * ERROR * most).all()
        assert abs(total - most.sum()) <= (size + 8) * 2.0**-53 * most.sum()


def test_a_spectrum_is_multiplied_by_itself():
    a = numbers(np.random.default_rng(2), 64)
    expected = a * a
    spectra.multiply(a.view(np.float64), a.view(np.float64))
    assert (np.abs(a - expected) <= 2.0 * ERROR * np.abs(expected)).all()


def test_parts_are_multiplied_apart_so_that_bits_do_not_depend_on_the_processor():
    rng = np.random.default_rng(3)
    a, b = numbers(rng, 1000), numbers(rng, 1000)
    real = a.real * b.real - a.imag * b.imag
    imaginary = a.real * b.imag + a.imag * b.real
    spectra.multiply(a.view(np.float64), b.view(np.float64))
    assert (a.real == real).all()
    assert (a.imag == imaginary).all()
