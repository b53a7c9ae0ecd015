"""Variables that close cycles: what remains is a forest with the same solutions."""

from __future__ import annotations

import numpy as np
import pytest

import congenial as cg
from congenial.invariants.written import resolve_invariant
from congenial.sum_network.closing import closers as module
from congenial.sum_network.closing import find_closings, forest_of
from congenial.sum_network.cutset import sum_system
from support.closing_cases import crossing_at_random
from support.sum_networks import margins


def dense(rows, size):
    out = np.zeros((len(rows), size))
    for k, row in enumerate(rows):
        out[k, list(row)] = list(row.values())
    return out


def sums_of(part, size):
    """The sums of a part, as rows over all variables."""
    forest, rows = part.forest, np.zeros((part.forest.m, size))
    for k in range(forest.m):
        below = np.flatnonzero(forest.above == k)
        rows[k, part.variables[below]] = forest.orientation[below]
        if forest.owner[k] >= 0:
            owner = forest.owner[k]
            rows[k, part.variables[owner]] = -forest.sign[k] * forest.orientation[owner]
    return rows


def check(system, closings):
    """Every variable has one place, and the sums have the same solutions as before."""
    after = []
    for found in closings:
        parts = [found.free, *found.trees]
        solved = np.zeros((len(found.trees), system.size))
        solved[np.arange(len(found.trees)), found.closers] = -1
        solved[:, found.free.variables] = found.multiples
        after += [*(sums_of(part, system.size) for part in parts), solved]
        for tree in found.trees:
            assert tree.forest.above[0] < 0
            assert (tree.forest.owner >= 0).all()
    placed = np.concatenate([[], *(found.variables for found in closings)])
    assert sorted(placed.tolist()) == system.free
    before = dense(system.rows, system.size)
    after = np.vstack([np.zeros((0, system.size)), *after])
    if not before.size:
        assert not after.size
        return
    rank = np.linalg.matrix_rank
    assert after.shape[0] == before.shape[0] == rank(after) == rank(before)
    assert rank(np.vstack((before, after))) == before.shape[0]
    closers = sum(len(found.trees) for found in closings)
    assert forest_of(closings, system.size).m == before.shape[0] - closers


SHAPES = ((3, 3), (3, 4), (4, 4), (5, 3), (3, 7))


@pytest.mark.parametrize("start", range(0, 300, 50))
def test_closers_leave_a_forest_with_the_same_solutions(start):
    for seed in range(start, start + 50):
        _, system = crossing_at_random(seed, SHAPES).system()
        found = find_closings(system)
        if system.forest is None:
            assert found is not None
            check(system, found)


@pytest.mark.parametrize(("rows", "columns"), [(3, 3), (3, 12), (12, 3), (5, 6), (8, 8)])
def test_a_table_needs_one_closer_less_than_it_has_lines(rows, columns):
    sums = margins(rows, columns)
    invariant = cg.linear(sums, np.zeros(rows + columns))
    system = sum_system(resolve_invariant(invariant, rows * columns, None, whole=True))
    found = find_closings(system)
    assert len(found[0].trees) == min(rows, columns) - 1
    assert len(found) == 1
    check(system, found)


@pytest.mark.parametrize("seed", range(40))
def test_random_sums_are_closed_or_refused(seed):
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(4, 12)), int(rng.integers(2, 6))
    sums = rng.choice([0, 0, 1, 1, -1], (m, n))
    sums = sums[sums.any(axis=1)]
    invariant = cg.linear(sums, np.zeros(sums.shape[0]))
    system = sum_system(resolve_invariant(invariant, n, None, whole=True))
    found = find_closings(system)
    if found is not None:
        check(system, found)


def test_sums_that_are_not_connected_are_closed_apart():
    sums = np.kron(np.eye(5, dtype=np.int64), margins(3, 3))
    sums = np.hstack((sums, np.zeros((30, 4), dtype=np.int64)))
    sums = np.vstack((sums, [0] * 45 + [1, 1, -1, 0]))
    system = sum_system(resolve_invariant(cg.linear(sums, np.zeros(31)), 49, None, whole=True))
    found = find_closings(system)
    check(system, found)
    assert [len(one.trees) for one in found] == [2] * 5 + [0]
    assert found[-1].variables.tolist() == [45, 46, 47, 48]


def test_too_many_crossing_sums_are_not_searched(monkeypatch):
    _, system = crossing_at_random(0, ((3, 3),)).system()
    assert find_closings(system) is not None
    monkeypatch.setattr(module, "_MOST_SUMS", 4)
    assert find_closings(system) is None


def two_levels():
    """Sums of a city and two halves of it, each with margins and cells that are all counted."""
    table = cg.Table(
        {"part": ("night", "day", "evening"), "place": ("near", "far", "other")},
        geography=cg.Tree.from_paths([("city", "one"), ("city", "two")]),
        levels=("city", "half"),
    )
    margins_of = [(), ("part",), ("place",), ("part", "place")]
    workload = cg.Workload.of(table, {"city": margins_of, "half": margins_of[1:]})
    invariant = cg.consistent(workload) & cg.exactly(margins=[()], level="city")
    return sum_system(resolve_invariant(invariant, len(workload), workload, whole=True))


def test_further_searches_find_fewer_closers(monkeypatch):
    system = two_levels()
    found = find_closings(system)
    check(system, found)
    monkeypatch.setattr(module, "_FEW", 1_000)
    once = find_closings(system)
    check(system, once)
    assert len(found[0].trees) < len(once[0].trees)
