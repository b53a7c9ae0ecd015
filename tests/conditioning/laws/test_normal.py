"""Gaussian noise given equalities, against the dense normal law."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import null_space
from scipy.stats import norm

import congenial as cg


@pytest.mark.parametrize("seed", range(60))
def test_marginals_joint_laws_and_densities_are_those_of_the_dense_law(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 7))
    matrix = rng.integers(-2, 3, (int(rng.integers(1, n)), n)).astype(float)
    sigma = rng.choice([0.5, 1.0, 4.0], n)
    x = rng.integers(0, 9, n).astype(float)
    mechanism = cg.Additive(cg.Gaussian(sigma), n)
    law = cg.condition(mechanism, cg.linear(matrix, matrix @ x))
    basis = null_space(matrix)
    inside = basis.T @ np.diag(sigma**-2.0) @ basis
    covariance = basis @ np.linalg.inv(inside) @ basis.T if basis.size else np.zeros((n, n))
    for v in range(n):
        mean, sd = law.marginal(v, x)
        assert (mean, sd) == (x[v], pytest.approx(np.sqrt(covariance[v, v]), abs=1e-6))
        low, high = law.interval(v, 0.1)
        assert (low, high) == pytest.approx((-norm.ppf(0.95) * sd, norm.ppf(0.95) * sd))
    mean, found = law.joint([0, n - 1], x)
    assert mean.tolist() == [x[0], x[n - 1]]
    np.testing.assert_allclose(found, covariance[np.ix_([0, n - 1], [0, n - 1])], atol=1e-9)
    z = law.sample(x, rng=cg.seeded(seed))
    np.testing.assert_allclose(matrix @ z, matrix @ x, atol=1e-9)
    # in coordinates along the solutions
    u = basis.T @ (z - x)
    dense = 0.5 * np.linalg.slogdet(inside / (2.0 * np.pi))[1] - 0.5 * u @ inside @ u
    assert law.log_prob(z, x) == pytest.approx(dense, abs=1e-7)
    assert law.log_prob(z + matrix[0] + 1e-3, x) == -np.inf or not matrix[0].any()
