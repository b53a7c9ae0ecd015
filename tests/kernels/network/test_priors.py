"""Weights of leaves with priors, against the laws of counts themselves."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from congenial.kernels.network.messages import MERGE, PRODUCT, UNARY
from congenial.kernels.network.priors import fill, fill_leaf
from congenial.kernels.network.records import Classes, LeafWeights, Windows
from congenial.kernels.numerics import laws
from support.seeds import for_each_seed

pytestmark = pytest.mark.kernels


def log_leaf(kind, inverse, center, a, b, base, zero, tilt, u):
    """The log weight at u but for a constant, by the law of the count as SciPy has it."""
    count = u + base
    if b > 0.0:
        prior = stats.nbinom.logpmf(count, a / b, 1.0 - b)
    else:
        prior = stats.poisson.logpmf(count, a)
    away = np.abs(u - center)
    law = inverse * (away**2 if kind == laws.GAUSSIAN else away)
    return prior + zero * (count == 0) - law + tilt * u


@for_each_seed(200)
def test_a_leaf_has_the_law_of_the_noise_times_that_of_the_count(seed):
    rng = np.random.default_rng(seed)
    kind = (laws.LAPLACE, laws.GAUSSIAN)[seed % 2]
    inverse, center = float(rng.choice([0.01, 0.4, 3.0])), float(rng.integers(-4, 5))
    a, b = float(rng.choice([0.1, 2.0, 30.0])), float(rng.choice([0.0, 0.3, 0.95]))
    base, zero = float(rng.integers(0, 50)), float(rng.choice([0.0, 4.0]))
    tilt = float(rng.normal()) * 0.3
    lo = int(rng.choice([-base, rng.integers(-base, 20)]))
    out = np.empty(int(rng.integers(1, 90)))
    case = kind, inverse, center, a, b, base, zero, tilt
    fill_leaf(*case, lo, out)
    wanted = log_leaf(*case, lo + np.arange(out.size))
    wanted -= wanted.max()
    assert out.max() == pytest.approx(1.0, abs=1e-12)
    # at most 90 steps of 8 units each; SciPy's own laws are good to some 1e-11
    held = wanted > -600.0
    np.testing.assert_allclose(np.log(out[held]), wanted[held], atol=1e-10, rtol=1e-10)
    assert (out[~held] < 1e-250).all()


def test_a_factor_taken_out_is_the_log_weight_of_the_largest():
    out = np.empty(40)
    case = laws.LAPLACE, 0.5, 0.0, 3.0, 0.0, 2.0, 0.0, 0.1
    log = fill_leaf(*case, -2, out)
    u = -2 + int(out.argmax())
    # the prior is 1 at a count of 0, where Poisson's law has exp(-3)
    assert log == pytest.approx(log_leaf(*case, u) + 3.0, rel=1e-13)


@pytest.mark.parametrize("sign", [1, -1])
def test_sums_and_products_keep_their_scale(sign):
    # two leaves, their sum, a variable with noise, and their product
    ctype = np.array([UNARY, UNARY, MERGE, UNARY, PRODUCT])
    left, right = np.array([-1, -1, 0, -1, 3]), np.array([-1, -1, 1, -1, 2])
    signs = np.array([1, 1, 1, 1, sign])
    lo = np.array([-2, -1, -3, -4, -3])
    hi = np.array([5, 6, 3, 4, 3])
    a = np.array([2.0, 5.0, -1.0, -1.0, -1.0])
    b, base = np.array([0.0, 0.5, 0.0, 0.0, 0.0]), np.array([2.0, 1.0, 0.0, 0.0, 0.0])
    kind, inverse = np.full(5, laws.LAPLACE), np.array([0.2, 0.7, 1.0, 0.3, 1.0])
    zeros = np.zeros(5)
    law = LeafWeights(kind, inverse, zeros, a, b, base, zeros, zeros)
    width = hi - lo + 1
    offset = np.cumsum(width) - width
    table, factor = np.empty(int(width.sum())), np.ones(5)
    powers, logs = np.zeros(5, dtype=np.int64), np.zeros(5)
    classes = Classes(ctype, left, right, signs)
    fill(0, 5, classes, law, Windows(lo, hi, offset), table, factor, powers, logs)
    read = [
        np.ldexp(table[o : o + w], p) * np.exp(g)
        for o, w, p, g in zip(offset, width, powers, logs, strict=True)
    ]
    whole = np.convolve(read[0], read[1])[lo[2] - lo[0] - lo[1] :][: width[2]]
    np.testing.assert_allclose(read[2], whole, rtol=1e-13)
    below = read[2] if sign > 0 else read[2][::-1]
    np.testing.assert_allclose(read[4], read[3][lo[4] - lo[3] :][: width[4]] * below, rtol=1e-13)
