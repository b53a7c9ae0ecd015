"""Irreducible infeasible subsets of bounds on a tree."""

from __future__ import annotations

import time

import numpy as np

import congenial as cg
import congenial.releases.making.make_release
from congenial.invariants.feasibility import programs as system
from congenial.invariants.feasibility.bounds_on_trees import on_hierarchy
from congenial.invariants.feasibility.feasible import (
    find_infeasible_subset,
)
from congenial.invariants.feasibility.single_invariants import take_apart
from congenial.invariants.written import resolve_invariant

INF = np.inf


def joined(parts):
    whole = parts[0]
    for part in parts[1:]:
        whole = whole & part
    return whole


def test_the_solver_finds_that_every_member_is_needed():
    rng = np.random.default_rng(3)
    sizes = []
    for _ in range(150):
        n = int(rng.integers(5, 14))
        tree = cg.Tree.from_parents([-1, *(int(rng.integers(0, i)) for i in range(1, n))])
        lo = np.where(rng.random(n) < 0.7, rng.integers(-1, 4, n), -INF)
        hi = np.maximum(lo, np.where(rng.random(n) < 0.5, rng.integers(0, 9, n), INF))
        parts = [cg.consistent(tree), cg.bounds(lo, hi)] + [cg.nonnegative()] * (n % 2)
        invariant = joined(parts)
        resolved = resolve_invariant(invariant, n)
        single = take_apart(resolved, invariant, whole=True)
        rows = system.as_rows(single)
        every = frozenset(range(len(rows.members)))
        oracle = system.Solver(rows)
        found = on_hierarchy(single)
        assert (found is None) == oracle.holds(every)
        if found is not None:
            members = frozenset(rows.members.index(m) for m in found)
            assert not oracle.holds(members)
            assert all(oracle.holds(members - {m}) for m in members)
            sizes.append(len(members))
    assert len(sizes) > 50
    assert max(sizes) > 5


def test_a_million_nodes_take_a_fraction_of_a_second():
    parents = np.concatenate(([-1], np.repeat(np.arange(10101), 100))).astype(np.int64)
    tree = cg.Tree.from_parents(parents)
    x = np.asarray(tree.roll_up(np.full(tree.leaves.size, 7)), dtype=float)
    hi = x.copy()
    hi[1] -= 1
    for high, number in ((x, None), (hi, 102)):
        invariant = cg.consistent(tree) & cg.nonnegative() & cg.bounds(np.minimum(x, high), high)
        resolved = resolve_invariant(invariant, len(tree))
        find_infeasible_subset(resolved, invariant, whole=True)
        before = time.process_time()
        found = find_infeasible_subset(resolved, invariant, whole=True)
        assert time.process_time() - before < 2.0
        assert (None if found is None else len(found.members)) == number
