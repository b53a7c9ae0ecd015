"""Rows of a part: its tree, and measurements only where they are published."""

from __future__ import annotations

import numpy as np
import pytest

import congenial as cg
from congenial.releases.making.part_draws import drawn_rows, forest_below
from congenial.releases.part_models import below_model
from support.city import make_city
from support.parts import PARTED


def test_the_tree_of_a_part_begins_at_its_cut_node():
    domain = cg.Tree.from_paths(["all/a/x/1", "all/a/x/2", "all/a/y/3"])
    tree = forest_below(domain, 1)
    assert list(tree.names) == ["a", "x", "1", "2", "y", "3"]
    assert tree.parents.tolist() == [-1, 0, 1, 1, 0, 4]


@pytest.mark.parametrize("published", [True, False])
def test_measurements_are_rows_only_where_they_are_published(published, tmp_path):
    make_city(tmp_path, **(PARTED if published else {"method": PARTED["method"]}))
    plan = cg.read_plan(tmp_path / "plan.toml")
    tree = cg.Tree.from_paths(["a/1", "a/2"])
    model = below_model(plan, np.array([np.inf, 2.0]), tree, tree.roots)
    drawn = drawn_rows(model, np.array([5, 2, 3]), np.array([5, 9, 9]), np.array([5, 3, 2]))
    assert set(drawn.columns(truth=False)) == {"value", "lower", "upper"}
    assert set(drawn.columns(truth=True)) == {"value", "lower", "upper", "truth"}
    if published:
        assert set(drawn.measurements()) >= {"measurement", "scale"}
    else:
        with pytest.raises(AssertionError, match="not published"):
            drawn.measurements()
