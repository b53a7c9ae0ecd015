"""Moves of one record in a table, and their cost, against all pairs of cells."""

from __future__ import annotations

import numpy as np
import pytest

import congenial as cg
from congenial.accounting.neighbours import single_moves as neighbours
from congenial.accounting.neighbours.counting import counting
from congenial.accounting.neighbours.single_moves import (
    changed_entries,
    farthest_pair,
    one_sided_costs,
    worst_move,
)
from congenial.errors import EmptyNeighbourhoodError
from congenial.invariants.written import exactly, resolve_invariant
from support.table_cases import AGES, PAIR, TWO, masks

AXES = {"sex": ("F", "M"), "age": ("0", "1", "2")}
MARGINS = [(), ("sex",), ("age",), ("grown",), ("sex", "grown")]


def worlds(count, seed):
    """Random margins of random small tables, with random costs and pins."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        geography = (None, PAIR, TWO)[rng.integers(3)]
        table = cg.Table(AXES, {"grown": ("age", AGES)}, geography)
        picked = [[m for m in MARGINS if rng.random() < 0.4] for _ in range(len(table.level_names))]
        workload = cg.Workload.of(table, dict(enumerate(picked)))
        if rng.random() < 0.3:
            homes = cg.Table({"used": ("yes", "no")}, geography=geography, name="homes")
            workload = workload + cg.Workload.of(homes, [()])
        n = len(workload)
        pins = np.flatnonzero(rng.random(n) < rng.choice([0.0, 0.1, 0.3, 0.7])).tolist()
        resolved = resolve_invariant(exactly(pins), n, workload) if pins else None
        resolved = resolved or resolve_invariant(cg.nonnegative(), n, workload)
        cost = np.where(resolved.pinned, 0.0, rng.choice([0.0, 0.5, 1.0, rng.random()], n))
        yield workload, resolved, cost


def pairs(each, resolved, cost):
    """Cost of every move of one record between cells that add the same to all pins."""
    k = each.shape[1]
    for a in range(k):
        for b in range(a + 1, k):
            changed = each[:, a] != each[:, b]
            if not changed[resolved.pinned].any():
                yield a, b, float(cost[changed].sum())


def test_the_most_expensive_move_is_the_maximum_over_all_pairs():
    seen = {"pairs": 0, "none": 0, "pinned": 0}
    for workload, resolved, cost in worlds(150, 3):
        each = masks(workload)
        found = list(pairs(each, resolved, cost))
        for counted in {workload, workload.tree or workload}:
            if not found:
                seen["none"] += 1
                with pytest.raises(EmptyNeighbourhoodError):
                    worst_move(cost, resolved, counted, "substitute")
                continue
            move = worst_move(cost, resolved, counted, "substitute")
            dearest = max(value for *_, value in found)
            assert move.cost == pytest.approx(dearest)
            ends = np.searchsorted(workload.cells, [move.origin, move.destination])
            assert (ends[0], ends[1], pytest.approx(dearest)) in [
                *found,
                *((b, a, value) for a, b, value in found),
            ]
            seen["pairs"] += 1
            seen["pinned"] += resolved.pinned.any()
    assert min(seen.values()) >= 5


def test_records_that_enter_or_leave_and_the_entries_that_change():
    still = 0
    for workload, resolved, cost in worlds(60, 4):
        each = masks(workload)
        free = ~each[resolved.pinned].any(axis=0)
        path = np.where(free, each.T @ cost, -np.inf)
        want = np.where(each, path, -np.inf).max(axis=1)
        np.testing.assert_allclose(one_sided_costs(cost, resolved, workload), want)
        np.testing.assert_array_equal(counting(resolved.n, workload).dense(), each)
        entering = (each & free).any(axis=1)
        moved = np.zeros(resolved.n, dtype=bool)
        for a, b, _ in pairs(each, resolved, cost):
            moved |= each[:, a] != each[:, b]
        for counted in {workload, workload.tree or workload}:
            found = changed_entries(resolved, counted, "substitute")
            np.testing.assert_array_equal(found, moved)
            found = changed_entries(resolved, counted, "substitute", one_sided=True)
            np.testing.assert_array_equal(found, moved | entering)
            found = changed_entries(resolved, counted, "add-remove")
            np.testing.assert_array_equal(found, entering)
        still += not (moved | resolved.pinned).all()
    assert still >= 10


def test_blocks_of_any_size_find_the_farthest_pair(monkeypatch):
    """Thousands of random costs, equal ones among them, over a few cells at a time."""
    rng = np.random.default_rng(8)
    several = 0
    for workload, _, given in worlds(1500, 9):
        chain, n = workload.chain, len(workload)
        for cost in (given, rng.random(n), rng.integers(0, 3, n).astype(float)):
            monkeypatch.setattr(neighbours, "_BLOCK", int(rng.integers(1, 4)))
            total, a, b = farthest_pair(cost, chain)
            each = np.append(cost, 0.0)[chain]
            apart = chain[:, :, None] != chain[:, None, :]
            every = ((each[:, :, None] + each[:, None, :]) * apart).sum(axis=0)
            assert total == pytest.approx(every.max(), rel=1e-12, abs=1e-12)
            assert every[a, b] == pytest.approx(total, rel=1e-12, abs=1e-12)
            several += chain.shape[1] > 4
    assert several > 2000


def test_a_search_that_stops_early_gives_an_upper_bound(monkeypatch):
    rng = np.random.default_rng(0)
    looser = 0
    for workload, _, cost in worlds(40, 5):
        true, *_ = farthest_pair(cost, workload.chain)
        with monkeypatch.context() as patch:
            patch.setattr(neighbours, "MOST_TRIES", int(rng.integers(0, 3)))
            bound, *_ = farthest_pair(cost, workload.chain)
        assert bound >= true - 1e-12
        looser += bound > true + 1e-9
    assert looser >= 1


def test_equal_costs_of_many_cells_end_the_search_though_their_sums_are_rounded(monkeypatch):
    axes = {"a": tuple("pqrs"), "b": tuple("tuv")}
    areas = cg.Tree.from_paths([(str(i // 50), str(i)) for i in range(500)])
    workload = cg.Workload.of(cg.Table(axes, geography=areas), [(), ("a",), ("b",)])
    level = np.repeat(
        [block.level for block in workload.blocks],
        [block.stop - block.start for block in workload.blocks],
    )
    cost = np.array([0.1, 0.3, 0.7])[level]
    total, first, second = farthest_pair(cost, workload.chain)
    one, other = workload.chain[:, first], workload.chain[:, second]
    apart = one != other
    exact = cost[one[apart]].sum() + cost[other[apart]].sum()
    assert total == pytest.approx(exact, rel=1e-14)
    monkeypatch.setattr(neighbours, "MOST_COMPARED", 0)
    bound, *_ = farthest_pair(cost, workload.chain)
    assert bound == pytest.approx(total, rel=1e-14)
