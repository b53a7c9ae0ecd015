"""The tree of least absolute error to draws, against all small trees."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import congenial as cg
from congenial.inference import point_tables
from congenial.inference.point_tables import chances_of_draws, least_absolute, level_weights


@pytest.mark.parametrize("seed", range(12))
def test_no_tree_of_integers_is_closer_to_the_draws(seed):
    rng = np.random.default_rng(seed)
    tree = cg.Tree.from_parents([-1, 0, 0, 1, 1])
    draws = rng.integers(-1, 4, (7, 5))  # they need not add up
    low = np.where(tree.is_leaf, 0.0, -np.inf)
    limits = low, np.full(5, np.inf)
    start = tree.roll_up(rng.integers(0, 9, 3))
    found = least_absolute(tree, chances_of_draws(draws), start, limits, cg.seeded(seed))
    assert (found == tree.roll_up(found[tree.leaves])).all()
    assert (found[tree.leaves] >= 0).all()

    def error(values):
        return np.abs(draws - values).sum()

    best = min(error(tree.roll_up(np.array(leaves))) for leaves in product(range(5), repeat=3))
    assert error(found) == best


def test_levels_weigh_the_same_but_for_counts_published_exactly():
    tree = cg.Tree.from_parents([-1, 0, 0, 1, 1, 1, 1, 1])
    pinned = np.arange(8) == 7
    assert level_weights(tree, pinned)[1:].tolist() == [2.0, 2.0, 1.0, 1.0, 1.0, 1.0, 1.0]


def test_a_table_beyond_the_limit_is_refused_with_the_limit(monkeypatch):
    monkeypatch.setattr(point_tables, "_MEMORY_LIMIT", 3)
    tree = cg.Tree.from_parents([-1, 0, 0])
    limits = np.zeros(3), np.full(3, np.inf)
    chances = chances_of_draws(np.array([[5, 2, 3]]))
    with pytest.raises(cg.errors.UnsupportedError, match=r"the limit is 0\.0 GiB; use loss='l2'"):
        least_absolute(tree, chances, np.array([5, 2, 3]), limits, cg.seeded(1))
