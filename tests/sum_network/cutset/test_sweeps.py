"""Blocks of sums with many cycles: which cut sets they hold, and what they cost."""

from __future__ import annotations

import numpy as np
import pytest

import congenial as cg
from congenial.sum_network.cutset import choose_blocks, compile_sweeps, place_windows, sweep_cost
from congenial.sum_network.cutset import sweeps as sweeps_module
from support.sum_networks import margins

pytestmark = pytest.mark.kernels


def test_the_cost_is_that_of_the_compiled_tables_and_a_sweep_keeps_the_sums():
    rows = margins(3, 3)
    mechanism = cg.Additive(cg.DiscreteLaplace(2.0), 9)
    made = cg.condition(mechanism, cg.linear(rows, rows @ np.arange(9)), sampler="gibbs")
    system, unary = made.sums, made._weights(np.arange(9))
    blocks = choose_blocks(system)
    entries, work = sweep_cost(system, blocks, unary)
    box = place_windows(system, unary)
    sweeps = compile_sweeps(system, blocks, None, box, unary, 5)
    assert entries == sum(branches.state.table.size for branches, _ in sweeps.blocks)
    assert work > 0
    state = sweeps.sweep(np.zeros((5, system.size), dtype=np.int64), cg.seeded(1))
    assert state.any()
    for row in system.rows:
        assert not sum(a * state[:, v] for v, a in row.items()).any()


def test_blocks_beyond_the_limit_are_refused_with_the_limit(monkeypatch):
    rows = margins(3, 3)
    mechanism = cg.Additive(cg.DiscreteLaplace(2.0), 9)
    made = cg.condition(mechanism, cg.linear(rows, rows @ np.arange(9)), sampler="gibbs")
    blocks, box = choose_blocks(made.sums), place_windows(made.sums, made._weights(np.arange(9)))
    monkeypatch.setattr(sweeps_module, "_MOST_ENTRIES", 1)
    with pytest.raises(cg.errors.UnsupportedError, match=r"and the limit is 0\.0 GiB; use"):
        compile_sweeps(made.sums, blocks, None, box, made._weights(np.arange(9)), 5)
