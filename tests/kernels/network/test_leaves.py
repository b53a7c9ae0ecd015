"""Moments of tilted leaves under a prior, against sums."""

from __future__ import annotations

import math

import numpy as np
import pytest

from congenial.kernels.network.leaves import leaf_moments
from congenial.kernels.numerics import laws

COUNTS = np.arange(400)


def negative_binomial(mean, r):
    logs = [math.lgamma(k + r) - math.lgamma(r) - math.lgamma(k + 1.0) for k in COUNTS]
    b = mean / (mean + r)
    return np.exp(np.array(logs) + COUNTS * math.log(b) + r * math.log1p(-b))


@pytest.mark.parametrize("kind", [laws.LAPLACE, laws.GAUSSIAN, laws.FLAT])
@pytest.mark.parametrize("tilt", [-0.2, 0.0, 0.1])
def test_means_and_variances_are_those_of_the_weights(kind, tilt):
    mean, r, center, scale, zero = 4.0, 2.0, 3, 2.5, 0.7
    b = mean / (mean + r)
    a = b * r
    k = np.arange(600)
    log_p = np.concatenate([[0.0], np.cumsum(np.log((a + b * k[:-1]) / (k[:-1] + 1)))])
    noise = {
        laws.LAPLACE: -np.abs(k - center) / scale,
        laws.GAUSSIAN: -0.5 * ((k - center) / scale) ** 2,
        laws.FLAT: np.zeros(k.size),
    }[kind]
    weight = np.exp(log_p + noise + tilt * k + zero * (k == 0))
    wanted = (k * weight).sum() / weight.sum()
    spread = ((k - wanted) ** 2 * weight).sum() / weight.sum()
    out = np.empty((1, 4))
    one = [
        np.array([v], dtype=float) for v in (scale, 0.0, -center, np.inf, a, b, center, zero, tilt)
    ]
    # counted from the measurement: u = k - center
    leaf_moments(np.array([kind]), one[0], one[1], one[2], one[3], *one[4:], 60.0, out)
    assert out[0, 0] == pytest.approx(wanted - center, abs=1e-9)
    assert out[0, 1] == pytest.approx(spread, rel=1e-9)
    assert (out[0, 2:] > 0).all()


def test_moments_of_two_thousand_leaves_are_direct_sums_and_decays_are_positive():
    count, rng = 2000, np.random.default_rng(84)
    kind = rng.choice([laws.LAPLACE, laws.GAUSSIAN, laws.FLAT], count)
    mean, r = 10.0 ** rng.uniform(-1.0, 1.0, count), 10.0 ** rng.uniform(-0.5, 1.0, count)
    b = mean / (mean + r)
    scale, zero = 10.0 ** rng.uniform(-0.3, 1.3, count), rng.uniform(-2.0, 2.0, count)
    base = rng.integers(0, 20, count).astype(np.float64) * (rng.random(count) < 0.5)
    tilt = rng.uniform(-1.0, 0.5, count) * -np.log(b)
    hi = np.where(rng.random(count) < 0.3, rng.integers(1, 30, count), np.inf)
    out = np.empty((count, 4))
    columns = scale, np.zeros(count), -base, hi, b * r, b, base, zero, tilt
    leaf_moments(kind, *columns, 60.0, out)
    for v in range(count):
        # the weight falls by half of -log b a step at least: 60 nats are within these counts
        far = min(base[v] + hi[v], base[v] + 60.0 / (-0.5 * np.log(b[v])) + 200.0)
        k = np.arange(int(far) + 1)
        log = np.append(0.0, np.cumsum(np.log(b[v] * (r[v] + k[:-1]) / (k[:-1] + 1))))
        u = k - base[v]
        noise = {
            laws.LAPLACE: -np.abs(u) / scale[v],
            laws.GAUSSIAN: -0.5 * (u / scale[v]) ** 2,
            laws.FLAT: np.zeros(k.size),
        }[kind[v]]
        log += noise + tilt[v] * u + zero[v] * (k == 0)
        weight = np.exp(log - log.max())
        wanted = (u * weight).sum() / weight.sum()
        spread = ((u - wanted) ** 2 * weight).sum() / weight.sum()
        # differences of squares of values up to `size` lose its square times a few thousand units
        size = 1.0 + np.abs(wanted) + base[v] + np.sqrt(spread)
        assert abs(out[v, 0] - wanted) < 1e-9 * size, v
        assert abs(out[v, 1] - max(spread, 1e-12)) < 1e-9 * size * size, v
    assert (out[:, 2:] > 0.0).all()


