"""Families under their parent's cells: against a general solver, and in degenerate cases."""

from __future__ import annotations

import numpy as np
import piqp
import pytest

from support.families import example

pytestmark = pytest.mark.kernels


def reference(ex):
    """The closest cells by a dense interior-point method, as a move from the truth."""
    sums, areas = ex.sums, ex.areas
    at = ex.truth @ sums.T
    cells, count = len(areas.of), len(areas.members)
    blocks = [sums.T @ (w[:, None] * sums) for w in areas.weight[1:]]
    matrix = np.zeros((count * cells, count * cells))
    slope = np.zeros(count * cells)
    rows = np.kron(np.eye(count), sums[cells:])
    for i, block in enumerate(blocks):
        here = slice(i * cells, (i + 1) * cells)
        matrix[here, here] = block
        slope[here] = -sums.T @ (areas.weight[1 + i] * (areas.target[1 + i] - at[i]))
    ends = areas.low[1:] - at, areas.high[1:] - at
    low, high = (one[:, cells:].ravel() for one in ends)
    fixed, open_ = low == high, (low != high) & (np.isfinite(low) | np.isfinite(high))
    solver = piqp.DenseSolver()
    solver.settings.max_iter = 500
    solver.settings.eps_abs = solver.settings.eps_rel = 1e-11
    solver.setup(
        np.asfortranarray(matrix),
        slope,
        np.asfortranarray(np.vstack((np.tile(np.eye(cells), count), rows[fixed]))),
        np.concatenate((ex.parent - ex.truth.sum(axis=0), low[fixed])),
        np.asfortranarray(rows[open_]),
        low[open_],
        high[open_],
        *(one[:, :cells].ravel() for one in ends),
    )
    solver.solve()
    return ex.truth + np.asarray(solver.result.x).reshape(count, cells)


def violation(ex, x):
    across = x @ ex.sums.T
    bounds = np.maximum(ex.areas.low[1:] - across, across - ex.areas.high[1:]).max()
    return max(bounds, np.abs(x.sum(axis=0) - ex.parent).max(initial=0.0))


def test_the_fit_is_as_close_as_a_general_solver_finds_and_keeps_everything():
    rng = np.random.default_rng(1)
    bounded, equal = 0, 0
    for _ in range(1000):
        ex = example(rng)
        x, missed = ex.solved()
        assert missed <= 1e-9
        size = max(1.0, np.abs(ex.areas.target).max())
        assert violation(ex, x) <= 1e-9 * size
        other = reference(ex)
        if violation(ex, other) > 1e-6 * size:  # the solver gave up
            continue
        bounded += np.isfinite(ex.areas.high[1:]).any()
        least = ex.distance(other)
        assert ex.distance(x) <= least + 1e-6 * max(1.0, least)
        equal += ex.distance(x) >= least - 1e-6 * max(1.0, least)
    assert bounded >= 100
    assert equal >= 950


def test_a_wrong_weight_is_noticed():
    rng = np.random.default_rng(2)
    worse = 0
    for _ in range(40):
        ex = example(rng, children=(4, 12), first=(3, 5), second=(2, 4), bounded=False)
        x, _ = ex.solved()
        ex.areas.weight[1:, : len(ex.areas.of)] *= 1.3
        worse += ex.distance(x) > ex.distance(reference(ex)) * (1.0 + 1e-6)
    assert worse >= 10


def test_equal_children_get_equal_cells_and_an_empty_parent_empty_children():
    ex = example(np.random.default_rng(3), children=(6, 7), first=(2, 3), second=(2, 3))
    for part in (ex.areas.target, ex.areas.low, ex.areas.high):
        part[1:] = part[1]
    ex.areas.low[1:] = -np.inf
    ex.areas.high[1:] = np.inf
    ex.areas.low[1:, :4] = 0.0
    x, missed = ex.solved()
    assert missed <= 1e-9
    np.testing.assert_allclose(x, np.broadcast_to(ex.parent / 6, x.shape), atol=1e-9)
    ex.parent[:] = 0.0
    x, missed = ex.solved()
    assert missed == 0.0
    assert not x.any()


def test_bounds_that_leave_no_table_are_told():
    ex = example(np.random.default_rng(4), children=(3, 4), first=(2, 3), second=(2, 3))
    ex.areas.low[1:] = -np.inf
    ex.areas.high[1:] = np.inf
    ex.areas.low[1:, :4] = 0.0
    ex.parent[:] = 10.0
    ex.areas.high[1:, 4] = 1.0  # at most one record an area, and forty records
    _, missed = ex.solved()
    assert missed == np.inf
    ex.areas.high[1:, :4] = 1.0
    _, missed = ex.solved()
    assert missed == np.inf
