"""Discrete Gaussian noise: draws by inversion against the law, and tables for wide noise."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from congenial.errors import UnsupportedError
from congenial.noise.discrete_gaussian import DiscreteGaussian
from congenial.randomness import seeded

WORDS = np.random.default_rng(9).integers(0, 2**64, (20_000, 1), dtype=np.uint64)


def p_value(drawn, sigma, granularity):
    """Return the chi-square p-value of draws under a law, in some twenty bins."""
    u = np.arange(-np.ceil(9 * sigma), np.ceil(9 * sigma) + 1)
    p = np.exp(-0.5 * (u / sigma) ** 2)
    edges = np.unique(np.rint(np.linspace(-2.5 * sigma, 2.5 * sigma, 20)))
    at = np.searchsorted(edges, u)
    seen = np.bincount(np.searchsorted(edges, drawn / granularity), minlength=edges.size + 1)
    wanted = np.bincount(at, weights=p / p.sum(), minlength=edges.size + 1)
    return stats.chisquare(seen, drawn.size * wanted).pvalue


@pytest.mark.parametrize(("sigma", "granularity"), [(1.5, 1.0), (6.0, 0.25), (9000.0, 1.0)])
def test_draws_follow_the_law_and_fail_at_a_scale_30_percent_off(sigma, granularity):
    scale = np.array([sigma * granularity])
    drawn = DiscreteGaussian(scale, granularity).draw(WORDS, scale, seeded(1).bits)[:, 0]
    assert (drawn % granularity == 0).all()
    assert p_value(drawn, sigma, granularity) > 1e-6
    assert max(p_value(drawn, f * sigma, granularity) for f in (0.7, 1.3)) < 1e-6


@pytest.mark.parametrize("sigma", [0.3, 2.0, 40.0])
def test_probabilities_add_up_and_have_the_stated_variance(sigma):
    law, scale = DiscreteGaussian(sigma), np.array([sigma])
    u = np.arange(-1000, 1001).astype(float)
    p = np.exp(law.log_pmf(u, np.full(u.size, sigma)))
    np.testing.assert_allclose(
        (p.sum(), (u**2 * p).sum()), (1.0, law.variances(scale)[0]), rtol=1e-9
    )
    assert np.isneginf(law.log_pmf(np.array([0.5]), scale))


def test_noise_too_wide_for_a_table_is_refused():
    scale = np.array([2.0**21])
    with pytest.raises(UnsupportedError, match="beyond 2\\^20 steps"):
        DiscreteGaussian(scale).draw(WORDS, scale, seeded(1).bits)
