"""Sums of members with tables: ends that hold, and spectra within their errors."""

from __future__ import annotations

import math

import numpy as np
import pytest

from congenial.kernels.network import member_sums as kernels
from congenial.kernels.numerics import laws

pytestmark = pytest.mark.kernels

GRID, STAGE, DEPTH = 2.0**-40, 7.0 * 2.0**-53, 46.0
# Values beyond tables that are added up term by term.
REACH = 150


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


def placed(family, tails, wanted, found):
    """Place a sum whose owner is fixed at `wanted`; each row of the family has its own table."""
    table, place, size, times = family
    one, zero = np.zeros(1), np.zeros(1, dtype=np.int64)
    owner = np.array([laws.FLAT]), one, one, one, one + wanted, one + wanted
    rows = np.array([0, size.size]), np.arange(size.size), times
    moments = np.empty((3, size.size))
    kernels.moments_of_tables(place, size, table, moments)
    tables = place, size, table, tails, moments
    kernels.place_members(np.array([0]), *rows, tables, zero, owner, one, GRID, DEPTH, found)


def random_tails(source, family):
    """Return bounds beyond tables, and the tables with such values on either side."""
    table, place, size, _ = family
    tails, parts = np.zeros((4, size.size)), []
    for r in range(size.size):
        own = table[place[r] : place[r] + size[r]].astype(float)
        far = np.arange(REACH)
        beyond = []
        for side in (0, 2):
            rate = float(source.uniform(0.2, 1.0)) if source.random() < 0.7 else 0.0
            factor = 2.0**25 * float(source.random()) * (rate > 0.0)
            tails[side : side + 2, r] = factor, rate
            beyond.append(factor * np.exp(-rate * far))
        parts.append(np.concatenate((beyond[0][::-1], own, beyond[1])))
    return tails, parts


def law_with_tails(family, parts, tilt):
    """Return the weights of the tilted sum, where those in each table add up to 1."""
    law = np.ones(1)
    for part, number, width in zip(parts, family[3], family[2], strict=True):
        own = part * np.exp(tilt * (np.arange(part.size) - REACH))
        for _ in range(number):
            law = np.convolve(law, own / own[REACH : REACH + width].sum())
    return law


@pytest.mark.parametrize("bounded", [True, False])
def test_a_sum_lies_between_its_ends_near_the_wanted_mean(bounded):
    source = np.random.default_rng(1)
    for _ in range(1000):
        family = random_family(source)
        tails = np.zeros((4, family[2].size))
        if not bounded:
            tails, parts = random_tails(source, family)
        most = int(((family[2] - 1) * family[3]).sum())
        wanted, found = float(round(source.uniform(0.2, 0.8) * most)), np.empty((1, 10))
        placed(family, tails, wanted, found)
        tilt, low, high, falls, lowest, fall, highest, longest, lost, off = found[0]
        assert tilt == math.floor(tilt / GRID) * GRID
        assert longest == family[2].max()
        law, begin = law_of_sum(family, tilt), 0
        at = np.arange(law.size)
        mean, spread = law @ at, math.sqrt(max(law @ at**2 - (law @ at) ** 2, 0.0))
        if bounded:
            assert abs(mean - wanted) <= max(0.4 * spread, 0.5)
            assert off * max(spread, 0.1) == pytest.approx(wanted - mean, abs=1e-6)
            assert lost == 0.0
        else:
            law, begin = law_with_tails(family, parts, tilt), -REACH * int(family[3].sum())
            assert lost >= math.log(law.sum()) - 1e-9
        at = begin + np.arange(law.size)
        assert law[at < low].sum() < 1e-16 * (1.0 + lost)
        assert law[at > high].sum() < 1e-16 * (1.0 + lost)
        # Chernoff: each value beyond an end, and before it, has at most so much
        room = 1e-15 * law.max()
        if falls > 0.0:
            assert (law <= np.exp(np.minimum(lowest + falls * (at - low), 50.0)) + room).all()
        if fall > 0.0:
            assert (law <= np.exp(np.minimum(highest - fall * (at - low), 50.0)) + room).all()
        if bounded:
            assert (falls > 0.0) == (low > 0.0)
            assert (fall > 0.0) == (high < most)
        else:
            assert (falls > 0.0) == (low > 0.0 or (tails[0] > 0.0).any())


