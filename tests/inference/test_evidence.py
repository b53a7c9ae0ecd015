"""Derivatives of the evidence and of the likelihood, against differences of the values."""

from __future__ import annotations

import numpy as np
import pytest

import congenial as cg
from congenial.kernels.network.marginals import rise

pytestmark = pytest.mark.kernels

INF = np.inf
STEP = 1e-4


def differences(value, mean, dispersion):
    """Central differences of ``value(mean, dispersion)`` by each entry, relative steps."""
    found = np.zeros((2, mean.size))
    for j in range(mean.size):
        for row, array in enumerate((mean, dispersion)):
            if np.isfinite(array[j]):
                ends = []
                for sign in (1, -1):
                    moved = [mean.copy(), dispersion.copy()]
                    moved[row][j] *= 1.0 + sign * STEP
                    ends.append(value(*moved))
                found[row, j] = (ends[0] - ends[1]) / (2.0 * STEP * array[j])
    return found


@pytest.mark.parametrize("noise", [cg.DiscreteLaplace, cg.DiscreteGaussian])
@pytest.mark.parametrize("pins", [(), (0,), (2,), (1, 4)])
@pytest.mark.parametrize("parents", [(-1, 0, 0, 0, 0), (-1, 0, 0, 1, 1, 2, 2)])
def test_the_gradient_of_the_evidence(noise, pins, parents):
    rng = np.random.default_rng(11)
    tree = cg.Tree.from_parents(parents)
    scales = rng.uniform(0.5, 3.0, len(tree))
    scales[3] = INF
    x = tree.roll_up(rng.integers(0, 9, tree.leaves.size))
    noisy = cg.Additive(noise(scales), tree)
    y = np.where(np.isin(np.arange(len(tree)), pins), x, x + rng.integers(-3, 4, len(tree)))
    known = cg.consistent(tree) & cg.nonnegative()
    if pins:
        known = known & cg.exactly(list(pins))
    mean = rng.uniform(0.4, 8.0, tree.leaves.size)
    dispersion = np.exp(rng.uniform(-3.0, 3.0, tree.leaves.size))
    dispersion[0] = INF
    zeros = rng.choice([0.0, 0.2, 0.7], tree.leaves.size)

    def law(mean, dispersion):
        return cg.posterior(y, noisy, known, cg.inference.Prior(mean, dispersion, zeros))

    def evidence(mean, dispersion):
        return law(mean, dispersion).log_evidence()

    found = law(mean, dispersion).log_evidence_gradient()
    expected = differences(evidence, mean, dispersion)
    np.testing.assert_allclose(found.mean, expected[0], rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(found.dispersion, expected[1], rtol=1e-6, atol=1e-6)


def test_large_counts_far_above_their_window():
    tree = cg.Tree.from_parents([-1, 0, 0])
    noisy = cg.Additive(cg.DiscreteLaplace(5.0), tree)
    y, known = [50_040, 50_000, 31], cg.consistent(tree)
    mean, dispersion = np.array([30_000.0, 40.0]), np.array([0.7, 2.0])

    def law(mean, dispersion):
        return cg.posterior(y, noisy, known, cg.inference.Prior(mean, dispersion))

    found = law(mean, dispersion).log_evidence_gradient()
    expected = differences(lambda *at: law(*at).log_evidence(), mean, dispersion)
    np.testing.assert_allclose(found[:2], expected, rtol=1e-5)


def test_rises_against_digamma():
    special = pytest.importorskip("scipy.special")
    for r in np.geomspace(1e-3, 1e4, 30):
        for k in (0, 1, 2, 9, 10, 11, 500, 10**6):
            expected = special.digamma(k + r) - special.digamma(r)
            assert rise(np.ones(1), float(k), r) == pytest.approx(expected, rel=1e-10, abs=1e-10)
    weights = np.array([0.0, 0.5, 2.0, 1.0, 0.25])
    for lo, r in ((-1, 0.3), (0, 2.5), (700, 0.02)):
        k = np.maximum(lo + np.arange(5), 0)
        rises = special.digamma(k + r) - special.digamma(r)
        assert rise(weights, float(lo), r) == pytest.approx((weights @ rises) / weights.sum())
