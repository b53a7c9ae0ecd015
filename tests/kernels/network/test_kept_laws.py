"""Summaries of the laws of many counts, against numpy on each law."""

from __future__ import annotations

import numpy as np

from congenial.kernels.network import kept_laws
from congenial.kernels.network.marginals import HIGH, LOW, MEAN, MEDIAN, VARIANCE
from support.seeds import for_each_seed


def laws(rng):
    """Random laws, one after the other: first values, sizes, places and probabilities."""
    size = rng.integers(1, 12, size=int(rng.integers(1, 9)))
    first = rng.integers(-5, 40, size=size.size)
    place = np.concatenate(([0], np.cumsum(size)[:-1]))
    parts = [rng.dirichlet(np.full(n, 0.7)) for n in size]
    return first, size, place, np.concatenate(parts), parts


@for_each_seed(200)
def test_each_law_is_summarised_by_itself(seed):
    rng = np.random.default_rng(seed)
    first, size, place, flat, parts = laws(rng)
    out = np.empty((size.size, 5))
    kept_laws.summaries(0.2, first, size, place, flat, out)
    for v, p in enumerate(parts):
        k = first[v] + np.arange(p.size)
        mean = k @ p
        assert abs(out[v, MEAN] - mean) < 1e-9
        assert abs(out[v, VARIANCE] - (k - mean) ** 2 @ p) < 1e-9
        below = np.cumsum(p)
        median = int(out[v, MEDIAN]) - first[v]
        assert below[median] > 0.5 - 2e-9
        assert median == 0 or below[median - 1] < 0.5 + 2e-9
        low, high = int(out[v, LOW]) - first[v], int(out[v, HIGH]) - first[v]
        assert p[low : high + 1].sum() > 0.8 - 2e-9
        # no shorter interval has enough
        width = high - low
        assert all(p[i : i + width].sum() < 0.8 + 2e-9 for i in range(p.size - width + 1))


@for_each_seed(200)
def test_expected_errors_and_chances_of_at_most_each_value(seed):
    rng = np.random.default_rng(seed)
    first, size, place, flat, parts = laws(rng)
    table, weights = rng.integers(-8, 50, size=size.size), rng.random(size.size)
    found = kept_laws.expected_errors(table, weights, first, size, place, flat)
    k = [at + np.arange(p.size) for at, p in zip(first, parts, strict=True)]
    errors = [abs(one - t) @ p for one, t, p in zip(k, table, parts, strict=True)]
    assert abs(found - weights @ errors) < 1e-9 * max(1.0, abs(found))
    begin, width = first - rng.integers(0, 3, size=size.size), rng.integers(1, 15, size=size.size)
    out = np.empty(int(width.sum()))
    kept_laws.up_to(begin, width, first, size, place, flat, out)
    wanted = [
        p[one <= value].sum()
        for one, p, b, w in zip(k, parts, begin, width, strict=True)
        for value in range(b, b + w)
    ]
    np.testing.assert_allclose(out, wanted, atol=1e-12)
