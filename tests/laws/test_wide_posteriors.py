"""Posteriors of few counts that were refused for the size of their tables, or not certified."""

from __future__ import annotations

import numpy as np
import pytest

import congenial as cg
from support.conditioning_cases import INF

# parents, measurements, scales, law; leaves that are not measured lie far from 0, and measurements
# contradict one another by hundreds of deviations
CASES = {
    "an open leaf": ([-1, 0, 0, 0], [710385, 2106, 61035, 0], [0.1, 1000, 0.1, INF], "Laplace"),
    "two open leaves": ([-1, 0, 0, 0], [1768250, 0, 0, 966001], [30, INF, INF, 0.1], "Laplace"),
    "far apart": ([-1, 0, 0], [489967, 1183, 6012], [1000, 30, 1000], "Gaussian"),
    "far apart, upwards": ([-1, 0, 0], [948088, 3901, 7444], [1000, 1000, 0.1], "Gaussian"),
}


@pytest.mark.parametrize("name", CASES)
def test_draws_of_a_wide_posterior_are_near_the_measurements(name):
    parents, y, scales, law = CASES[name]
    tree = cg.Tree.from_parents(parents)
    noise = cg.DiscreteLaplace(scales) if law == "Laplace" else cg.DiscreteGaussian(scales)
    known = cg.consistent(tree) & cg.nonnegative()
    found = cg.posterior(y, cg.Additive(noise, tree), known)
    draws = found.sample(50, cg.seeded(1))
    assert found.error_bound < 1e-9
    assert tree.is_consistent(draws)
    assert draws.min() >= 0
    mean = found.mean()
    np.testing.assert_allclose(draws.mean(axis=0), mean, atol=6.0 * spread(found))
    if law == "Gaussian":  # the least squares, which no bound touches
        precision = np.array(scales, dtype=float) ** -2.0
        gap = y[0] - sum(y[1:])
        share = precision**-1.0 / (precision**-1.0).sum()
        want = np.array(y) + gap * share * np.where(np.arange(len(y)) == 0, -1.0, 1.0)
        np.testing.assert_allclose(mean, want, atol=1.0)


def spread(found: cg.Posterior) -> float:
    """Largest standard error of the mean of 50 draws."""
    return float(found.standard_deviation().max()) / np.sqrt(50.0)
