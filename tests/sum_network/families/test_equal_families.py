"""Families of leaves are shared exactly where they are equal."""

from __future__ import annotations

import numpy as np
import pytest

import congenial as cg
from congenial.sum_network.families.equal_families import first_equal
from support.bounded_trees import conditioned, filled

pytestmark = pytest.mark.kernels


def random_families(source):
    """Return families with few different lists and keys, some of which cannot be equal."""
    m = int(source.integers(1, 30))
    length = source.integers(1, 4, m)
    begins = np.append(0, np.cumsum(length))
    lists = tuple(source.integers(0, 3, begins[-1]) for _ in range(2))
    keys = source.integers(-1, 2, m), np.zeros(m, dtype=np.int64)
    number = np.flatnonzero(source.random(m) < 0.8)
    return number, keys, begins, lists, m


def first_by_search(number, keys, begins, lists, m):
    seen, out = {}, np.arange(m)
    for f in number.tolist():
        own = tuple(tuple(one[begins[f] : begins[f + 1]].tolist()) for one in lists)
        out[f] = seen.setdefault((*(int(key[f]) for key in keys), own), f)
    return out


def test_the_first_equal_family_is_that_of_a_search():
    source, shared = np.random.default_rng(1), 0
    for _ in range(2000):
        families = random_families(source)
        found = first_equal(*families)
        assert (found == first_by_search(*families)).all()
        shared += (found != np.arange(found.size)).sum()
    assert shared > 500


def test_equal_families_have_one_table():
    source, shared = np.random.default_rng(3), 0
    for _ in range(20):
        tree = cg.Tree.from_parents([-1, 0, 0, *np.repeat([1, 2], 6), *np.repeat(range(3, 15), 3)])
        x = tree.roll_up(source.poisson(0.2, 36))
        sums = filled(conditioned(tree, 5.0), x)
        of, tables, seen = sums.families, sums.tables, {}
        for f in np.flatnonzero(of.of_leaves):
            v = of.owner[f]
            cells = tuple(np.sort(of.gap[of.member[of.start[f] : of.start[f + 1]]]).tolist())
            u, g = seen.setdefault((int(tree.parents[v]), cells), (v, f))
            assert tables.of[u] == tables.of[v]
            assert sums.leaves.tilt[f] == sums.leaves.tilt[g]
            shared += u != v
    assert shared > 50
