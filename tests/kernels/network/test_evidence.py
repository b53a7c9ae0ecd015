"""Likelihoods of families' measurements, against sums over counts."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy.special import gammaln, logsumexp

from congenial.kernels.network.evidence import family_curves

pytestmark = pytest.mark.kernels

LEAST = np.log(1e-300)


def log_count_law(k, mean, r):
    """Log probabilities of counts, shape (dispersions, counts), for dispersions `r`."""
    r = r[:, None]
    ahead = gammaln(k + r) - gammaln(k + 1.0) - gammaln(r)
    return ahead - k * np.log1p(r / mean) - r * np.log1p(mean / r)


def curves(y, inverse, gaussian, reach, mean, zeros, dispersions):
    """Log likelihoods of one measurement, shape (zeros, dispersions), by all counts in reach."""

    def noise(d):
        return -inverse * (d * d if gaussian else d)

    k = np.arange(max(0, y - reach), max(0, y + reach) + 1.0)
    out = np.empty((zeros.size, dispersions.size))
    with np.errstate(divide="ignore"):
        for h, q in enumerate(zeros):
            law = log_count_law(k, mean / (1.0 - q), dispersions) + noise(np.abs(y - k))
            one, empty = np.log(1.0 - q) + logsumexp(law, axis=1), np.log(q) + noise(abs(y))
            out[h] = np.logaddexp(one, empty)
    return np.maximum(out, LEAST)


def random_problem(rng):
    """Return the arguments of `family_curves` but for its output: up to three means."""
    gaussian = bool(rng.integers(2))
    families, groups = int(rng.integers(1, 4)), int(rng.integers(1, 4))
    middle = float(rng.choice([0.0, 5.0, 300.0, 3e7]))
    parts = []
    for _ in range(groups):
        y = np.rint(rng.normal(middle, rng.choice([1.0, 8.0, 60.0]), rng.integers(1, 6)))
        scale = rng.choice([0.5, 3.0, 20.0], y.size)
        parts.append(np.unique(np.column_stack((y, scale)), axis=0))
    start = np.cumsum([0, *map(len, parts)])
    y, scale = np.concatenate(parts).T
    leaves = [rng.integers(*ends, rng.integers(1, 6)) for ends in pairwise(start)]
    return (
        start,
        y.astype(np.int64),
        0.5 / scale**2 if gaussian else 1.0 / scale,
        gaussian,
        np.ceil(rng.choice([3.0, 12.0]) * scale).astype(np.int64),
        (1.0 + middle) * np.exp(rng.uniform(-3.0, 3.0, groups)),
        np.exp(rng.uniform(-2.0, 5.0, 3)),
        np.array([0.0, *rng.uniform(0.05, 0.9, 1)]),
        np.cumsum([0, *map(len, leaves)]),
        np.concatenate(leaves),
        rng.integers(0, families, sum(map(len, leaves))),
    ), families


def test_thousands_of_random_likelihoods_are_sums_over_counts():
    for seed in range(1500):
        problem, families = random_problem(np.random.default_rng([91, seed]))
        start, y, inverse, gaussian, reach, mean, dispersions, zeros, begins, number, family = (
            problem
        )
        out = np.zeros((families, zeros.size, dispersions.size))
        family_curves(*problem, out)
        each = [
            curves(y[v], inverse[v], gaussian, reach[v], mean[g], zeros, dispersions)
            for g in range(start.size - 1)
            for v in range(start[g], start[g + 1])
        ]
        wanted = np.zeros_like(out)
        for g in range(start.size - 1):
            for leaf in range(begins[g], begins[g + 1]):
                wanted[family[leaf]] += each[number[leaf]]
        # a probability is up to four roundings a step from the likeliest, whose log has terms of
        # the size of lgamma; the reference has as many again, and both are sums over leaves
        steps = np.ptp(y) + 2 * reach.max()
        terms = gammaln(np.abs(y).max() + reach.max() + dispersions.max())
        off = 2.0**-52 * family.size * (4.0 * steps + 8.0 * (terms + 700.0))
        assert np.abs(out - wanted).max() <= off, seed
