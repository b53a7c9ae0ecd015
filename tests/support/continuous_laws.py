"""Checks of continuous noise laws, against references that are not ours."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import integrate, stats

from congenial.randomness import seeded

SCALES = np.array([0.5, 3.0, np.inf])


def check_draws(law: Callable[[Any], Any], reference: Callable[..., Any]) -> None:
    """Draws follow the reference at their scale, and at no other that is 30% off."""
    words = np.random.default_rng(8).integers(
        0, 2**64, (20_000, 3 * law.words_per_entry), dtype=np.uint64
    )
    drawn = law(SCALES).draw(words, SCALES, seeded(1).bits)
    assert (drawn[:, 2] == 0).all()
    for column, scale in enumerate(SCALES[:2]):
        assert stats.kstest(drawn[:, column], reference(scale=scale).cdf).pvalue > 1e-6
        for factor in (0.7, 1.3):
            assert stats.kstest(drawn[:, column], reference(scale=factor * scale).cdf).pvalue < 1e-6


def check_density(law: Callable[[Any], Any]) -> None:
    """Densities are normalised and have the stated variance."""
    variances = law(SCALES).variances(SCALES)
    assert variances[2] == np.inf
    for scale, variance in zip(SCALES[:2], variances[:2], strict=True):

        def p(u: float, scale: float = scale) -> float:
            return float(np.exp(law(1.0).log_pmf(np.array([u]), np.array([scale])))[0])

        total = 2 * integrate.quad(p, 0, 40 * scale)[0]
        second = 2 * integrate.quad(lambda u, p=p: u * u * p(u), 0, 40 * scale)[0]
        np.testing.assert_allclose((total, second), (1.0, variance), rtol=1e-7)


def check_no_bound(law: Callable[[Any], Any]) -> None:
    """Draws in floating point state no useful bound on their error."""
    made = law(SCALES)
    assert made.sampling_error(SCALES) == 1.0
    assert not made.discrete
    assert made.in_units() is made
