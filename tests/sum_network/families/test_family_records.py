"""A record of tables knows its variables."""

from __future__ import annotations

import numpy as np
import pytest

from support.bounded_trees import conditioned, filled, random_tree

pytestmark = pytest.mark.kernels


def test_tables_have_a_place_for_each_variable_and_each_fixed_sum():
    tree, x = random_tree(np.random.default_rng(1), 12)
    sums = filled(conditioned(tree, 2.0), x)
    assert sums.n == sums.families.gap.size == len(tree)
    room = sums.n + sums.order.size
    assert all(column.shape == (room,) for column in (*sums.tables[:3], *sums.doubt))
    assert sums.tables.tails.shape == (4, room)
