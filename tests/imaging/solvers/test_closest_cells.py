"""The closest table over a whole geography: against a general solver, and rounded."""

from __future__ import annotations

import numpy as np

import congenial as cg
from congenial.imaging import closest
from congenial.imaging.solvers.cell_descent import CellDescent
from congenial.imaging.solvers.closest_cells import crossing_tables, solve_cells
from congenial.imaging.solvers.sparse import solve_sparse
from congenial.invariants.written import resolve_invariant

AXES = {"a": ("x", "y", "z"), "b": ("p", "q")}


def worlds(count):
    rng = np.random.default_rng(0)
    for _ in range(count):
        paths = [(str(i // 9), str(i // 3), str(i)) for i in range(int(rng.integers(1, 20)))]
        table = cg.Table(
            AXES,
            geography=cg.Tree.from_paths(paths),
            impossible=[{"a": "x", "b": "q"}] if rng.random() < 0.3 else None,
        )
        workload = cg.Workload.of(table, [(), ("a",), ("b",), ("a", "b")])
        counts = rng.poisson(rng.choice([0.5, 5.0, 500.0]), size=table.shape)
        x = workload.answers(counts * table.possible.reshape(table.shape))
        invariant = cg.consistent(workload) & cg.nonnegative()
        kind = int(rng.integers(0, 4))
        if kind == 1:
            invariant = invariant & cg.exactly(margins=[("a",), ("b",)], level=0)
        if kind == 2:
            limit = workload.array(x, (), 2) + 1
            invariant = invariant & cg.bounds(0, limit, margin=(), level=2)
        if kind == 3:
            invariant = invariant & cg.exactly(margins=[("a", "b")], level=1)
        resolved = resolve_invariant(invariant, len(workload), workload)
        noise = rng.choice([1.0, 20.0]) * rng.normal(size=x.size)
        y = np.where(resolved.pinned, x, np.rint(x + noise))
        by_block = {block.start: rng.choice([0.0, 0.1, 1.0]) for block in workload.blocks}
        weight = np.zeros(x.size)
        for block in workload.blocks:
            weight[block.entries] = by_block[block.start]
        weight[workload.cells] = 0.5
        yield resolved, y, np.where(resolved.pinned, 0.0, weight)


def test_the_point_is_as_close_as_a_general_solver_finds():
    covered = 0
    for resolved, y, weight in worlds(150):
        covered += crossing_tables(resolved, weight) is not None
        z = solve_cells(CellDescent(resolved.workload, resolved, weight, integer=False), y)
        assert resolved.satisfied_by(z, y)
        other = solve_sparse(resolved, y, weight)
        least = float((weight * (other - y) ** 2).sum())
        assert float((weight * (z - y) ** 2).sum()) <= least + 1e-6 * max(1.0, least)
        np.testing.assert_allclose(z, other, atol=1e-3 * max(1.0, np.abs(other - y).max()))
    # exact margins that cross are left to the general solver
    assert 100 < covered < 150


def test_long_vectors_take_it_and_integers_keep_everything(monkeypatch):
    monkeypatch.setattr(closest, "LONGEST", 10)
    for resolved, y, weight in worlds(20):
        made = closest.Projector(resolved, weight, "l2", integer=False).apply(y)
        descent = crossing_tables(resolved, weight)
        if descent is None:
            continue
        np.testing.assert_allclose(made, solve_cells(descent, y), atol=1e-9)
        whole = closest.Projector(resolved, weight, "l2", integer=True).apply(y, cg.seeded(1))
        assert whole.dtype == np.int64
        assert resolved.satisfied_by(whole, y)
        assert np.abs(whole - made)[resolved.workload.cells].max() < 6.0


def test_what_it_does_not_cover():
    resolved, _, weight = next(worlds(1))
    weight[resolved.workload.cells[0]] = 0.0
    assert crossing_tables(resolved, weight) is None
    tree = cg.Tree.from_parents([-1, 0, 0])
    resolved = resolve_invariant(cg.consistent(tree), 3, tree)
    assert crossing_tables(resolved, np.ones(3)) is None
