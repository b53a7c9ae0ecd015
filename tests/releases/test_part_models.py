"""The small tree from which the claims of a release in parts follow, and the facts of parts."""

from __future__ import annotations

import numpy as np
import pytest

import congenial as cg
from congenial.accounting.guarantee import imaged_guarantee
from congenial.errors import PlanError
from congenial.invariants.written import resolve_invariant
from congenial.plan.cut import cut_at
from congenial.plan.plan import parse_plan
from congenial.releases.accuracy import UNKNOWN
from congenial.releases.part_models import (
    facts_of,
    found_leaf,
    levels_of_all,
    named_below,
    stand_in,
)
from congenial.releases.specification import RecordMoves

TOP = cg.Tree.from_paths(["all/a", "all/b", "all/c"])


def cut_of(levels, at):
    return cut_at(
        parse_plan(
            f"""
            data = {{ source = "rows.csv" }}
            hierarchy = {{ root = "all", levels = {levels}, domain = "data" }}
            privacy = {{ neighbours = "add-remove", epsilon = 1.0 }}
            invariants = {{ nonnegative = true }}
            method = {{ name = "topdown" }}
            """
        ),
        at,
    )


def test_every_cut_node_has_three_children_on_each_level():
    tree = stand_in(TOP, cut_of(["x", "y", "z"], "x"))
    assert np.bincount(tree.level).tolist() == [1, 3, 9, 27]
    assert [tree.path(v) for v in (1, 2, 3, 13)] == [
        ("all", "a"),
        ("all", "a", "0"),
        ("all", "a", "0", "0"),
        ("all", "a", "2", "2"),
    ]
    assert set(np.bincount(tree.parents[1:])[~tree.is_leaf[: tree.parents.max() + 1]]) == {3}


def test_so_many_levels_below_the_cut_are_refused():
    with pytest.raises(PlanError, match=r"with 40 levels below it; cut at a deeper level"):
        stand_in(TOP, cut_of([f"l{i}" for i in range(41)], "l0"))


def test_a_leaf_is_found_by_the_numbers_of_its_stand_in():
    tree = cg.Tree.from_paths(["a/p/1", "a/p/2", "a/q/1", "a/r/1", "a/r/2"])
    assert found_leaf(tree, ["0", "1"]) == ("p", "2")
    assert found_leaf(tree, ["2", "0"]) == ("r", "1")
    assert found_leaf(tree, ["2", "2"]) == ("r", "2")  # there is no third one


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("neighbours", ["substitute", "add-remove"])
@pytest.mark.parametrize("law", [cg.DiscreteLaplace, cg.DiscreteGaussian])
def test_no_larger_tree_loses_more_than_the_stand_in(law, neighbours, seed):
    rng = np.random.default_rng(seed)
    for _ in range(25):
        paths = [
            f"all/{a}/{b}/{c}"
            for a in "abc"
            for b in range(rng.integers(1, 6))
            for c in range(rng.integers(1, 6))
        ]
        scales, pins = rng.uniform(0.5, 5.0, size=4), rng.random() < 0.5
        losses = []
        for tree in (cg.Tree.from_paths(paths), stand_in(TOP, cut_of(["x", "y", "z"], "x"))):
            invariant = cg.consistent(tree) & cg.nonnegative()
            if pins and neighbours == "substitute":
                invariant = invariant & cg.exactly([0])
            mechanism = cg.Additive(law(scales[tree.level]), tree)
            resolved = resolve_invariant(invariant, len(tree), tree)
            found = imaged_guarantee(mechanism, resolved, neighbours, sampler_error=0.0)
            losses.append(found.epsilon)
        # the same sums in the same order, so that rounding is the same
        assert losses[0] <= losses[1]
        assert losses[1] == pytest.approx(losses[0], rel=1e-12)


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
    assert [one.nodes for one in facts] == 3 * [(0, 0, 2)]
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
