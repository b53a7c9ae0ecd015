"""Likelihoods of releases, including the normaliser."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import congenial as cg
from congenial.errors import ArgumentError, UnsupportedError

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


def test_the_gradient_of_the_likelihood_of_a_release():
    tree = cg.Tree.from_parents([-1, 0, 0, 0])
    law = cg.condition(
        cg.Additive(cg.DiscreteLaplace(2.0), tree), cg.consistent(tree) & cg.exactly([0])
    )
    z = law.sample(tree.roll_up([4, 0, 11]), rng=cg.seeded(5))
    mean, dispersion = np.array([3.0, 2.0, 6.0]), np.array([0.5, 1.5, INF])
    found = cg.inference.log_likelihood_gradient(z, law, cg.inference.Prior(mean, dispersion))
    expected = differences(
        lambda *at: cg.inference.log_likelihood(z, law, cg.inference.Prior(*at)), mean, dispersion
    )
    np.testing.assert_allclose(found[:2], expected, rtol=1e-6, atol=1e-7)
    # one number that all leaves share: the derivatives of the leaves add up
    whole = cg.inference.log_likelihood_gradient(z, law, cg.inference.Prior(4.0, 0.8))
    step = [
        cg.inference.log_likelihood(z, law, cg.inference.Prior(4.0 + h, 0.8)) for h in (1e-4, -1e-4)
    ]
    assert whole.mean.sum() == pytest.approx((step[0] - step[1]) / 2e-4, rel=1e-6)


def test_mistakes_are_refused_with_a_message():
    tree = cg.Tree.from_parents([-1, 0, 0])
    noisy = cg.Additive(cg.DiscreteLaplace(1.0), tree)
    known = cg.consistent(tree)
    with pytest.raises(UnsupportedError, match="flat prior gives no evidence"):
        cg.posterior([5, 2, 3], noisy, known).log_evidence_gradient()
    with pytest.raises(ArgumentError, match="does not add up"):
        cg.inference.log_likelihood_gradient(
            [6, 2, 3], cg.condition(noisy, known), cg.inference.Prior(2.0)
        )
    bounded = cg.condition(noisy, known & cg.nonnegative())
    with pytest.raises(UnsupportedError, match="normaliser depends on the counts"):
        cg.inference.log_likelihood_gradient([5, 2, 3], bounded, cg.inference.Prior(2.0))


@pytest.mark.parametrize("pins", [[], [0], [2]])
def test_a_likelihood_is_the_sum_over_all_counts(pins):
    tree = cg.Tree.from_parents([-1, 0, 0])
    imposed = cg.consistent(tree) & cg.exactly(pins) if pins else cg.consistent(tree)
    law = cg.condition(cg.Additive(cg.DiscreteLaplace([2.0, 1.0, 1.5]), tree), imposed)
    prior, z = cg.inference.Prior([3.0, 2.0], [0.8, INF]), np.array([7, 4, 3])
    k = np.arange(60)
    first = stats.nbinom.pmf(k, 0.8, 0.8 / 3.8)
    second = stats.poisson.pmf(k, 2.0)
    total = 0.0
    for i, j in np.ndindex(60, 60):
        x = np.array([i + j, i, j])
        if (x[pins] == z[pins]).all():
            total += first[i] * second[j] * np.exp(float(law.log_prob(z, x)))
    found = cg.inference.log_likelihood(z, law, prior)
    assert found == pytest.approx(np.log(total), rel=1e-7)
