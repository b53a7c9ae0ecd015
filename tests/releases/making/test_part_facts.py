"""Facts about parts, and those of the whole release."""

from __future__ import annotations

import numpy as np

import congenial as cg
from congenial.plan.plan import parse_plan
from congenial.releases.accuracy import UNKNOWN
from congenial.releases.making.part_facts import facts_of, levels_of_all, named_below
from congenial.releases.specification import RecordMoves

PLAN = parse_plan(
    """
    data = { source = "rows.csv" }
    hierarchy = { root = "all", levels = ["x", "y"], domain = "data" }
    privacy = { neighbours = "substitute", epsilon = 1.0 }
    accuracy = { required = { y = 5.0 } }
    """
)


def test_the_largest_margin_of_all_parts_is_stated():
    tree = cg.Tree.from_paths(["a/1", "a/2"])
    facts = [
        facts_of(tree, tree.level + 1, 1, np.array([9, *below]), {})
        for below in ([3, 4], [6, 5], [2, UNKNOWN])
    ]
    assert [one.nodes.tolist() for one in facts] == 3 * [[0, 0, 2]]
    assert [one.inner for one in facts] == [1, 1, 1]
    top = np.array([0, 1, 1, 1]), np.array([0, 7, 8, 7])
    found = levels_of_all(PLAN, *top, facts[:2])
    assert [(one.level, one.margin, one.met) for one in found] == [
        ("root", 0, None),
        ("x", 8, None),
        ("y", 6, False),
    ]
    assert levels_of_all(PLAN, *top, facts)[2].margin is None


def test_leaves_are_named_below_their_own_cut_node_only():
    forest = cg.Tree.from_parents([-1, 0, 0, -1, 3], ["a", "p", "q", "b", "r"])
    worst = RecordMoves(("all", "a", "1"), ("all", "b", "2"), 4, 1.0, 1.0)
    assert named_below(forest, 0, ("all", "a"), worst) == {("all", "a", "1"): ("all", "a", "q")}
    assert named_below(forest, 3, ("all", "b"), worst) == {("all", "b", "2"): ("all", "b", "r")}
