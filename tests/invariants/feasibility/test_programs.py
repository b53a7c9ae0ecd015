"""Programmes that find infeasible subsets, and what stands in where there is no solver."""

from __future__ import annotations

import numpy as np

import congenial as cg
import congenial.releases.making.make_release
from congenial.invariants.feasibility import programs as system
from congenial.invariants.feasibility.feasible import (
    check_pinned,
    find_infeasible_subset,
    not_tried,
)
from congenial.invariants.written import resolve_invariant

INF = np.inf


def test_constraints_may_be_feasible_for_reals_and_infeasible_for_integers():
    invariant = cg.linear([[1, 1, 0], [0, 1, 1], [1, 0, 1]], [1, 1, 1])
    resolved = resolve_invariant(invariant, 3)
    assert find_infeasible_subset(resolved, invariant, whole=False) is None
    found = find_infeasible_subset(resolved, invariant, whole=True)
    assert {m.kind for m in found.members} == {"linear"}
    assert len(found.members) == 3


def test_without_the_solver_bounds_are_propagated_from_row_to_row(monkeypatch):
    chain = cg.linear([[1, -1, 0, 0], [0, 1, -1, 0], [0, 0, 1, 1]], [2, 2, 1])
    infeasible = chain & cg.bounds([9, -INF, -INF, 0], INF)
    hidden = cg.linear([[1, 1, 1, 0], [1, 1, 0, 1]], [4, 4]) & cg.at_least([0, 0, 1, -1], 1)
    for invariant in (infeasible, hidden):
        resolved = resolve_invariant(invariant, 4)
        assert find_infeasible_subset(resolved, invariant, whole=True) is not None
        assert not_tried(resolved) == ""
    monkeypatch.setattr(system, "SOLVER", "no_such_solver")
    found = find_infeasible_subset(resolve_invariant(infeasible, 4), infeasible, whole=True)
    assert {m.at for m in found.members if m.kind == "lower"} == {0, 3}
    assert {m.at for m in found.members if m.kind == "linear"} == {0, 1, 2}
    resolved = resolve_invariant(hidden, 4)
    assert find_infeasible_subset(resolved, hidden, whole=True) is None
    assert "pip install highspy" in not_tried(resolved)
    conditioned = cg.condition(cg.Additive(cg.DiscreteLaplace(1.0), 4), chain & cg.bounds(-50, 50))
    assert "pip install highspy" in conditioned.explain()


PEOPLE = cg.Table({"sex": ("F", "M"), "age": ("0-17", "18+")}, name="people")


CROSSING = cg.Workload.of(PEOPLE, [(), ("sex",), ("age",)])


def test_tables_without_upper_bounds_are_feasible_without_search(monkeypatch):
    whole = cg.consistent(CROSSING) & cg.nonnegative() & cg.exactly(margins=[("sex",)])
    resolved = resolve_invariant(whole, len(CROSSING), CROSSING)
    x = CROSSING.answers([[1, 2], [3, 4]])
    check_pinned(resolved, x, whole, whole=True)
    monkeypatch.setattr(system.Solver, "holds", None)
    assert find_infeasible_subset(resolved, whole, whole=True) is None
