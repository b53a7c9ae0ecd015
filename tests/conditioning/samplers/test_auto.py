"""The automatic sampler: a chain only if no exact sampler is affordable."""

from __future__ import annotations

import numpy as np

import congenial as cg
from congenial.conditioning.laws.forest_sampler import Conditioned
from congenial.conditioning.samplers.gibbs import GibbsConditioned


def test_auto_uses_chains_for_many_crossing_sums_only():
    size = 16
    rows = np.zeros((2 * size, size * size))
    for i in range(size):
        rows[i, i * size : (i + 1) * size] = 1
        rows[size + i, i::size] = 1
    x = np.full(size * size, 40)
    crossing = cg.linear(rows, rows @ x) & cg.nonnegative()
    wide = cg.Additive(cg.DiscreteLaplace(500.0), size * size)
    assert isinstance(cg.condition(wide, crossing), GibbsConditioned)
    rowwise = cg.linear(rows[:size], rows[:size] @ x) & cg.nonnegative()
    assert isinstance(cg.condition(wide, rowwise), Conditioned)
