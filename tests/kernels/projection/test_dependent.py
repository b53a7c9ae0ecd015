"""Unbiased rounding: every sum holds, and each value goes up as often as its fraction says."""

from __future__ import annotations

import numpy as np
import pytest

from congenial.kernels.projection.dependent import DONE, STEPS, round_down, to_grid
from support.projection_arrays import laid, leaf_sums, random_parents
from support.seeds import for_each_seed

pytestmark = pytest.mark.kernels


def case(seed):
    """Values by place that add up, whole and partial ones."""
    rng = np.random.default_rng(seed)
    parents = random_parents(rng, int(rng.integers(1, 14)))
    rows, order = laid(parents)
    sums = leaf_sums(parents)
    leaf = rng.choice([0.0, 1.0, 0.25, 0.1, 1 / 3, 2.7, -1.4], sums.shape[1])
    return rng, rows, (sums @ leaf)[order]


def on_grid(rows, z):
    whole, part = np.empty(z.size), np.empty(z.size, dtype=np.int64)
    assert to_grid(rows, z, 64, 1e-9, whole, part) == -1
    return whole, part


@for_each_seed(200)
def test_steps_add_up_exactly_near_their_values(seed):
    _, rows, z = case(seed)
    whole, part = on_grid(rows, z)
    assert ((part >= 0) & (part < STEPS)).all()
    steps = [int(w) * int(STEPS) + int(p) for w, p in zip(whole, part, strict=True)]
    for k in range(rows.shape[1] - 1):
        assert sum(steps[rows[0, k] : rows[0, k + 1]]) == steps[rows[3, k]]
    # a step, and a share of what each family above misses
    np.testing.assert_allclose(np.array(steps) / int(STEPS), z, atol=(64 + 14 * 14) / int(STEPS))


def test_values_that_do_not_add_up_are_found():
    rows, _ = laid(np.array([-1, 0, 0]))
    whole, part = np.empty(3), np.empty(3, dtype=np.int64)
    assert to_grid(rows, np.array([2.0, 0.5, 0.5]), 64, 1e-9, whole, part) == 0


@pytest.mark.parametrize("seed", range(12))
def test_each_value_is_rounded_up_with_probability_equal_to_its_fraction(seed):
    rng, rows, z = case(seed)
    whole, part = on_grid(rows, z)
    draws, total = 20_000, np.zeros(z.size)
    out, order = np.empty(z.size), np.empty(z.size, dtype=np.int64)
    for words in rng.integers(0, 2**64, (draws, z.size), dtype=np.uint64):
        assert round_down(rows, whole, part, words, order, out) == DONE
        assert np.isin(out - whole, (0.0, 1.0)).all()
        total += out - whole
    p = part / int(STEPS)
    # some 100 shares in all: 6 deviations are passed with probability 2e-7
    assert (np.abs(total / draws - p) <= 6.0 * np.sqrt(p * (1.0 - p) / draws)).all()


def test_every_pair_of_a_family_is_rounded_up_together_equally_often():
    rows, _ = laid(np.array([-1, 0, 0, 0, 0]))
    rng = np.random.default_rng(3)
    whole, part = on_grid(rows, np.array([2.0, 0.5, 0.5, 0.5, 0.5]))
    draws, seen = 12_000, {}
    out, order = np.empty(5), np.empty(5, dtype=np.int64)
    for words in rng.integers(0, 2**64, (draws, 5), dtype=np.uint64):
        assert round_down(rows, whole, part, words, order, out) == DONE
        pair = tuple(np.flatnonzero(out[1:]).tolist())
        seen[pair] = seen.get(pair, 0) + 1
    assert len(seen) == 6
    # 6 deviations are passed with probability 2e-9 each
    assert all(abs(k / draws - 1 / 6) <= 6.0 * np.sqrt(5 / 36 / draws) for k in seen.values())
