"""Weights of leaves with priors, against the laws of counts themselves."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import gammaln

from congenial.kernels.network.messages import MERGE, PRODUCT, UNARY
from congenial.kernels.network.priors import fill, fill_leaf
from congenial.kernels.network.records import Classes, LeafWeights, Windows
from congenial.kernels.numerics import laws
from support.seeds import for_each_seed

pytestmark = pytest.mark.kernels


def log_leaf(kind, inverse, center, a, b, base, zero, tilt, u):
    """Log weights at `u`: 0 for the law at its mode, and for the prior at 0 but for `zero`."""
    k = u + base
    if b > 0.0:
        prior = gammaln(k + a / b) - gammaln(a / b) - gammaln(k + 1.0) + k * np.log(b)
    else:
        prior = k * np.log(a) - gammaln(k + 1.0)
    away = np.abs(u - center)
    law = inverse * (away**2 if kind == laws.GAUSSIAN else away)
    return prior + zero * (k == 0) - law + tilt * u


def random_leaf(rng):
    """A leaf's law, prior and tilt, the first value of its table, and the table's length."""
    kind = int(rng.choice([laws.LAPLACE, laws.GAUSSIAN]))
    inverse = float(rng.choice([0.001, 0.4, 1.0, 40.0, 200.0, 5000.0]))
    center = float(rng.integers(-40, 41))
    a, b = float(np.exp(rng.uniform(-5, 5))), float(rng.choice([0.0, 0.05, 0.3, 0.95]))
    base, zero = float(rng.integers(0, 50)), float(rng.choice([0.0, 4.0, 60.0]))
    tilt = float(rng.normal() * rng.choice([0.01, 0.3]))
    lo = int(rng.choice([-base, rng.integers(-base, 20)]))
    return (kind, inverse, center, a, b, base, zero, tilt), lo, int(rng.integers(1, 90))


@for_each_seed(3000)
def test_a_leaf_has_the_law_of_the_noise_times_that_of_the_count(seed):
    case, lo, length = random_leaf(np.random.default_rng([97, seed]))
    out = np.empty(length)
    log = fill_leaf(*case, lo, out)
    u = lo + np.arange(length, dtype=float)
    wanted = log_leaf(*case, u)
    _, inverse, center, a, b, *_ = case
    # up to 90 steps of 8 units each; logs are sums of terms of these sizes, here and there
    far = np.abs(u).max() + 50.0
    terms = gammaln(far + (a / b if b > 0.0 else 0.0)) + 6.0 * far + 800.0
    terms += inverse * (far + abs(center)) ** 2
    off = 90 * 8 * 2.0**-53 + 8.0 * terms * 2.0**-52
    assert out.max() == 1.0
    assert abs(log - wanted.max()) <= off
    wanted -= wanted.max()
    held = wanted > -600.0
    assert np.abs(np.log(out[held]) - wanted[held]).max() <= off
    assert (out[~held] < 1e-250).all()


@for_each_seed(1000)
def test_sums_and_products_keep_their_scale(seed):
    # leaves and variables with noise, their sum, another variable, and their product
    rng = np.random.default_rng([98, seed])
    ctype = np.array([UNARY, UNARY, MERGE, UNARY, PRODUCT])
    left, right = np.array([-1, -1, 0, -1, 3]), np.array([-1, -1, 1, -1, 2])
    sign = int(rng.choice([-1, 1]))
    lo, width = -rng.integers(0, 6, 5), rng.integers(1, 12, 5)
    base = -np.minimum(lo, 0) + rng.integers(0, 9, 5) * 1.0
    # the sum's window is within that of its parts, the product's within both of its own
    lo[2] = lo[0] + lo[1] + rng.integers(0, width[0] + width[1] - 1)
    width[2] = rng.integers(1, lo[0] + lo[1] + width[0] + width[1] - lo[2])
    lo[3], width[3] = min(lo[2], -lo[2] - width[2]) - 1, 2 * max(abs(lo[2]), width[2]) + 40
    lo[4], width[4] = (lo[2] if sign > 0 else 1 - lo[2] - width[2]), width[2]
    a = np.exp(rng.uniform(-3, 4, 5)) * np.where(rng.random(5) < 0.7, 1.0, -1.0)
    a[2:] = -1.0
    b = rng.choice([0.0, 0.5], 5)
    inverse, zeros = rng.uniform(0.05, 3.0, 5), np.zeros(5)
    law = LeafWeights(np.full(5, laws.LAPLACE), inverse, zeros, a, b, base, zeros, zeros)
    offset = np.cumsum(width) - width
    table, factor = np.empty(int(width.sum())), np.ones(5)
    powers, logs = np.zeros(5, dtype=np.int64), np.zeros(5)
    classes = Classes(ctype, left, right, np.array([1, 1, 1, 1, sign]))
    windows = Windows(lo, lo + width - 1, offset)
    fill(0, 5, classes, law, windows, table, factor, powers, logs)
    read = [
        np.ldexp(table[o : o + w], p) * np.exp(g)
        for o, w, p, g in zip(offset, width, powers, logs, strict=True)
    ]
    # logs of leaves are up to some hundreds, so that many units come back out of them
    off = 2.0**-52 * (width.sum() + 4.0 * np.abs(logs).max() + 16.0)
    u = lo[0] + np.arange(width[0])
    if a[0] > 0.0:
        case = laws.LAPLACE, inverse[0], 0.0, a[0], b[0], base[0], 0.0, 0.0
        np.testing.assert_allclose(read[0], np.exp(log_leaf(*case, u)), rtol=1e-12)
    else:
        np.testing.assert_allclose(read[0], np.exp(-inverse[0] * np.abs(u)), rtol=1e-12)
    whole = np.convolve(read[0], read[1])[lo[2] - lo[0] - lo[1] :][: width[2]]
    np.testing.assert_allclose(read[2], whole, rtol=off)
    below = read[2] if sign > 0 else read[2][::-1]
    np.testing.assert_allclose(read[4], read[3][lo[4] - lo[3] :][: width[4]] * below, rtol=off)


@pytest.mark.parametrize("kind", [laws.LAPLACE, laws.GAUSSIAN, laws.FLAT])
@pytest.mark.parametrize("zero", [0.0, 3.0, 900.0])
@pytest.mark.parametrize(("center", "low"), [(-6.0, 0), (25.0, 0), (3000.0, 0), (25.0, 7)])
def test_weights_beyond_the_floating_point_range(kind, zero, center, low):
    # shapes with a mode at 0, at the measurement, at both, and far beyond what a float holds
    inverse = {laws.LAPLACE: 0.5, laws.GAUSSIAN: 0.02, laws.FLAT: 0.0}[kind]
    base, tilt, size = 4.0, -0.03, 3300 if center > 1000.0 else 90
    for mean, r in ((9.0, 0.6), (9.0, math.inf), (0.1, 2.0)):
        b = 0.0 if r == math.inf else mean / (mean + r)
        a = mean if r == math.inf else b * r
        k = np.arange(low, low + size)
        u = k - base
        d = np.abs(u - center)
        law = tilt * u - inverse * (d * d if kind == laws.GAUSSIAN else d)
        steps = np.log((a + b * np.arange(low + size)) / (np.arange(low + size) + 1.0))
        prior = np.append(0.0, np.cumsum(steps))[k]
        logs = law + prior + np.where(k == 0, zero, 0.0)
        out = np.empty(size)
        lo = low - int(base)
        top = fill_leaf(kind, inverse, center, a, b, base, zero, tilt, lo, out)
        assert top == pytest.approx(logs.max(), rel=1e-9, abs=1e-9)
        assert out.max() == 1.0 == out[np.argmax(logs)]
        np.testing.assert_allclose(out, np.exp(logs - logs.max()), rtol=1e-9, atol=1e-290)
