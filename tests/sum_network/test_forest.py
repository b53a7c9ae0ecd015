"""Sums arranged as a forest, against the rows and the tree that they came from."""

from __future__ import annotations

import numpy as np
import pytest

from congenial.domain.tree import Tree
from congenial.errors import UnsupportedError
from congenial.sum_network.forest import SumForest, of_rows, of_tree
from support.seeds import for_each_seed


def dense(forest):
    """The forest's sums as rows over the values themselves, not over oriented ones."""
    rows = np.zeros((forest.m, forest.n), dtype=int)
    for k in range(forest.m):
        rows[k, forest.above == k] = 1
        if forest.owner[k] >= 0:
            rows[k, forest.owner[k]] -= forest.sign[k]
    return rows * forest.orientation


def assert_ordered(forest):
    place = {int(v): i for i, v in enumerate(forest.order)}
    assert sorted(place) == list(range(forest.n + forest.m))
    for v in range(forest.n):
        if forest.above[v] >= 0:
            assert place[v] < place[forest.n + int(forest.above[v])]
    for k in range(forest.m):
        if forest.owner[k] >= 0:
            assert place[forest.n + k] < place[int(forest.owner[k])]
            above = forest.above[forest.owner[k]]
            assert forest.depth[k] == (forest.depth[above] + 1 if above >= 0 else 0)
    owners = set(forest.owner[forest.owner >= 0].tolist())
    kept = [v for v in forest.order.tolist() if v >= forest.n or v in owners]
    assert forest.path.tolist() == kept


def random_rows(rng, n, m):
    """Rows of which each shares at most one entry with those before."""
    fresh, seen, rows = rng.permutation(n).tolist(), [], []
    for _ in range(m):
        part = [fresh.pop() for _ in range(int(rng.integers(1, 4))) if fresh]
        if seen and rng.random() < 0.7:
            part.append(int(rng.choice(seen)))
        if part:
            rows.append((np.array(rng.permutation(part)), rng.choice([-1, 1], len(part))))
            seen += [v for v in part if v not in seen]
    return [rows[k] for k in rng.permutation(len(rows))]


@for_each_seed(200)
def test_rows_keep_their_solutions(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 16))
    rows = random_rows(rng, n, int(rng.integers(0, 7)))
    forest = of_rows(rows, n)
    assert_ordered(forest)
    given = np.zeros((len(rows), n), dtype=int)
    for k, (indices, signs) in enumerate(rows):
        given[k, indices] = signs
    # each row up to its sign
    got = dense(forest)
    assert all((a == b).all() or (a == -b).all() for a, b in zip(got, given, strict=True))


@for_each_seed(100)
def test_each_inner_node_of_a_tree_owns_the_sum_of_its_children(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 20))
    order = rng.permutation(n)
    parents = np.full(n, -1)
    for v in range(1, n):
        parents[order[v]] = order[rng.integers(0, v)] if rng.random() < 0.9 else -1
    tree = Tree.from_parents(parents.tolist())
    forest = of_tree(tree)
    assert_ordered(forest)
    inner = [v for v in range(n) if (parents == v).any()]
    wanted = np.array([(parents == v).astype(int) for v in inner]).reshape(-1, n)
    wanted[range(len(inner)), inner] -= 1
    assert (dense(forest) == wanted).all()
    assert not forest.turned


def test_a_cycle_is_refused_with_an_entry_on_it():
    pair = np.array([0, 1]), np.array([1, 1])
    with pytest.raises(UnsupportedError, match=r"cycle through entry [01];"):
        of_rows([pair, (np.array([1, 0]), np.array([1, -1]))], 3)
    ring = [(np.array([v, (v + 1) % 3]), np.array([1, 1])) for v in range(3)]
    with pytest.raises(UnsupportedError, match="cycle"):
        of_rows(ring, 3)


def test_variables_without_sums_stand_alone():
    forest = SumForest.without_sums(3)
    assert (forest.n, forest.m, forest.above.tolist()) == (3, 0, [-1, -1, -1])


@for_each_seed(50)
def test_a_repeated_forest_has_the_sums_of_each_copy(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 9))
    forest = of_rows(random_rows(rng, n, int(rng.integers(0, 5))), n)
    thrice = forest.repeated(3)
    assert_ordered(thrice)
    np.testing.assert_array_equal(dense(thrice), np.kron(np.eye(3, dtype=int), dense(forest)))