@pytest.mark.parametrize("kind", [laws.LAPLACE, laws.GAUSSIAN, laws.FLAT])
@pytest.mark.parametrize("zero", [0.0, 3.0])
@pytest.mark.parametrize("center", [-6.0, 0.0, 25.0])
def test_decays_are_those_of_the_prior_the_noise_and_the_tilt(kind, zero, center):
    mean, r, base, tilt = 9.0, 0.6, 4.0, -0.03
    b = mean / (mean + r)
    inverse = {laws.LAPLACE: 0.5, laws.GAUSSIAN: 0.02, laws.FLAT: 0.0}[kind]
    u = COUNTS - base
    d = np.abs(u - center)
    p = negative_binomial(mean, r)
    p[0] *= math.exp(zero)
    w = p * np.exp(tilt * u - inverse * (d * d if kind == laws.GAUSSIAN else d))
    w /= w.sum()
    out = np.empty((1, 4))
    scale = {laws.LAPLACE: 2.0, laws.GAUSSIAN: 5.0, laws.FLAT: 1.0}[kind]
    columns = (scale, center, -base, np.inf, b * r, b, base, zero, tilt)
    leaf_moments(np.array([kind]), *(np.array([float(c)]) for c in columns), 45.0, out)
    assert out[0, 0] == pytest.approx(w @ u, rel=1e-6, abs=1e-6)
    assert out[0, 1] == pytest.approx(w @ (u - w @ u) ** 2, rel=1e-5)
    # slopes at the far ends: of prior, noise and tilt above; below, the counts end
    if kind == laws.LAPLACE:
        assert out[0, 3] == pytest.approx(0.5 + 0.03 - math.log(b), rel=0.15)
    if center == -6.0:
        assert out[0, 2] == np.inf


def wide_leaf(kind, mean, r, scale, center):
    """A prior of this mean and dispersion, and what its noise has measured."""
    b = mean / (mean + r)
    return (kind, *(np.array([v]) for v in (scale, 0.0, -center, np.inf, b * r, b, center)))


@pytest.mark.parametrize("kind", [laws.LAPLACE, laws.GAUSSIAN, laws.FLAT])
@pytest.mark.parametrize("r", [0.4, 3.0])
def test_wide_laws_and_those_far_from_the_measurement_have_their_moments(kind, r):
    k = np.arange(400_000.0)
    for mean, scale, center, zero in (
        (9000.0, 700.0, 12000.0, 0.0),
        (9000.0, 4000.0, 150_000.0, 6.0),
        (50.0, 90.0, 300_000.0, 0.0),
        (5_000.0, 5000.0, 3.0, 2.0),
    ):
        b = mean / (mean + r)
        log = np.append(0.0, np.cumsum(np.log((b * r + b * k[:-1]) / (k[:-1] + 1.0))))
        away = np.abs(k - center) / scale
        log -= {laws.LAPLACE: away, laws.GAUSSIAN: 0.5 * away**2, laws.FLAT: 0.0}[kind]
        weight = np.exp(log + zero * (k == 0.0) - log.max())
        weight /= weight.sum()
        wanted = weight @ k
        spread = math.sqrt(weight @ (k - wanted) ** 2)
        out = np.empty((1, 4))
        columns = wide_leaf(np.array([kind]), mean, r, scale, center)
        leaf_moments(*columns, np.array([zero]), np.zeros(1), 45.0, out)
        # strides of a 256th of the way to the mode
        assert abs(out[0, 0] + center - wanted) < 1e-3 * spread + 1e-6
        assert math.sqrt(out[0, 1]) == pytest.approx(spread, rel=1e-3)
