"""Choices by a word each: over evenly spaced words, every outcome has its share of them."""

from __future__ import annotations

import numpy as np
import pytest

from support import one_choice

pytestmark = pytest.mark.kernels

MANY = 500
WORDS = (2 * np.arange(MANY, dtype=np.uint64) + np.uint64(1)) * np.uint64(2**63 // MANY)


def assert_shares(outcomes, weights, first):
    """Outcomes in turn, the words in order: each count is within one of its share."""
    counts = np.bincount(outcomes - first, minlength=weights.size)
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
    if total == 0.0:
        return
    known = a, lo_a, b, lo_b, s, total, WORDS
    whole = one_choice.split(*known, kept=seed % 2 == 0)
    assert_shares(whole, weights, first)
    # a row of few outcomes: the others follow it, in another order
    near = int(rng.integers(first - 3, last + 3)), int(rng.integers(0, 9))
    found = one_choice.split(*known, near=near, kept=seed % 2 == 1)
    counts = (np.bincount(each - first, minlength=left.size) for each in (whole, found))
    np.testing.assert_allclose(*counts, atol=2)


@pytest.mark.parametrize("seed", range(60))
def test_a_root_is_chosen_in_proportion_to_its_table(seed):
    rng = np.random.default_rng(seed)
    t = rng.exponential(size=rng.integers(1, 60)) * 2.0 ** int(rng.integers(-40, 1))
    lo = int(rng.integers(-30, 30))
    assert_shares(one_choice.root(t, lo, WORDS), t, lo)
