"""A record of tables knows its variables."""

from __future__ import annotations

import numpy as np
import pytest

from support.bounded_trees import conditioned, filled, random_tree

pytestmark = pytest.mark.kernels


def test_variables_and_fixed_sums_have_tables():
    tree, x = random_tree(np.random.default_rng(1), 12)
    sums = filled(conditioned(tree, 2.0), x)
    assert sums.n == sums.families.gap.size == len(tree)
    room = sums.n + sums.order.size
    tables, many = sums.tables, sums.tables.place.size
    assert tables.of.shape == (room,)
    assert all(column.shape == (many,) for column in (tables.first, tables.size, *sums.doubt))
    assert tables.tails.shape == (4, many)
    for f, v in enumerate(sums.families.owner):
        held = int(v) if v >= 0 else sums.n + f
        entries, values = tables.entries(held), tables.values(held)
        assert 0 <= tables.of[held] < many
        assert entries.size == len(values) == tables.size[tables.of[held]]
        assert entries.max() == tables.largest[tables.of[held]]
        assert entries.min() >= 1
