"""Merged trees have the tables of whole ones."""

from __future__ import annotations

import numpy as np
import pytest

import congenial as cg
from congenial.sum_network.families import family_sums
from congenial.sum_network.families.equal_subtrees import Merged, merge_equal, spread
from congenial.sum_network.families.grouping import families_of
from support.bounded_trees import compiled, conditioned

pytestmark = pytest.mark.kernels


def sparse_tree(source):
    """Return a tree of blocks with cells, and counts of which most are 0."""
    fans = source.integers(2, 5, 3)
    parents, level = [-1], [0]
    for fan in fans:
        level = [len(parents) + i for i in range(len(level) * fan)]
        parents += [v for v in range(level[0] - len(level) // fan, level[0]) for _ in range(fan)]
    tree = cg.Tree.from_parents(parents)
    return tree, tree.roll_up(source.poisson(0.3, tree.leaves.size))


def alone(forest, weights):
    """Return a forest in which nothing is merged, as `merge_equal` does."""
    n, m = forest.n, forest.m
    one = np.ones(n, dtype=np.int64), np.ones(m, dtype=np.int64)
    every = np.arange(n, dtype=np.int32), np.arange(m, dtype=np.int32)
    return Merged(families_of(forest, weights), forest, weights, *one, *every)


def test_tables_of_a_merged_tree_are_those_of_the_whole():
    source, fewer, whole = np.random.default_rng(2), 0, 0
    for _ in range(60):
        tree, x = sparse_tree(source)
        made = compiled(conditioned(tree, float(source.choice([4.0, 12.0, 40.0]))), x)
        args = made.forest, made.weights
        by, apart = merge_equal(*args), alone(*args)
        found, wanted = family_sums._Filling(by).filled(), family_sums._Filling(apart).filled()
        assert found is not None and wanted is not None
        found = spread(found, by)
        assert (found.order == wanted.order).all()
        for one, other in zip(found.families, wanted.families, strict=True):
            assert (one == other).all()
        for v in np.flatnonzero(~tree.is_leaf).tolist():
            assert found.tables.values(v) == wanted.tables.values(v)
            assert (found.tables.entries(v) == wanted.tables.entries(v)).all()
        assert (found.leaves.gaps == wanted.leaves.gaps).all()
        assert (found.retilt == wanted.retilt).all()
        fewer, whole = fewer + by.forest.n, whole + made.forest.n
    assert fewer < 0.8 * whole


def test_every_variable_and_sum_is_counted_once():
    source = np.random.default_rng(3)
    for _ in range(200):
        tree, x = sparse_tree(source)
        made = compiled(conditioned(tree, 10.0), x)
        by = merge_equal(made.forest, made.weights)
        assert by.families.sum() == made.forest.m
        inside = by.forest.above >= 0
        stands = by.times[inside] * by.families[by.forest.above[inside]]
        assert stands.sum() == (made.forest.above >= 0).sum()
        kept = by.variable >= 0
        assert (made.weights.code[kept] == by.weights.code[by.variable[kept]]).all()


def test_settled_tilts_are_those_of_the_whole():
    source = np.random.default_rng(4)
    for _ in range(40):
        tree, x = sparse_tree(source)
        made = compiled(conditioned(tree, 10.0), x)
        found = family_sums.settled(made.forest, made.weights)
        wanted = family_sums._Filling(alone(made.forest, made.weights), near=False)
        tilt = wanted.rounds.rounded(wanted.settled.tilt, wanted.reach)
        assert (found.tilt == family_sums._on_grid(tilt)).all()
        np.testing.assert_allclose(found.of_sum, wanted.settled.of_sum, rtol=1e-12)
        inner = ~tree.is_leaf
        moments = np.array(found.of_variable)[:, inner]
        own = np.array(wanted.settled.of_variable)[:, inner]
        np.testing.assert_allclose(moments, own, rtol=1e-12)
