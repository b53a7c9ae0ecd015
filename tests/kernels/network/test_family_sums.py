"""Lifts of bounded leaves, the spectra of their sums, and moments of weighted normal laws."""

from __future__ import annotations

import math

import numpy as np
import pytest

from congenial.kernels.network import family_sums as kernels
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
