"""Draws by families where noise is wide and counts are many, and by all merges elsewhere."""

from __future__ import annotations

import numpy as np
import pytest

import congenial as cg
from congenial.conditioning.laws.draw_routes import fill_draws
from congenial.sum_network import families
from support.bounded_trees import compiled, conditioned

pytestmark = pytest.mark.kernels


def test_wide_noise_over_many_counts_is_drawn_by_families():
    tree = cg.Tree.from_parents([-1, *[0] * 50, *np.repeat(np.arange(1, 51), 600)])
    x = tree.roll_up(np.random.default_rng(2).poisson(1.0, 30_000))
    for scale, by_families in ((1.0, False), (10.0, True)):
        made = compiled(conditioned(tree, scale), x)
        found = fill_draws(made)
        assert isinstance(found, families.FamilySums) == by_families
        said = conditioned(tree, scale).explain()
        assert ("one table for each sum" in said) == by_families
