"""A part whose tables are too large is drawn in parts itself, from the same law."""

from __future__ import annotations

import numpy as np
import pytest

import congenial as cg
from congenial.conditioning.parted import condition_by_parts
from congenial.sum_network.joined import part_messages
from support.bounded_trees import p_values
from support.goodness_of_fit import FAILS
from support.parted_trees import biased_parted, random_parted


@pytest.fixture
def divided(monkeypatch):
    """Let parts hold almost nothing at once; return the numbers of variables of those divided."""
    sizes, joined = [], part_messages._joined

    def counted(part, outside, below):
        filled = joined(part, outside, below)
        sizes.append(part.forest.n)
        return filled

    monkeypatch.setattr(part_messages, "_ROOM", 20)
    monkeypatch.setattr(part_messages, "_joined", counted)
    return sizes


@pytest.mark.parametrize(
    ("make", "room", "seeds"),
    [(lambda seed: random_parted(seed, 60), 20, 100), (biased_parted, 300, 40)],
)
def test_the_normalizer_is_that_of_the_whole(make, room, seeds, divided, monkeypatch):
    monkeypatch.setattr(part_messages, "_ROOM", room)
    for seed in range(seeds):
        _, x, whole, parted = make(seed)
        joined = parted.sums(x).joined
        assert joined.error <= parted.error_bound
        got = joined.tables.log_sum() + whole.log_mode
        # truncation takes at most the stated error from the sum
        assert abs(got - whole.log_normalizer(x)) < joined.error + 1e-11, seed
    assert len(divided) > 2 * seeds


def test_draws_of_parts_within_parts_fit_every_marginal_law(divided):
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


def test_a_part_that_cannot_be_divided_is_filled_at_once(divided):
    tree = cg.Tree.from_parents([-1, 0, 0, *[1] * 9, *[2] * 9])
    noisy = cg.Additive(cg.DiscreteLaplace(2.0), tree)
    parted = condition_by_parts(noisy, cg.consistent(tree) & cg.nonnegative(), 1)
    x = tree.roll_up(np.arange(18) % 4)
    assert tree.is_consistent(parted.sample(x, 3, cg.seeded(1)))
    assert not divided
