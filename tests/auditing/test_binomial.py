"""Confidence bounds for a probability, against the binomial law."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from congenial.auditing.binomial import probability_bounds


def test_each_bound_is_wrong_as_seldom_as_stated():
    trials, p, error = 40, 0.3, 0.01
    law = [stats.binom.pmf(k, trials, p) for k in range(trials + 1)]
    bounds = [probability_bounds(k, trials, error) for k in range(trials + 1)]
    assert sum(w for w, (low, _) in zip(law, bounds, strict=True) if low > p) <= error
    assert sum(w for w, (_, high) in zip(law, bounds, strict=True) if high < p) <= error


@pytest.mark.parametrize(
    ("hits", "trials"), [(0, 50), (1, 50), (50, 50), (49, 50), (17, 400), (9_990, 10_000)]
)
@pytest.mark.parametrize("error", [0.05, 1e-7])
def test_bounds_of_a_probability(hits, trials, error):
    lower, upper = probability_bounds(hits, trials, error)
    low = stats.beta.ppf(error, hits, trials - hits + 1) if hits else 0.0
    high = stats.beta.isf(error, hits + 1, trials - hits) if hits < trials else 1.0
    np.testing.assert_allclose((lower, upper), (low, high), rtol=1e-6, atol=1e-12)
    assert lower <= low * (1 + 1e-9)
    assert upper >= high * (1 - 1e-9)
