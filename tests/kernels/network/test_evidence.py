"""Likelihoods of families' measurements, against sums over counts."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from congenial.kernels.network.evidence import family_curves


@pytest.mark.parametrize("gaussian", [False, True])
def test_likelihoods_are_sums_over_counts(gaussian):
    rng = np.random.default_rng(4)
    scale, mean = 2.0, 3.0
    y = np.unique(rng.integers(-6, 30, 12)).astype(np.int64)
    inverse = np.full(y.size, 0.5 / scale**2 if gaussian else 1.0 / scale)
    reach = np.full(y.size, 80, dtype=np.int64)
    zeros, dispersions = np.array([0.0, 0.4]), np.array([0.7, 5.0])
    number = rng.integers(0, y.size, 20)
    family = rng.integers(0, 3, 20)
    out = np.zeros((3, 2, 2))
    family_curves(
        np.array([0, y.size]),
        y,
        inverse,
        gaussian,
        reach,
        np.array([mean]),
        dispersions,
        zeros,
        np.array([0, 20]),
        number,
        family,
        out,
    )
    k = np.arange(300)
    wanted = np.zeros_like(out)
    for leaf, of in zip(number, family, strict=True):
        d = np.abs(y[leaf] - k)
        noise = np.exp(-inverse[leaf] * (d**2 if gaussian else d))
        for h, q in enumerate(zeros):
            for j, r in enumerate(dispersions):
                p = (1 - q) * stats.nbinom(r, r / (r + mean / (1 - q))).pmf(k) + q * (k == 0)
                wanted[of, h, j] += np.log(p @ noise)
    np.testing.assert_allclose(out, wanted, rtol=1e-9)
