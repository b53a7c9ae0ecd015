"""Families have the members, weights and bounds of their forest."""

from __future__ import annotations

import numpy as np
import pytest

from congenial.sum_network.families.grouping import families_of, leave_free
from support.bounded_trees import compiled, conditioned, random_tree

pytestmark = pytest.mark.kernels


def grouped(source):
    tree, x = random_tree(source, 40)
    made = compiled(conditioned(tree, 10.0, pinned=False), x)
    return tree, x, families_of(made.forest, made.weights)


def test_families_are_those_of_the_tree():
    source = np.random.default_rng(1)
    for _ in range(300):
        tree, x, found = grouped(source)
        of = found.members
        for f, v in enumerate(of.owner.tolist()):
            members = of.member[of.start[f] : of.start[f + 1]]
            assert sorted(members.tolist()) == np.flatnonzero(tree.parents == v).tolist()
            assert found.below[v] == f and of.root[f] == (tree.parents[v] < 0)
            assert found.size[f] == members.size
            leaves = members[tree.is_leaf[members]]
            assert of.of_leaves[f] == (leaves.size == members.size)
            assert (of.lone[leaves] != of.of_leaves[f]).all()
            assert found.reach[f] == x[leaves].max(initial=0)
        # variables are the noise, which is at least minus the count
        assert (of.gap == np.where(tree.is_leaf, x, 0)).all() and (of.least == -of.gap).all()
        np.testing.assert_allclose(found.inverse, 0.1)


def test_a_part_without_what_is_above_its_root():
    source, seen = np.random.default_rng(2), 0
    for _ in range(300):
        tree, _, whole = grouped(source)
        below_root = np.flatnonzero((whole.below >= 0) & (tree.parents == 0))
        for v in below_root[:1].tolist():
            f, seen = whole.below[v], seen + 1
            free = leave_free(whole, v)
            assert not free.members.root[f] and free.above[f] == f
            every = np.append(free.bottom_up, whole.above[f])
            assert (np.sort(every) == np.arange(free.members.owner.size)).all()
            assert not free.members.lone[tree.parents == 0].any()
            assert whole.members.root[whole.below[0]] and whole.above[f] == whole.below[0]
    assert seen > 100
