"""Choices by a word each: over evenly spaced words, every outcome has its share of them."""

from __future__ import annotations

import numpy as np
import pytest

from congenial.kernels.network.descend import choose
from support.kernel_entries import entry

pytestmark = pytest.mark.kernels

choose_root = entry("network.descend.choose_root")
MANY = 500
WORDS = [np.uint64((2 * i + 1) * (2**63 // MANY)) for i in range(MANY)]


def assert_shares(outcomes, weights, first):
    """Outcomes in turn, the words in order: each count is within one of its share."""
    counts = np.bincount(np.array(outcomes) - first, minlength=weights.size)
    assert counts.size == weights.size
    np.testing.assert_allclose(np.cumsum(counts), MANY * np.cumsum(weights) / weights.sum(), atol=1)


@pytest.mark.parametrize("seed", range(60))
def test_a_sum_is_split_in_proportion_to_the_products(seed):
    rng = np.random.default_rng(seed)
    a, b = rng.exponential(size=rng.integers(1, 40)), rng.exponential(size=rng.integers(1, 40))
    a[rng.random(a.size) < 0.2] = 0.0
    lo_a, lo_b = int(rng.integers(-20, 20)), int(rng.integers(-20, 20))
    s = lo_a + lo_b + int(rng.integers(0, a.size + b.size - 1))
    first, last = max(lo_a, s - lo_b - b.size + 1), min(lo_a + a.size - 1, s - lo_b)
    left = np.arange(first, last + 1)
    weights = a[left - lo_a] * b[s - left - lo_b]
    total = float(weights.sum())
    if total > 0.0:
        outcomes = [choose(a, lo_a, b, lo_b, s, total, word) for word in WORDS]
        assert_shares(outcomes, weights, first)


@pytest.mark.parametrize("seed", range(60))
def test_a_root_is_chosen_in_proportion_to_its_table(seed):
    rng = np.random.default_rng(seed)
    t = rng.exponential(size=rng.integers(1, 60)) * 2.0 ** int(rng.integers(-40, 1))
    lo = int(rng.integers(-30, 30))
    assert_shares([choose_root(t, lo, word) for word in WORDS], t, lo)
