"""The split found for a goal: no other split has a smaller weighted sum of scales."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

import congenial as cg
from congenial.accounting.calibration import split
from congenial.accounting.calibration.level_units import level_units
from congenial.accounting.calibration.scales import goal_split, level_scales
from congenial.accounting.calibration.split import UNITS, pairs_by_share
from congenial.accounting.calibration.target import Target
from congenial.accounting.guarantee import (
    conditioned_guarantee,
    conditioned_pairs,
    imaged_guarantee,
)
from congenial.errors import ArgumentError, EmptyNeighbourhoodError, PrivacyError
from congenial.invariants.written import resolve_invariant


def regular(*fans):
    """Return a tree whose nodes have as many children as given, level by level."""
    parents, last = [-1], [0]
    for fan in fans:
        new = range(len(parents), len(parents) + fan * len(last))
        parents += [above for above in last for _ in range(fan)]
        last = list(new)
    return cg.Tree.from_parents(parents)


TWO = regular(3, 2)
THREE = regular(2, 2, 3)
RAGGED = cg.Tree.from_parents([-1, 0, 0, 2, 2, 4, 4])
FREE = {tree: cg.consistent(tree) & cg.nonnegative() for tree in (TWO, THREE, RAGGED)}
CAPS = cg.bounds(hi=np.where(np.arange(len(THREE)) > 0, 50.0, np.inf))
# What is counted, the relation, and the weights.
CASES = {
    "two levels": (TWO, FREE[TWO] & cg.exactly("root"), "substitute", {1: 1.0, 2: 1.0}),
    "coarse": (TWO, FREE[TWO] & cg.exactly("root"), "substitute", {1: 100.0, 2: 1.0}),
    "fine": (TWO, FREE[TWO] & cg.exactly("root"), "substitute", {1: 0.01, 2: 1.0}),
    "one branch apart": (TWO, FREE[TWO] & cg.exactly([1]), "substitute", {1: 2.0, 2: 3.0}),
    "joining": (TWO, FREE[TWO], "add-remove", {0: 5.0, 1: 1.0, 2: 1.0}),
    "three levels": (THREE, FREE[THREE], "substitute", {1: 9.0, 2: 3.0, 3: 1.0}),
    "no middle": (THREE, FREE[THREE], "substitute", {1: 2.0, 3: 1.0}),
    "leaves unmeasured": (THREE, FREE[THREE], "substitute", {1: 2.0, 2: 1.0, 3: 0.0}),
    "caps everywhere": (THREE, FREE[THREE] & CAPS, "substitute", {1: 1.0, 2: 2.0, 3: 5.0}),
    "ragged": (RAGGED, FREE[RAGGED], "substitute", {1: 1.0, 2: 1.0, 3: 1.0}),
    "crossing": (
        TWO,
        FREE[TWO] & cg.linear([0, 0, 0, 0, 1, 0, 1, 0, 0, 0], 9),
        "substitute",
        {1: 1.0, 2: 1.0},
    ),
    "unproved": (
        TWO,
        FREE[TWO] & cg.at_least([0, 0, 0, 0, 1, 0, 1, 0, 0, 0], 9),
        "substitute",
        {1: 4.0, 2: 1.0},
    ),
}


def total(tree, resolved, goal, scales):
    """Weighted sum of the scales, one node of each level."""
    free = ~resolved.pinned
    return math.fsum(
        weight * scales[free & (tree.level == level)][0]
        for level, weight in goal.items()
        if weight > 0
    )


def splits(levels, parts):
    """Yield every split in whole parts."""
    for some in itertools.product(range(1, parts), repeat=len(levels) - 1):
        if sum(some) < parts:
            yield dict(zip(levels, [k / parts for k in (*some, parts - sum(some))], strict=True))


@pytest.mark.parametrize("method", ["conditioning", "imaging"])
@pytest.mark.parametrize("epsilon", [0.3, 3.0])
@pytest.mark.parametrize("name", CASES)
def test_no_split_of_a_grid_is_better(name, epsilon, method):
    tree, invariant, neighbours, goal = CASES[name]
    resolved = resolve_invariant(invariant, len(tree), tree)
    target = Target(epsilon, neighbours, method)
    found = goal_split(tree, resolved, target, goal)
    measured = [level for level, weight in goal.items() if weight > 0]
    assert list(found) == measured

    def error(split):
        return total(tree, resolved, goal, level_scales(tree, resolved, target, split))

    least = error(found)
    others = [error(split) for split in splits(measured, 40 if len(measured) == 2 else 12)]
    # the steps of the shares found are not endlessly fine
    assert least <= min(others) * (1 + 1e-6)
    # a split that is only a little off is worse, so that the grid can tell
    for a, b in itertools.permutations(measured, 2):
        off = found | {a: found[a] * 0.7, b: found[b] + found[a] * 0.3}
        assert error(off) > least * 1.0001


@pytest.mark.parametrize("weights", [(1.0, 1.0), (4.0, 1.0), (1.0, 100.0), (2.0, 3.0)])
@pytest.mark.parametrize("scale", [1.0, 1e-200, 1e200])
def test_equalities_alone_split_like_the_roots_of_the_weights(weights, scale):
    resolved = resolve_invariant(cg.consistent(TWO) & cg.exactly("root"), len(TWO), TWO)
    goal = {1: weights[0] * scale, 2: weights[1] * scale}
    found = goal_split(TWO, resolved, Target(1.0, "substitute", "conditioning"), goal)
    roots = np.sqrt(weights)
    assert list(found.values()) == pytest.approx(roots / roots.sum(), abs=1 / UNITS)


def test_bounds_give_leaves_a_larger_share():
    resolved = resolve_invariant(FREE[TWO] & cg.exactly("root"), len(TWO), TWO)
    goal = {1: 1.0, 2: 1.0}
    assert goal_split(TWO, resolved, Target(1.0, "substitute", "imaging"), goal)[2] == 0.5
    assert goal_split(TWO, resolved, Target(1.0, "substitute", "conditioning"), goal)[2] > 0.51


@pytest.mark.parametrize("epsilon", [1e-3, 0.3, 3.0, 16.0])
@pytest.mark.parametrize("name", CASES)
def test_epsilon_is_never_exceeded(name, epsilon):
    tree, invariant, neighbours, goal = CASES[name]
    resolved = resolve_invariant(invariant, len(tree), tree)
    for method, state in (("conditioning", conditioned_guarantee), ("imaging", imaged_guarantee)):
        noise = cg.calibrate(
            tree, invariant, epsilon=epsilon, neighbours=neighbours, goal=goal, method=method
        )
        claim = state(cg.Additive(noise, tree), resolved, neighbours, sampler_error=0.0)
        assert claim.epsilon <= epsilon
        if name not in ("ragged", "crossing"):  # where no pair uses all the shares
            assert claim.epsilon == pytest.approx(epsilon, rel=1e-9)


@pytest.mark.parametrize("name", CASES)
def test_the_split_found_gives_the_same_bits(name):
    tree, invariant, neighbours, goal = CASES[name]
    resolved = resolve_invariant(invariant, len(tree), tree)
    found = goal_split(tree, resolved, Target(0.7, neighbours, "conditioning"), goal)
    assert all(share == round(share * UNITS) / UNITS > 0 for share in found.values())
    assert sum(round(share * UNITS) for share in found.values()) == UNITS
    asked = {"epsilon": 0.7, "neighbours": neighbours}
    one = cg.calibrate(tree, invariant, goal=goal, **asked)
    two = cg.calibrate(tree, invariant, split=found, **asked)
    assert one.spread.tobytes() == two.spread.tobytes()


def test_a_wide_tree_is_split_like_a_narrow_one():
    goal = {1: 3.0, 2: 1.0, 3: 2.0}
    found = []
    for tree in (regular(2, 2, 2), regular(5, 40, 7)):
        resolved = resolve_invariant(cg.consistent(tree) & cg.nonnegative(), len(tree), tree)
        found.append(goal_split(tree, resolved, Target(1.0, "substitute", "conditioning"), goal))
    assert found[0] == found[1]


@pytest.mark.parametrize("method", ["conditioning", "imaging"])
@pytest.mark.parametrize("name", CASES)
def test_refuting_splits_by_one_loss_changes_no_result(name, method, monkeypatch):
    tree, invariant, neighbours, goal = CASES[name]
    resolved = resolve_invariant(invariant, len(tree), tree)
    asked = tree, resolved, Target(1.0, neighbours, method), goal
    found = goal_split(*asked)
    monkeypatch.setattr(split, "_MARGIN", 1.0)  # a factor of 0 refutes no split
    assert goal_split(*asked) == found


@pytest.mark.parametrize("seed", range(40))
def test_folding_keeps_every_pair(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(6, 30))
    parents = [-1, *(int(rng.integers(0, min(v, 7))) for v in range(1, n))]
    tree = cg.Tree.from_parents(parents)
    invariant = cg.consistent(tree)
    if rng.random() < 0.7:
        invariant &= cg.exactly(rng.choice(n, size=int(rng.integers(1, 4)), replace=False).tolist())
    if rng.random() < 0.8:
        invariant &= cg.bounds(hi=np.where(rng.random(n) < 0.5, 9.0, np.inf)) & cg.nonnegative()
    resolved = resolve_invariant(invariant, n, tree)
    share = rng.dirichlet(np.ones(tree.depth))
    noise = cg.Additive(cg.DiscreteLaplace(2.0 / share[tree.level]), tree)
    try:
        wanted = conditioned_pairs(noise, resolved, "substitute")
    except EmptyNeighbourhoodError:
        return
    known = replace(resolved, pinned=resolved.determined)
    changes = level_units(tree, known, "substitute")
    found = pairs_by_share(tree, known, "substitute", changes, charge_bounds=True)(share)
    assert found.worst == pytest.approx(wanted.worst, rel=1e-12)
    assert found.steps == wanted.steps
    assert found.alpha == pytest.approx(wanted.alpha, rel=1e-12)
    assert found.base == pytest.approx(wanted.base, rel=1e-12)


def test_order_of_the_levels_does_not_matter():
    resolved = resolve_invariant(FREE[THREE], len(THREE), THREE)
    target = Target(1.0, "substitute", "conditioning")
    one = goal_split(THREE, resolved, target, {1: 3.0, 2: 1.0, 3: 2.0})
    assert goal_split(THREE, resolved, target, {3: 2.0, 1: 3.0, 2: 1.0}) == one


@pytest.mark.parametrize(
    ("goal", "error", "message"),
    [
        ({}, ArgumentError, "goal weighs no level"),
        ({1: 0.0, 2: 0.0}, ArgumentError, "goal weighs no level"),
        ({3: 1.0}, ArgumentError, "goal names level 3; give 0 to 2"),
        ({1: -1.0, 2: 1.0}, ArgumentError, "goal.1. is -1.0"),
        ({1: math.nan}, ArgumentError, "goal.1. is nan"),
        ({1: math.inf}, ArgumentError, "goal.1. is inf"),
        ({0: 1.0, 2: 1.0}, PrivacyError, "level 0, which is published exactly"),
    ],
)
def test_an_invalid_goal_is_refused(goal, error, message):
    invariant = FREE[TWO] & cg.exactly("root")
    with pytest.raises(error, match=message):
        cg.calibrate(TWO, invariant, epsilon=1.0, neighbours="substitute", goal=goal)


def test_a_goal_together_with_a_split_is_refused():
    with pytest.raises(ArgumentError, match="both split and goal"):
        cg.calibrate(
            TWO, FREE[TWO], epsilon=1.0, neighbours="substitute", split={2: 1.0}, goal={2: 1.0}
        )


def test_noise_that_protects_nothing_is_refused():
    # no substitution changes the root
    with pytest.raises(ArgumentError, match="same in all neighbouring datasets"):
        cg.calibrate(
            TWO, FREE[TWO], epsilon=1.0, neighbours="substitute", goal={0: 1.0, 1: 1.0, 2: 1.0}
        )
    with pytest.raises(EmptyNeighbourhoodError):
        cg.calibrate(
            TWO,
            cg.consistent(TWO) & cg.exactly(list(range(4, 9))),
            epsilon=1.0,
            neighbours="substitute",
            goal={2: 1.0},
        )
