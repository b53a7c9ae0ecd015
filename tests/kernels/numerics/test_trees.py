"""Sums over trees, against loops over paths."""

from __future__ import annotations

import numpy as np
import pytest

from congenial.kernels.numerics import trees
from congenial.kernels.numerics.trees import read_only


def random_parents(rng, n):
    """Return parents, each before its children and those of one parent together."""
    parents = np.sort(rng.integers(-1, np.arange(n)))
    return np.where(np.arange(n) > parents, parents, -1).astype(np.int64)


@pytest.mark.parametrize("seed", range(20))
def test_sums_go_up_every_path(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 40))
    parents = random_parents(rng, n)
    own = rng.integers(-9, 9, n)
    wanted = own.copy()
    for v in range(n):
        above = parents[v]
        while above >= 0:
            wanted[above] += own[v]
            above = parents[above]
    for order in (np.empty(0, dtype=np.int64), np.arange(n)[::-1].copy()):
        total = own.copy()
        trees.add_up(read_only(parents), read_only(order), total)
        assert total.tolist() == wanted.tolist()


@pytest.mark.parametrize("seed", range(20))
def test_rows_that_add_up_are_recognised(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 30))
    parents = random_parents(rng, n)
    inner = np.unique(parents[parents >= 0])
    rows = rng.integers(0, 3, (30, n))
    for row in rows[::2]:
        for v in inner[::-1]:
            row[v] = row[parents == v].sum()
    wanted = [all(row[v] == row[parents == v].sum() for v in inner) for row in rows]
    same, work = np.zeros(30, dtype=np.bool_), np.zeros(n, dtype=np.int64)
    trees.add_up_rows(read_only(parents), read_only(inner), read_only(rows), work, same)
    assert same.tolist() == wanted


@pytest.mark.parametrize("seed", range(20))
def test_a_bound_is_implied_where_the_parts_reach_it(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 30))
    parents = random_parents(rng, n)
    is_leaf = ~np.isin(np.arange(n), parents)
    lo = np.where(rng.random(n) < 0.3, -np.inf, rng.integers(-3, 4, n) - 0.5)
    fixed = rng.random(n) < 0.2
    implied = np.zeros(n, dtype=np.bool_)
    arrays = (read_only(a) for a in (parents, is_leaf, fixed, lo))
    trees.mark_implied(*arrays, np.zeros(n), implied)
    for v in range(n):
        parts = [-np.inf if fixed[c] else np.ceil(lo[c]) for c in np.flatnonzero(parents == v)]
        bounded = not (is_leaf[v] or fixed[v]) and np.isfinite(lo[v])
        assert implied[v] == (bounded and sum(parts) >= np.ceil(lo[v]))


def test_numbers_of_parents():
    parents = np.array([-1, 0, 0, 1, 1, 2, -1])
    number, above = np.arange(10, 17, dtype=np.int32), np.empty(7, dtype=np.int32)
    trees.numbers_above(read_only(parents), number, above)
    assert above.tolist() == [-1, 10, 10, 11, 11, 12, -1]


def test_a_view_cannot_be_written():
    array = np.arange(6)[::2]
    view = read_only(array)
    assert view.flags.c_contiguous
    with pytest.raises(ValueError, match="read-only"):
        view[0] = 1
    array[0] = 5  # the array itself can


@pytest.mark.parametrize("seed", range(20))
def test_climbs_and_pairs_are_the_costliest_of_all_pairs_of_leaves(seed):
    rng = np.random.default_rng(seed)
    for _ in range(100):
        n = int(rng.integers(1, 14))
        parents = random_parents(rng, n)
        pinned = rng.random(n) < rng.choice([0.0, 0.2])
        cost = rng.choice([0.0, 0.5, 1.0, 2.0, 1 / 3], n)
        is_leaf = ~np.isin(np.arange(n), parents)
        up = {v: [v] for v in range(n)}
        for path in up.values():
            while parents[path[-1]] >= 0:
                path.append(int(parents[path[-1]]))
        reach, through = np.full(n, -np.inf), np.full(n, -np.inf)
        paths = [up[v] for v in np.flatnonzero(is_leaf)]
        for path in paths:
            for at, v in enumerate(path):
                if not pinned[path[: at + 1]].any():
                    reach[v] = max(reach[v], cost[path[: at + 1]].sum())
            for other in paths:
                moved = sorted(set(path) ^ set(other))
                if other is not path and not pinned[moved].any():
                    through[moved] = np.maximum(through[moved], cost[moved].sum())
        for order in (np.empty(0, dtype=np.int64), np.arange(n)[::-1].copy()):
            shape = read_only(parents), read_only(order)
            found = np.full(n + 1, -np.inf), *np.full((3, n + 1), -1)
            trees.climb(*shape, read_only(is_leaf), read_only(pinned), read_only(cost), *found)
            assert np.allclose(found[0][:n], reach, rtol=1e-14)
            rest = np.empty(n)
            ends = found[0], *found[2:]
            trees.complete(*shape, read_only(pinned), read_only(cost), *ends, rest)
            assert np.allclose(found[0][:n] + rest, through, rtol=1e-14)
            for v in np.flatnonzero(np.isfinite(reach)):
                path = up[found[1][v]]
                assert cost[path[: path.index(v) + 1]].sum() == pytest.approx(reach[v], rel=1e-14)
