"""A part whose tables are too large is drawn in parts itself, from the same law."""

from __future__ import annotations

import numpy as np
import pytest

import congenial as cg
from congenial.conditioning.parted import condition_by_parts
from congenial.sum_network.joined import part_messages
from support.bounded_trees import p_values
from support.goodness_of_fit import FAILS
from support.narrow_windows import narrow_windows
from support.parted_trees import random_parted


@pytest.fixture
def divided(monkeypatch):
    """Let parts hold almost nothing at once; return the numbers of variables of those divided."""
    sizes, joined = [], part_messages._joined

    def counted(part, outside, below):
        filled = joined(part, outside, below)
        sizes.append(part.forest.n)
        return filled

    monkeypatch.setattr(part_messages, "_ROOM", 20)
    # tables of families are never divided
    monkeypatch.setattr(part_messages, "fill_by_families", lambda *_: None)
    monkeypatch.setattr(part_messages, "_joined", counted)
    return sizes


@pytest.mark.parametrize("narrow", [False, True])
def test_draws_of_parts_within_parts_fit_every_marginal_law(divided, narrow, monkeypatch):
    if narrow:
        narrow_windows(monkeypatch, 0.3)
    parents = [-1, 0, 0, *[1] * 2, *[2] * 3, *np.repeat(np.arange(3, 8), 2)]
    parents += np.repeat(np.arange(8, 18), 4).tolist()
    tree = cg.Tree.from_parents(parents)
    x = tree.roll_up(np.arange(tree.leaves.size) % 4)
    invariant = cg.consistent(tree) & cg.nonnegative() & cg.exactly([0])
    noisy = cg.Additive(cg.DiscreteLaplace(3.0), tree)
    drawn = condition_by_parts(noisy, invariant, 1).sample(x, 5_000, cg.seeded(1))
    # parts below the two nodes of the cut, and some below their children
    assert len(set(divided)) > 2
    assert tree.is_consistent(drawn)
    assert drawn.min() >= 0
    whole = cg.condition(noisy, invariant, "exact")
    assert min(p_values(drawn, whole, x)) > FAILS
    wrong = cg.condition(cg.Additive(cg.DiscreteLaplace(3.9), tree), invariant, "exact")
    assert min(p_values(drawn, wrong, x)) < FAILS


def test_draws_of_random_trees_in_parts_of_parts_obey_the_invariant(divided):
    for seed in range(60):
        tree, x, whole, parted = random_parted(seed, 60)
        drawn = parted.sample(x, 5, cg.seeded(seed))
        assert tree.is_consistent(drawn)
        assert (drawn >= whole.resolved.lo).all()
    assert len(divided) > 120


def test_a_part_that_cannot_be_divided_is_filled_at_once(divided):
    tree = cg.Tree.from_parents([-1, 0, 0, *[1] * 9, *[2] * 9])
    noisy = cg.Additive(cg.DiscreteLaplace(2.0), tree)
    parted = condition_by_parts(noisy, cg.consistent(tree) & cg.nonnegative(), 1)
    x = tree.roll_up(np.arange(18) % 4)
    assert tree.is_consistent(parted.sample(x, 3, cg.seeded(1)))
    assert not divided
