"""Moments of tilted weights, against sums over their supports."""

from __future__ import annotations

import numpy as np
import pytest

from congenial.kernels.network.moments import moments
from congenial.kernels.numerics import laws
from support.kernel_entries import entry
from support.seeds import for_each_seed

pytestmark = pytest.mark.kernels

INF = np.inf
poles = entry("network.moments.poles")


def found(kind, scale, center, lo, hi, tilt):
    mean, var = np.empty(1), np.empty(1)
    columns = (np.array([v], dtype=float) for v in (scale, center, lo, hi, tilt))
    moments(np.array([kind]), *columns, mean, var)
    return float(mean[0]), float(var[0])


def summed(kind, scale, center, lo, hi, tilt):
    """Mean and variance over all values whose weight is above e^-45 of that at the mode."""
    if kind == laws.LAPLACE:
        falls = 1.0 / scale + tilt, 1.0 / scale - tilt
        down, up = (45.0 / fall if fall > 0.0 else np.inf for fall in falls)
        middle = center
    else:
        down = up = 10.0 * scale
        middle = min(max(np.rint(center + tilt * scale**2), lo), hi)
    u = np.arange(max(lo, middle - np.ceil(down)), min(hi, middle + np.ceil(up)) + 1)
    away = np.abs(u - center) / scale
    log = tilt * u - (away if kind == laws.LAPLACE else 0.5 * away**2)
    w = np.exp(log - log.max())
    w /= w.sum()
    mean = float(w @ u)
    return mean, float(w @ (u - mean) ** 2)


def random_leaf(rng, kind):
    """A law's scale and centre, the ends of its support, and a tilt at which it has a sum."""
    scale, center = float(rng.choice([0.3, 1.0, 5.0, 40.0])), float(rng.integers(-70, 71))
    lo = float(rng.choice([-INF, rng.integers(-60, 1)]))
    hi = float(rng.choice([INF, rng.integers(0, 60)]))
    if lo > center or hi < center:
        center = min(max(center, lo), hi) if kind == laws.LAPLACE else center
    most = 0.8 if np.isinf(lo) or np.isinf(hi) else 2.0
    return kind, scale, center, lo, hi, float(rng.uniform(-most, most)) / scale


@for_each_seed(2000)
def test_laplace_moments_are_those_of_the_sum(seed):
    case = random_leaf(np.random.default_rng([93, seed]), laws.LAPLACE)
    _, scale, center, lo, hi, tilt = case
    # where the law on one side of the centre turns by less than 0.02 over its length, its mean is
    # taken to be a sixth of that turn nearer to its middle
    up, down = abs(tilt - 1.0 / scale), abs(tilt + 1.0 / scale)
    near = min(up * (hi - center), down * (center - lo)) < 0.02
    off = 0.02 / 6.0 if near else 0.0
    mean, var = summed(*case)
    # a side's moments are differences of powers of 1 / slope, the law's of powers of the distance
    # from its centre, some roundings each
    length = max(abs(mean - center), 1.0, *(1.0 / s for s in (up, down) if s > 1e-4))
    assert found(*case) == (
        pytest.approx(mean, abs=2.0**-46 * (length + abs(center)) + off),
        pytest.approx(var, abs=2.0**-44 * length**2 + off * (hi - lo if off else 0.0) + 1e-12),
    )


@for_each_seed(2000)
def test_gaussian_moments_are_those_of_the_sum(seed):
    case = random_leaf(np.random.default_rng([94, seed]), laws.GAUSSIAN)
    mean, var = summed(*case)
    # stretches stand for up to an eighth of a deviation each
    assert found(*case) == (
        pytest.approx(mean, abs=0.03 * np.sqrt(var) + 1e-6),
        pytest.approx(var, rel=0.03, abs=1e-6),
    )


@pytest.mark.parametrize("count", [1, 3, 50])
@pytest.mark.parametrize("side", [1.0, -1.0])
def test_a_sum_of_geometric_variables_has_their_number_of_times_the_moments(count, side):
    scale, tilt = 3.0, -0.1
    lo, hi = (0.0, INF) if side > 0 else (-INF, 0.0)
    one = summed(laws.LAPLACE, scale, 0.0, lo, hi, tilt)
    got = found(laws.GEOMETRIC_SUM, scale, count, lo, hi, tilt)
    assert got == pytest.approx((count * one[0], count * one[1]), rel=1e-9)


def test_tilts_at_which_a_sum_diverges_are_poles():
    assert poles(laws.LAPLACE, 2.0, -INF, INF) == (-0.5, 0.5)
    assert poles(laws.LAPLACE, 2.0, 0.0, INF) == (-INF, 0.5)
    assert poles(laws.LAPLACE, 2.0, -3.0, 3.0) == (-INF, INF)
    assert poles(laws.GAUSSIAN, 2.0, -INF, INF) == (-INF, INF)
    assert found(laws.FLAT, 1.0, 0.0, -INF, INF, 0.0) == (0.0, INF)
    assert found(laws.LAPLACE, 1.0, 0.0, 4.0, 4.0, 0.3) == (4.0, 0.0)
