"""Lifts of bounded leaves, the spectra of their sums, and moments of weighted normal laws."""

from __future__ import annotations

import math

import numpy as np
import pytest

from congenial.kernels.network import family_sums as kernels
from congenial.kernels.numerics.laws import LAPLACE
from support.kernel_entries import entry

pytestmark = pytest.mark.kernels


@pytest.mark.parametrize("gap", [0, 1, 2, 7, 40])
@pytest.mark.parametrize(("scale", "tilt"), [(1.0, 0.1), (5.0, -0.1), (20.0, -0.3), (3.0, -1 / 3)])
def test_a_bounded_leaf_is_a_lift_and_a_geometric_variable(gap, scale, tilt):
    lift = np.empty(gap + 1)
    kernels.fill_lift(1.0 / scale, tilt, lift)
    size = 400
    leaf = np.exp(-np.abs(np.arange(size) - gap) / scale + tilt * np.arange(size))
    geometric = np.exp((tilt - 1.0 / scale) * np.arange(size))
    summed = np.convolve(lift, geometric)[:size]
    np.testing.assert_allclose(summed / summed[0], leaf / leaf[0], rtol=1e-12)


def weighed(mean, variance, decay, tilt, lo, hi):
    """Return mean and variance of a weighted normal law, by the trapezoidal rule on both sides."""
    masses, firsts, seconds, logs = [], [], [], []
    for side in (1.0, -1.0):
        # the law at x = side * y for y >= 0 is a normal one with this mean, cut off
        own = side * mean + variance * (side * tilt - decay)
        width = np.sqrt(variance)
        width = width if own > -width else variance / -own
        start = max(own - 9.0 * width, 0.0)
        y = np.linspace(start, max(own, 0.0) + 40.0 * width, 8001)
        log = -0.5 * y * (y - 2.0 * own) / variance
        inside = (side * y >= lo) & (side * y <= hi)
        law = np.where(inside, np.exp(log - log.max()), 0.0)
        logs.append(log.max())
        masses.append(np.trapezoid(law, y))
        firsts.append(side * np.trapezoid(law * y, y))
        seconds.append(np.trapezoid(law * y * y, y))
    shares = np.exp(np.array(logs) - max(logs))
    first, second = (shares @ each / (shares @ masses) for each in (firsts, seconds))
    return first, second - first**2


@pytest.mark.parametrize("mean", [-30.0, 0.0, 12.0])
@pytest.mark.parametrize("tilt", [-0.1, 0.0, 0.07])
@pytest.mark.parametrize("lo", [-np.inf, -8.0])
def test_moments_of_weighted_normal_laws(mean, tilt, lo):
    law = mean, 90.0, 0.1, tilt, lo, np.inf
    (first, variance), found = weighed(*law), entry("network.family_sums.weigh_one")(*law)
    assert found[0] == pytest.approx(first, abs=0.2 * np.sqrt(variance))
    assert found[1] == pytest.approx(variance, rel=0.3)


def test_moments_of_random_laws_without_ends_are_nearly_exact():
    source, found_of = np.random.default_rng(5), entry("network.family_sums.weigh_one")
    for _ in range(3000):
        deviation, decay = 10.0 ** source.uniform(-1.0, 3.0), 10.0 ** source.uniform(-3.0, 0.5)
        mean, tilt = source.normal() * 3.0 * deviation, source.normal() * decay
        law = mean, deviation**2, decay, tilt, -np.inf, np.inf
        (first, variance), found = weighed(*law), found_of(*law)
        assert found[0] == pytest.approx(first, abs=1e-3 * np.sqrt(variance))
        assert found[1] == pytest.approx(variance, rel=3e-3)


def test_mills_ratios_have_their_stated_error():
    ratio = entry("network.family_sums._mills")
    for x in np.linspace(0.0, 35.0, 2001).tolist():
        true = math.sqrt(0.5 * math.pi) * math.exp(0.5 * x * x) * math.erfc(x / math.sqrt(2.0))
        assert ratio(x) == pytest.approx(true, rel=1e-5)


def test_moments_of_lifts_are_those_of_their_laws():
    source, moments = np.random.default_rng(4), entry("network.family_sums.moments_of_family")
    many = 10**12  # lifts, and no geometric variables
    for _ in range(3000):
        gap, inverse = int(source.integers(1, 60)), float(10.0 ** source.uniform(-3.0, 0.5))
        tilt = inverse - float(10.0 ** source.uniform(-4.0, 1.0))
        if source.random() < 0.2:  # nearly even weights
            tilt = -inverse + 1e-4 * float(source.normal()) / gap
        j = np.arange(gap + 1)
        log = np.log(-np.expm1(-2.0 * inverse)) - inverse * (gap - j)
        log[0] = -inverse * gap
        law = np.exp(log + tilt * j - (log + tilt * j).max())
        law /= law.sum()
        mean = law @ j
        lifts = np.array([0, gap]), np.array([5, many]), 0, 2, 0
        found = np.array(moments(*lifts, inverse, tilt)) / many
        assert found == pytest.approx((mean, law @ (j - mean) ** 2), rel=2e-4, abs=1e-9)


def test_bounds_beyond_tables_cover_all_that_is_left_out():
    """Random laws of sums, whose ends are known to fall, times weights of owners."""
    source, cut = np.random.default_rng(21), 0
    for _ in range(3000):
        rate, more = source.uniform(0.2, 3.0), 10.0**-16
        # at the ends, the law of the sum is below exp(-50)
        size = int(source.integers(1, 300) + 250.0 / rate)
        mode, first = source.uniform(0.2, 0.8) * size, int(source.integers(-50, 50))
        i = np.arange(size)
        exact = np.exp(-rate * np.abs(i - mode))
        sums = exact + more * source.uniform(-1.0, 1.0, size)
        levels = -rate * mode, rate * mode
        ends = np.array([[rate, levels[0], rate, levels[1]]])
        decay, tilt = rate * source.uniform(0.0, 0.9), rate * source.uniform(-0.05, 0.05)
        center = float(first + round(mode + source.uniform(-0.1, 0.1) * size))
        one, none = np.zeros(1, dtype=np.int64), np.zeros(1)
        noise = none + decay, none + center, none + tilt
        law = one + LAPLACE, *noise, none - np.inf, none + np.inf
        found, tails = np.empty((1, 6)), np.empty((1, 4))
        table, parts = np.empty(size, dtype=np.int64), (one, one + size)
        args = one, sums[None, :], parts, none + more, one + first, ends, law, none
        used = kernels.weigh_all(*args, found, tails, table, 0)
        assert used == found[0, 2] > 0
        begin, scale = int(found[0, 1]) - first, found[0, 3]
        place = first + np.arange(-300, size + 300)
        log = -decay * np.abs(place - center) + tilt * place
        log -= log[300 : size + 300].max()
        weight = np.exp(log - rate * np.abs(place - first - mode)) * scale
        inside = 300 + begin + np.arange(used)
        assert (weight[inside] <= table[:used] * (1.0 + 1e-9)).all()
        below, above = weight[: 300 + begin][::-1], weight[300 + begin + used :]
        for side, beyond in enumerate((below, above)):
            bound, fall = tails[0, 2 * side : 2 * side + 2]
            most = bound * np.exp(-fall * np.arange(beyond.size)) * (1.0 + 1e-9)
            # doubles have few digits left below 1e-290
            assert (beyond <= most + 1e-290).all()
            # nor is the bound far above what it covers, and errors
            assert bound <= (beyond[0] + more * scale) * np.exp(12.0)
        cut += below.size + above.size > 600
    assert cut > 1000
