"""Laplace noise: its draws follow its density, and would not at a scale 30% off."""

from __future__ import annotations

import numpy as np
from scipy import integrate, stats

from congenial.noise.laplace import Laplace

SCALES = np.array([0.5, 3.0, np.inf])
WORDS = np.random.default_rng(8).integers(
    0, 2**64, (20_000, 3 * Laplace.words_per_entry), dtype=np.uint64
)


def density(scale):
    law = Laplace(1.0)
    return lambda u: float(np.exp(law.log_pmf(np.array([u]), np.array([scale])))[0])


def test_draws_follow_the_density_and_none_30_percent_off():
    drawn = Laplace(SCALES).draw(WORDS, SCALES)
    assert (drawn[:, 2] == 0).all()
    for column, scale in enumerate(SCALES[:2]):
        reference = {"laplace": stats.laplace, "gaussian": stats.norm}["laplace"]
        assert stats.kstest(drawn[:, column], reference(scale=scale).cdf).pvalue > 1e-6
        for factor in (0.7, 1.3):
            assert stats.kstest(drawn[:, column], reference(scale=factor * scale).cdf).pvalue < 1e-6


def test_the_density_is_normalised_and_has_the_stated_variance():
    variances = Laplace(SCALES).variances(SCALES)
    assert variances[2] == np.inf
    for scale, variance in zip(SCALES[:2], variances[:2], strict=True):
        p = density(scale)
        total = 2 * integrate.quad(p, 0, 40 * scale)[0]
        second = 2 * integrate.quad(lambda u, p=p: u * u * p(u), 0, 40 * scale)[0]
        np.testing.assert_allclose((total, second), (1.0, variance), rtol=1e-7)


def test_floating_point_draws_have_no_useful_bound():
    law = Laplace(SCALES)
    assert law.sampling_error(SCALES) == 1.0
    assert not law.discrete
    assert law.in_units() is law
