"""Sums of members with tables: ends that hold, and spectra within their errors."""

from __future__ import annotations

import math

import numpy as np
import pytest

from congenial.kernels.network import member_sums as kernels
from congenial.kernels.numerics import laws

pytestmark = pytest.mark.kernels

GRID, STAGE = 2.0**-40, 7.0 * 2.0**-53


def random_family(source):
    """Return (tables one after another, places, sizes, times), each table adding up to 2^62."""
    size = source.integers(1, 40, int(source.integers(1, 6)))
    parts = []
    for width in size.tolist():
        away = np.arange(width) - source.integers(0, width)
        law = np.exp(-np.abs(away) * source.choice([0.02, 0.3, 2.0]))
        parts.append((law / law.sum() * (2.0**62 - 2.0 * width)).astype(np.int64) + 1)
    place = np.append(0, np.cumsum(size)[:-1])
    return np.concatenate(parts), place, size, source.integers(1, 4, size.size)


def law_of_sum(family, tilt):
    """Return the law of the tilted sum, by convolution."""
    table, place, size, times = family
    law = np.ones(1)
    for begin, width, number in zip(place, size, times, strict=True):
        one = table[begin : begin + width] * np.exp(
            tilt * (np.arange(width) - (width - 1) * (tilt > 0))
        )
        for _ in range(number):
            law = np.convolve(law, one / one.sum())
    return law


def placed(family, wanted, found):
    """Place a sum whose owner is fixed at `wanted`."""
    table, place, size, times = family
    one = np.zeros(1)
    owner = np.array([laws.FLAT]), one, one, one + wanted, one + wanted
    args = np.array([0]), np.array([0, size.size]), place, size, times, table
    kernels.place_members(*args, np.zeros(1, dtype=np.int64), owner, one, GRID, found)


def test_a_sum_lies_between_its_ends_near_the_wanted_mean():
    source = np.random.default_rng(1)
    for _ in range(2000):
        family = random_family(source)
        most = int(((family[2] - 1) * family[3]).sum())
        wanted, found = float(round(source.uniform(0.2, 0.8) * most)), np.empty((1, 5))
        placed(family, wanted, found)
        tilt, low, high, by, longest = found[0]
        assert tilt == math.floor(tilt / GRID) * GRID
        law = law_of_sum(family, tilt)
        at = np.arange(law.size)
        mean = law @ at
        assert abs(mean - wanted) <= max(0.4 * math.sqrt(law @ (at - mean) ** 2), 0.5)
        assert law[: int(low)].sum() < 1e-16
        assert law[int(high) + 1 :].sum() < 1e-16
        assert by > 0.0
        assert longest == family[2].max()


@pytest.mark.parametrize("rows_at_once", [1, 100])
def test_a_product_of_spectra_is_that_of_the_sum_within_its_error(rows_at_once):
    source = np.random.default_rng(2)
    for _ in range(500):
        family = random_family(source)
        table, place, size, times = family
        tilt = float(source.choice([0.0, -0.05, 0.1]))
        law = law_of_sum(family, tilt)
        n = 1 << max(6, int(law.size).bit_length())
        product = np.ones((1, 5, n // 2 + 1))
        product[:, 1] = product[:, 4] = 0.0
        live, error = np.full(1, n // 2 + 1), STAGE * (math.log2(n) + 1.0)
        for i in range(0, size.size, rows_at_once):
            own = slice(i, i + rows_at_once)
            rows = np.empty((place[own].size, n))
            same = np.full(place[own].size, tilt), np.full(place[own].size, float(size.max()))
            kernels.lay_out(place[own], size[own], *same, table, rows)
            assert np.abs(rows.sum(axis=1) - 1.0).max() < 1e-14
            spectra = np.fft.rfft(rows).view(np.float64)
            which = np.zeros(len(rows), dtype=np.int64)
            kernels.multiply(spectra, which, times[own], error, product, live)
        spectrum, means = np.empty((1, n // 2 + 1), dtype=np.complex128), np.empty((1, 3))
        kernels.finish(product, spectrum, means)
        exact = np.fft.rfft(law, n)
        twice = np.full(n // 2 + 1, 2.0)
        twice[[0, -1]] = 1.0
        assert twice @ np.abs(spectrum[0] - exact) / n < means[0, 1] + 1e-15
        # the bound is not idle
        assert means[0, 1] < 1e-11
        assert means[0, 0] == pytest.approx(twice @ np.abs(exact) / n, rel=1e-6)


def test_products_that_are_left_as_they_are_have_no_effect():
    # a wide even law times itself: most frequencies vanish
    size = np.array([400])
    table = np.full(400, (1 << 62) // 400)
    rows, n = np.empty((1, 8192)), 8192
    kernels.lay_out(np.zeros(1, dtype=np.int64), size, np.zeros(1), size + 0.0, table, rows)
    product = np.ones((1, 5, n // 2 + 1))
    product[:, 1] = product[:, 4] = 0.0
    live, none = np.full(1, n // 2 + 1), np.zeros(1, dtype=np.int64)
    spectra, error = np.fft.rfft(rows).view(np.float64), STAGE * 14.0
    for _ in range(2):
        kernels.multiply(spectra, none, np.full(1, 9), error, product, live)
    assert (product[0, 2] < 1e-30).mean() > 0.5
    spectrum, means = np.empty((1, n // 2 + 1), dtype=np.complex128), np.empty((1, 3))
    kernels.finish(product, spectrum, means)
    found, law = np.fft.irfft(spectrum[0], n), np.ones(1)
    for _ in range(18):
        law = np.convolve(law, rows[0, :400])
    assert np.abs(found[: law.size] - law).max() < means[0, 1] + error * means[0, 0]
