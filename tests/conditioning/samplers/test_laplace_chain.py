"""Continuous Laplace noise under equalities: the chain against exact laws, and what it refuses."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import log_ndtr
from scipy.stats import chi2, kstest, kstwobign

import congenial as cg
from congenial.conditioning.chains import Info
from congenial.conditioning.samplers.laplace_chain import precisions
from congenial.errors import ArgumentError, PrivacyError, UnsupportedError

FAILS = 1e-6
INF = np.inf
STAR = cg.Tree.from_parents([-1, 0, 0, 0])
BINARY = cg.Tree.from_parents([-1, 0, 0, 1, 1])
CROSSED = np.array([[1, 1, 0, 0, 1], [1, 0, 1, 0, 0], [0, 1, 0, 1, 0], [0, 0, 1, 1, 0]])


@pytest.fixture(scope="module")
def three_leaves():
    """Draws of three leaves under one sum, scale 2."""
    mechanism = cg.Additive(cg.Laplace([INF, 2.0, 2.0, 2.0]), STAR)
    made = cg.condition(mechanism, cg.consistent(STAR) & cg.exactly(0))
    x = STAR.roll_up([5.0, 1.0, 2.0])
    return x, *made.run(x, 4_000, rng=cg.seeded(2022))


def test_the_variance_of_three_leaves_is_five_sixths(three_leaves):
    x, draw, info = three_leaves
    draws = draw.values.transpose(1, 0, 2).reshape(-1, 4)
    assert (draws[:, 0] == x[0]).all()
    noise = draws - x
    np.testing.assert_allclose(noise[:, 1:].sum(axis=1), 0, atol=1e-12)
    assert info.worst[0] < 1.01
    square = (noise[:, 1:] ** 2).mean(axis=1)  # means of the three leaves, as one series
    runs = square.reshape(-1, 4).T[:, :, None]
    error = square.std() / np.sqrt(Info(0, 1, runs).bulk_ess[0])
    off = {f: abs(square.mean() - f**2 * 5 / 6 * 4.0) / error for f in (1.0, 0.7, 1.3)}
    assert off[1.0] < 4.9  # p of 1e-6
    assert min(off[0.7], off[1.3]) > 4.9


def test_the_chain_agrees_with_a_fine_grid_and_not_with_a_wrong_scale(three_leaves):
    x, draw, _ = three_leaves
    thinned = draw.values[0, :, 1]  # one chain; its draws are nearly independent
    for factor in (1.0, 0.7, 1.3):
        noise = cg.DiscreteLaplace(factor * np.array([INF, 2.0, 2.0, 2.0]), 2.0**-5)
        grid = cg.condition(cg.Additive(noise, STAR), cg.consistent(STAR) & cg.exactly(0))
        values, p = grid.marginal(1, x)
        below = np.cumsum(p) - 0.5 * p
        gap = np.abs(np.interp(np.sort(thinned), values, below) - _steps(thinned.size)).max()
        p_value = kstwobign.sf(gap * np.sqrt(thinned.size))
        assert (p_value > FAILS) == (factor == 1.0), factor


def _steps(size):
    return (np.arange(size) + 0.5) / size


def test_the_chain_on_a_tree_with_noise_everywhere():
    """Second moments against the exact law on a grid, five Monte-Carlo errors wide."""
    scales = np.array([1.0, 0.5, 2.0, 1.0, 1.5])
    x = np.zeros(5)
    made = cg.condition(cg.Additive(cg.Laplace(scales), BINARY), cg.consistent(BINARY))
    draw, info = made.run(x, 2000, rng=cg.seeded(5))
    draws = draw.values.transpose(1, 0, 2).reshape(-1, 5)
    assert info.r_hat.max() < 1.02
    for factor in (1.0, 0.7):
        noise = cg.DiscreteLaplace(factor * scales, 2.0**-6)
        grid = cg.condition(cg.Additive(noise, BINARY), cg.consistent(BINARY))
        off = []
        for v in range(5):
            values, p = grid.marginal(v, x)
            square = draws[:, v] ** 2
            runs = square.reshape(-1, 4).T[:, :, None]
            error = square.std() / np.sqrt(Info(0, 1, runs).bulk_ess[0])
            off.append(abs(square.mean() - (p * values**2).sum()) / error)
        assert (max(off) < 5) == (factor == 1.0), off


def test_the_chain_under_crossing_sums():
    made = cg.condition(cg.Additive(cg.Laplace(1.5), 5), cg.linear(CROSSED, np.zeros(4)))
    draws = made.sample(np.zeros(5), 4000, cg.seeded(4))
    assert np.abs(draws @ CROSSED.T).max() < 1e-9
    # one dimension is left: Laplace along it
    direction = np.linalg.svd(CROSSED)[2][-1]
    scale = 1.5 / np.abs(direction).sum()
    along = draws @ direction
    assert kstest(along[::20] / scale, "laplace", method="asymp").pvalue > FAILS
    assert kstest(along / (0.7 * scale), "laplace", method="asymp").pvalue < FAILS


def test_the_precisions_are_inverse_gaussian():
    """If W is inverse Gaussian, k (W - m)^2 / (m^2 W) is chi-square with one degree."""
    words = cg.seeded(6).bits(40_000)
    uniform = ((words >> np.uint64(11)).astype(float) + 1) * 2.0**-53
    normal = np.sqrt(-2 * np.log(uniform[:20_000:2])) * np.cos(2 * np.pi * uniform[1:20_000:2])
    for u, scale in ((0.3, 1.0), (5.0, 2.0), (1e-3, 1.0), (40.0, 0.5)):
        drawn = precisions(
            np.full(10_000, u), np.full(10_000, scale), normal, uniform[20_000:30_000]
        )
        mean, shape = 1 / (scale * u), 1 / scale**2
        quadratic = shape * (drawn - mean) ** 2 / (mean**2 * drawn)
        assert kstest(quadratic, chi2(1).cdf, method="asymp").pvalue > FAILS
        # the share below the mean tells the two roots apart
        below = (drawn < mean).mean()
        t = np.exp(2 * shape / mean + log_ndtr(-2 * np.sqrt(shape / mean)))
        assert abs(below - (0.5 + t)) < 5 * 0.5 / 100, (u, scale)
    at_zero = precisions(np.zeros(10_000), np.ones(10_000), normal, uniform[20_000:30_000])
    assert (np.isfinite(at_zero) & (at_zero > 0)).all()


def test_a_chain_is_for_studies_only():
    made = cg.condition(cg.Additive(cg.Laplace(1.0), STAR), cg.consistent(STAR))
    x = STAR.roll_up([777_001.0, 2.0, 3.0])
    for call in (
        lambda: made.sample(x),
        lambda: made.sample(x, 3, cg.secure()),
        lambda: made.run(x),
        lambda: made.guarantee("substitute"),
    ):
        with pytest.raises(PrivacyError, match="DiscreteLaplace") as told:
            call()
        assert "777" not in str(told.value)
        assert "\n" not in str(told.value)
    for call in (
        lambda: made.log_prob(x, x),
        lambda: made.log_normalizer(x),
        lambda: made.marginal(0, x),
        lambda: made.interval(0),
    ):
        with pytest.raises(UnsupportedError, match="no closed form"):
            call()
    with pytest.raises(UnsupportedError, match="no exact sampler"):
        cg.condition(made.mechanism, cg.consistent(STAR), sampler="exact")
    assert "Not certified" in made.explain()


def test_the_chain_does_not_look_at_the_data():
    made = cg.condition(cg.Additive(cg.Laplace(1.0), STAR), cg.consistent(STAR))
    made = replace(made, warmup=5, thin=1)
    x = STAR.roll_up([16.0, 2.0, 4.0])
    a = made.sample(x, 10, cg.seeded(1)) - x
    b = made.sample(np.zeros(4), 10, cg.seeded(1))
    np.testing.assert_allclose(a, b, atol=1e-12)
    assert made.sample(x, rng=cg.seeded(1)).shape == (4,)
    draw, info = made.run(x, 3, 2, cg.seeded(1))
    assert draw.values.shape == (2, 3, 4)
    assert np.isnan(info.worst).all()  # too few to say
    assert not info.certified
    for wrong in ({"draws": 0}, {"chains": 0}, {"draws": 2.5}, {"chains": None}):
        with pytest.raises(ArgumentError):
            made.run(x, **wrong, rng=cg.seeded(1))
