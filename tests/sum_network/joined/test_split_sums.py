"""One part at a time is filled, and a part that changes between message and draw is not drawn."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import congenial as cg
from congenial.conditioning.parted import condition_by_parts
from congenial.errors import NumericalError
from congenial.sum_network.joined import SplitSums, split_sums
from support.parted_trees import random_parted


def test_one_part_at_a_time_is_filled(monkeypatch):
    _, x, _, parted = random_parted(2, 40)
    whole = split_sums.PartSums
    sizes = []

    def seen(forest, weights, share):
        sizes.append(forest.n)
        return whole(forest, weights, share)

    monkeypatch.setattr(split_sums, "PartSums", seen)
    parted.sample(x, rng=cg.seeded(1))
    own = [len(part.tree) for part in parted.split.parts()]
    times, rest = divmod(len(sizes), len(own))
    # for their places, then for their messages, and once for the draws
    assert rest == 0
    assert times > 2
    assert sizes == own * times


def test_a_part_whose_counts_change_is_not_drawn():
    tree = cg.Tree.from_parents([-1, 0, 0, 1, 1])
    noisy = cg.Additive(cg.DiscreteLaplace(1.0), tree)
    parted = condition_by_parts(noisy, cg.consistent(tree) & cg.nonnegative(), 1)
    x = np.array([3, 2, 1, 1, 1])
    before, after = parted.sums(x), parted.sums(x - [0, 0, 0, 1, -1])
    assert before.draw(1, cg.seeded(1)).shape == (1, 5)
    changed = replace(before, weights_of=after.weights_of)
    changed.__dict__["joined"] = before.joined
    with pytest.raises(NumericalError, match="changed"):
        changed.draw(1, cg.seeded(1))


def test_all_parts_together_aim_at_the_probability_of_the_whole():
    _, x, _, parted = random_parted(2, 40)
    sums, count = parted.sums(x), parted.split.roots.size
    assert isinstance(sums, SplitSums)
    assert sum(sums.part(number).share for number in range(count)) == pytest.approx(1.0)
