"""The tree from which the claims of a release in parts follow."""

from __future__ import annotations

import numpy as np
import pytest

import congenial as cg
from congenial.accounting.guarantee import imaged_guarantee
from congenial.errors import PlanError
from congenial.invariants.written import resolve_invariant
from congenial.plan.plan import parse_plan
from congenial.releases.making.cut import cut_at
from congenial.releases.making.stand_in import found_leaf, stand_in

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
