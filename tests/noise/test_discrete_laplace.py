"""The double geometric law's distribution function and quantiles (Gong and Meng, Appendix B)."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chisquare

import congenial as cg
from congenial.errors import ArgumentError

SCALES = (0.2, 0.7, 1.0, 2.5, 20.0)


def law(scale, reach):
    u = np.arange(-reach, reach + 1)
    weight = np.exp(-np.abs(u) / scale)
    return u, weight / weight.sum()


@pytest.mark.parametrize("scale", SCALES)
def test_the_distribution_function_is_the_sum_of_the_law(scale):
    u, pmf = law(scale, int(45 * scale) + 5)
    noise = cg.DiscreteLaplace(scale)
    assert noise.cdf(u) == pytest.approx(np.cumsum(pmf), abs=1e-14)
    assert noise.cdf(u + 0.5) == pytest.approx(np.cumsum(pmf), abs=1e-14)
    # the lower tail keeps its digits
    far = -int(100 * scale)
    assert noise.cdf(far) == pytest.approx(
        np.exp(far / scale) / (1 + np.exp(-1 / scale)), rel=1e-12
    )


@pytest.mark.parametrize("scale", SCALES)
def test_a_quantile_is_the_first_value_to_reach_its_probability(scale):
    u, pmf = law(scale, int(45 * scale) + 5)
    below = np.cumsum(pmf)
    v = np.concatenate(
        (np.linspace(1e-9, 1 - 1e-9, 20_001), below[(below > 1e-12) & (below < 0.999)])
    )
    found = cg.DiscreteLaplace(scale).quantile(v)
    assert found.dtype == np.int64
    wanted = u[np.searchsorted(below, v)]
    # a probability within rounding of a step may fall on either side of it
    near = np.abs(v[:, None] - below[None, :]).min(axis=1) < 1e-13
    assert (found == wanted)[~near].all()
    assert (np.abs(found - wanted) <= 1).all()


@pytest.mark.parametrize("scale", SCALES)
def test_quantiles_invert_the_distribution_function(scale):
    noise = cg.DiscreteLaplace(scale)
    u = np.arange(-int(20 * scale) - 3, int(10 * scale) + 1)
    assert (noise.quantile(noise.cdf(u)) == u).all()


def printed_quantile(v, a):
    """Appendix B as printed."""
    low = np.ceil((-np.log(v) - np.log(1 + a)) / np.log(a))
    high = np.ceil((np.log(1 - v) + np.log(1 + a)) / np.log(a))
    return np.where(v <= 1 / (1 + a), low, high)


@pytest.mark.parametrize("scale", SCALES)
def test_the_printed_quantile_is_one_too_large_above_the_middle(scale):
    a = np.exp(-1 / scale)
    v = (np.arange(50_000) + 0.37) / 50_000
    right = cg.DiscreteLaplace(scale).quantile(v)
    above = v > 1 / (1 + a)
    printed = printed_quantile(v, a)
    assert (printed[~above] == right[~above]).all()
    assert (printed[above] == right[above] + 1).all()
    assert not (printed == 1).any()
    # the noise so drawn is pushed up by the probability of a positive value, a / (1 + a)
    assert printed.mean() - right.mean() == pytest.approx(a / (1 + a), abs=1e-4)


def p_value(draws, scale):
    edge = int(3 * scale) + 2
    u, pmf = law(scale, 60 * int(scale + 1))
    seen = np.bincount(np.clip(draws, -edge, edge) + edge, minlength=2 * edge + 1)
    wanted = np.bincount(np.clip(u, -edge, edge) + edge, weights=pmf)
    return chisquare(seen, wanted * draws.size).pvalue


def test_the_papers_sampler_draws_the_law():
    words = cg.seeded(7).bits(40_000)
    uniform = (words >> np.uint64(11)).astype(float) * 2.0**-53 + 2.0**-54
    draws = cg.DiscreteLaplace(2.0).quantile(uniform)
    assert p_value(draws, 2.0) > 1e-6
    assert p_value(draws, 2.0 * 1.3) < 1e-6
    assert p_value(draws, 2.0 * 0.7) < 1e-6
    printed = printed_quantile(uniform, np.exp(-0.5)).astype(int)
    assert p_value(printed, 2.0) < 1e-6


def test_another_grid_and_several_scales():
    fine = cg.DiscreteLaplace(2.0, granularity=0.25)
    u = np.arange(-40, 40) * 0.25
    assert fine.quantile(fine.cdf(u)).tolist() == u.tolist()
    assert fine.cdf(0.3) == fine.cdf(0.25)
    several = cg.DiscreteLaplace([1.0, 2.0, 3.0])
    each = [cg.DiscreteLaplace(s).cdf(2) for s in (1.0, 2.0, 3.0)]
    assert several.cdf(2).tolist() == each
    assert several.quantile([[0.1], [0.9]]).shape == (2, 3)


def test_wrong_arguments_are_refused():
    for v in (0.0, 1.0, -0.1, np.nan, [0.5, 2.0]):
        with pytest.raises(ArgumentError, match="probability"):
            cg.DiscreteLaplace(1.0).quantile(v)
    for ask in ("cdf", "quantile"):
        with pytest.raises(ArgumentError, match="inf"):
            getattr(cg.DiscreteLaplace([1.0, np.inf]), ask)(0.5)