def test_moments_of_tables_are_those_of_their_entries():
    table, place, size, _ = random_family(np.random.default_rng(4))
    moments = np.empty((3, size.size))
    kernels.moments_of_tables(place, size, table, moments)
    for r in range(size.size):
        own = table[place[r] : place[r] + size[r]].astype(float)
        at = np.arange(own.size)
        mean = own @ at / own.sum()
        wanted = own.sum(), mean, own @ (at - mean) ** 2 / own.sum()
        np.testing.assert_allclose(moments[:, r], wanted, rtol=1e-12, atol=1e-12)


def test_a_tilt_that_no_tail_allows_is_said_to_be_unknown():
    source = np.random.default_rng(3)
    family = random_family(source)
    table, place, size, times = family
    tails = np.zeros((4, size.size))
    tails[2], tails[3] = 1e6, 1e-3
    one, zero, found = np.zeros(1), np.zeros(1, dtype=np.int64), np.empty((1, 10))
    owner = np.array([laws.LAPLACE]), one + 0.5, one, one + 2.0, one - np.inf, one + np.inf
    rows = np.array([0, size.size]), np.arange(size.size), times
    moments = np.empty((3, size.size))
    kernels.moments_of_tables(place, size, table, moments)
    tables = place, size, table, tails, moments
    kernels.place_members(np.array([0]), *rows, tables, zero, owner, one, GRID, DEPTH, found)
    # the weight rises by 2 - 0.5 at least, so the tilt of the sum is that at least
    assert found[0, 0] == pytest.approx(1.5, abs=2.0**-38)
    assert np.isnan(found[0, 1:]).all()


@pytest.mark.parametrize("rows_at_once", [1, 100])
def test_a_product_of_spectra_is_that_of_the_sum_within_its_error(rows_at_once):
    source = np.random.default_rng(2)
    for _ in range(500):
        family = random_family(source)
        table, place, size, times = family
        tilt = float(source.choice([0.0, -0.05, 0.1]))
        law = law_of_sum(family, tilt)
        n = 1 << max(6, int(law.size).bit_length())
        spectrum, live = np.empty((1, n // 2 + 1), dtype=np.complex128), np.full(1, -1)
        product, sizes = spectrum.view(np.float64), np.empty(1)
        for i in range(0, size.size, rows_at_once):
            own = slice(i, i + rows_at_once)
            rows = np.empty((place[own].size, n))
            same = np.full(place[own].size, tilt), np.full(place[own].size, float(size.max()))
            kernels.lay_out(place[own], size[own], *same, table, rows)
            assert np.abs(rows.sum(axis=1) - 1.0).max() < 1e-14
            spectra = np.fft.rfft(rows).view(np.float64)
            which, one = np.arange(len(rows)), np.zeros(len(rows), dtype=np.int64)
            kernels.multiply(spectra, which, one, times[own], product, live)
        kernels.finish(product, live, sizes)
        exact = np.fft.rfft(law, n)
        twice = np.full(n // 2 + 1, 2.0)
        twice[[0, -1]] = 1.0
        # each factor has the error of its transform, and one of a product
        error = times.sum() * (STAGE * (math.log2(n) + 1.0) + kernels.PRODUCT) + kernels.TINY
        assert twice @ np.abs(spectrum[0] - exact) / n < error
        # the bound is not idle
        assert error < 1e-11
        assert twice @ np.abs(exact) / n <= sizes[0] * (1.0 + 1e-6)
        assert sizes[0] == pytest.approx(math.sqrt(twice @ np.abs(exact) ** 2 / n), rel=1e-6)


def test_products_that_are_left_as_they_are_have_no_effect():
    # a wide even law times itself: most frequencies vanish
    size = np.array([400])
    table = np.full(400, (1 << 62) // 400)
    rows, n = np.empty((1, 8192)), 8192
    kernels.lay_out(np.zeros(1, dtype=np.int64), size, np.zeros(1), size + 0.0, table, rows)
    spectrum = np.empty((1, n // 2 + 1), dtype=np.complex128)
    product, live, none = spectrum.view(np.float64), np.full(1, -1), np.zeros(1, dtype=np.int64)
    spectra, sizes = np.fft.rfft(rows).view(np.float64), np.empty(1)
    for _ in range(2):
        kernels.multiply(spectra, none, none, np.full(1, 9), product, live)
    assert live[0] < n // 4
    kernels.finish(product, live, sizes)
    assert (spectrum[0, live[0] :] == 0.0).all()
    found, law = np.fft.irfft(spectrum[0], n), np.ones(1)
    for _ in range(18):
        law = np.convolve(law, rows[0, :400])
    error = 19.0 * (STAGE * 14.0 + kernels.PRODUCT) + STAGE * 14.0 * sizes[0]
    assert np.abs(found[: law.size] - law).max() < error
