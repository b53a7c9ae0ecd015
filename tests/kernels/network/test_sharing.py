"""Distinct weights of noise, against a dictionary."""

from __future__ import annotations

import numpy as np
import pytest

from congenial.kernels.network.sharing import number_weights, room
from support.seeds import for_each_seed

pytestmark = pytest.mark.kernels


@for_each_seed(200)
def test_variables_have_one_number_where_scale_and_ends_agree(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.choice([1, 5, 60, 2000]))
    size = n + int(rng.integers(0, 3))  # the last ones have no weight at all

    def each(values):
        return values if rng.random() < 0.6 else values[:1].copy()

    scale = each(rng.choice([0.5, 1.0, np.inf], n))
    lo, hi = each(rng.choice([-np.inf, 0.0, 0.5], n)), each(rng.choice([np.inf, 9.0, 9.5], n))
    counts = each(rng.integers(0, rng.choice([2, 3000]), n))
    dropped, way = each(rng.random(n) < 0.3), each(rng.choice([1, -1], n).astype(np.int8))
    fixed = rng.random(n) < 0.2
    code = np.empty(size, dtype=np.int32)
    rows = np.empty((size, 3), dtype=np.int64)
    scratch = np.zeros(1024, dtype=np.int32), np.zeros(1024, dtype=np.int32)
    held = np.zeros(room(size), dtype=np.int32)
    count = number_weights(scale, lo, hi, counts, fixed, dropped, way, code, *scratch, rows, held)
    number = {}
    for v in range(size):
        weight = np.inf, -np.inf, np.inf
        if v < n:
            s, least, most, x, d, w = (c[v % c.size] for c in (scale, lo, hi, counts, dropped, way))
            low, high = (-np.inf if d else np.ceil(least)) - x, np.floor(most) - x
            weight = (s, low, high) if w > 0 else (s, -high, -low)
            weight = (s, 0.0, 0.0) if fixed[v] else weight
        assert code[v] == number.setdefault(weight, len(number))
    assert count == len(number)
    listed = rows[:count].view(np.float64)
    assert [tuple(row) for row in listed.tolist()] == list(number)


@pytest.mark.parametrize("most", [0, 1, 128, 129, 10**6])
def test_a_table_is_at_most_half_full(most):
    # it is enlarged as soon as half of it is taken
    assert most < room(most) // 2 <= max(128, 4 * most)
