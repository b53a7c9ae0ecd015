"""Scales of the nodes from a final epsilon: the requested numbers are reached."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import congenial as cg
from congenial.accounting.calibration.level_units import changing_levels
from congenial.accounting.calibration.scales import calibrate, level_scales
from congenial.accounting.calibration.target import Target
from congenial.accounting.guarantee import conditioned_guarantee, imaged_guarantee
from congenial.errors import ArgumentError, EmptyNeighbourhoodError, PrivacyError
from congenial.invariants.written import resolve_invariant

CITY = cg.Tree.from_paths(
    [
        ("city", borough, f"{borough}{zone}")
        for borough, zones in (("a", 3), ("b", 2), ("c", 4))
        for zone in range(zones)
    ]
)
PINNED = cg.consistent(CITY) & cg.exactly("root")
BOUNDED = PINNED & cg.nonnegative()


def reached(tree, invariant, noise, neighbours, method="conditioning"):
    """Return the guarantee that the noise gives."""
    resolved = resolve_invariant(invariant, len(tree), tree)
    state = conditioned_guarantee if method == "conditioning" else imaged_guarantee
    return state(cg.Additive(noise, tree), resolved, neighbours, sampler_error=0.0)


def by_level(tree, scales):
    """Return the one scale of each level."""
    levels = [np.unique(scales[tree.level == depth]) for depth in range(tree.depth)]
    assert all(level.size == 1 for level in levels)
    return [float(level[0]) for level in levels]


def proved(base, leaf_share):
    """Final epsilon of two measured levels, nonnegative, under one pinned total."""
    return base + math.log(1 + math.exp((1 - leaf_share) * base) * (1 - math.exp(-base)))


def test_the_taxi_plan_gives_the_scales_computed_by_hand():
    # a substitution changes two nodes of each level
    noise = calibrate(CITY, BOUNDED, epsilon=1.0, neighbours="substitute", split={1: 0.4, 2: 0.6})
    claim = reached(CITY, BOUNDED, noise, "substitute")
    assert proved(claim.base_epsilon, 0.6) == pytest.approx(1.0, rel=1e-12)
    assert claim.base_epsilon == pytest.approx(0.5666, abs=1e-4)
    assert by_level(CITY, noise.spread) == pytest.approx(
        [math.inf, 2 / (0.4 * claim.base_epsilon), 2 / (0.6 * claim.base_epsilon)], rel=1e-12
    )
    assert claim.epsilon == pytest.approx(1.0, rel=1e-12)
    assert claim.epsilon <= 1.0
    assert claim.gamma == pytest.approx(1 / claim.base_epsilon - 1, rel=1e-12)
    assert claim.gamma_source == "proved bound: proofs/inequalities.md"
    assert claim.delta == 0.0


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 5.0])
def test_one_pinned_total_has_the_base_of_the_closed_form(epsilon):
    tree = cg.Tree.from_parents([-1] + [0] * 6)
    invariant = cg.consistent(tree) & cg.exactly("root") & cg.nonnegative()
    noise = calibrate(tree, invariant, epsilon=epsilon, neighbours="substitute")
    base = math.log((math.exp(epsilon) + 1) / 2)
    assert by_level(tree, noise.spread) == pytest.approx([math.inf, 2 / base], rel=1e-12)
    claim = reached(tree, invariant, noise, "substitute")
    assert claim.base_epsilon == pytest.approx(base, rel=1e-12)
    assert claim.epsilon <= epsilon


def test_leaves_that_are_not_measured_leave_half_of_epsilon():
    noise = calibrate(CITY, BOUNDED, epsilon=1.0, neighbours="substitute", split={1: 1.0})
    assert by_level(CITY, noise.spread) == pytest.approx([math.inf, 4.0, math.inf], rel=1e-12)
    claim = reached(CITY, BOUNDED, noise, "substitute")
    stated = (1.0, "the general bound: Gong and Meng, Theorem 2.1")
    assert (claim.gamma, claim.gamma_source) == stated


def test_bounds_do_not_give_an_unused_share_to_other_levels():
    # no substitution changes the root, so its share is not used
    free = cg.consistent(CITY) & cg.nonnegative()
    split = {0: 0.5, 1: 0.2, 2: 0.3}
    noise = calibrate(CITY, free, epsilon=1.0, neighbours="substitute", split=split)
    claim = reached(CITY, free, noise, "substitute")
    assert claim.epsilon == pytest.approx(0.5, rel=1e-9)
    assert proved(claim.base_epsilon, 0.6) == pytest.approx(0.5, rel=1e-9)


@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 0.7, 1.0, 3.3, 20.0])
@pytest.mark.parametrize("share", [0.1, 1 / 3, 0.5, 0.9])
@pytest.mark.parametrize(
    ("invariant", "method"),
    [(BOUNDED, "conditioning"), (PINNED, "conditioning"), (BOUNDED, "imaging")],
)
def test_epsilon_is_reached_and_never_exceeded(epsilon, share, invariant, method):
    noise = calibrate(
        CITY,
        invariant,
        epsilon=epsilon,
        neighbours="substitute",
        split={1: share, 2: 1 - share},
        method=method,
    )
    claim = reached(CITY, invariant, noise, "substitute", method)
    assert claim.epsilon <= epsilon
    assert claim.epsilon == pytest.approx(epsilon, rel=1e-12)


def test_imaging_pays_nothing_for_inequalities():
    split = {1: 0.4, 2: 0.6}
    conditioned = calibrate(CITY, BOUNDED, epsilon=1.0, neighbours="substitute", split=split)
    imaged = calibrate(
        CITY, BOUNDED, epsilon=1.0, neighbours="substitute", split=split, method="imaging"
    )
    free = calibrate(CITY, PINNED, epsilon=1.0, neighbours="substitute", split=split)
    base = reached(CITY, BOUNDED, conditioned, "substitute").base_epsilon
    assert imaged.spread[1:] == pytest.approx(conditioned.spread[1:] * base, rel=1e-12)
    assert imaged.spread[1:] == pytest.approx(free.spread[1:], rel=1e-12)
    assert reached(CITY, BOUNDED, imaged, "substitute", "imaging").gamma == 0.0


def test_add_remove_changes_one_node_of_each_level_by_one():
    invariant = cg.consistent(CITY) & cg.nonnegative()
    noise = calibrate(
        CITY,
        invariant,
        epsilon=2.0,
        neighbours="add-remove",
        split={0: 0.2, 1: 0.3, 2: 0.5},
    )
    claim = reached(CITY, invariant, noise, "add-remove")
    base = claim.base_epsilon
    assert by_level(CITY, noise.spread) == pytest.approx(
        [1 / (0.2 * base), 1 / (0.3 * base), 1 / (0.5 * base)], rel=1e-12
    )
    assert claim.epsilon == pytest.approx(2.0, rel=1e-12)
    # one leaf of a path has half of the base, so exp(E - 2 alpha) = 1
    assert base == pytest.approx(math.log((math.exp(2) + 1) / 2), rel=1e-12)


def test_equal_shares_have_the_scale_of_exact_fractions_and_never_a_smaller_one():
    """A scale of 4 is written as 4.0, not as 4.000000000000014."""
    rng = np.random.default_rng(1)
    asked = [(3, 1.0), (4, 1.0), (5, 0.5), (6, 0.1)]
    asked += [(int(rng.integers(2, 7)), float(np.exp(rng.uniform(-5, 2.5)))) for _ in range(1_000)]
    for depth, epsilon in asked:
        tree = cg.Tree.from_parents((np.arange(2**depth - 1) - 1) // 2)
        noise = calibrate(tree, cg.consistent(tree), epsilon=epsilon, neighbours="add-remove")
        [scale] = set(noise.spread.tolist())
        loss = depth / Fraction(scale)
        # a division is off by half a unit of 2^-52 at most, and a scale is widened by one or two
        assert (1 - Fraction(1, 2**50)) * Fraction(epsilon) < loss <= Fraction(epsilon)


def test_equal_shares_over_the_levels_that_can_change():
    resolved = resolve_invariant(PINNED, len(CITY), CITY)
    assert changing_levels(CITY, resolved, "substitute") == [1, 2]
    noise = calibrate(CITY, PINNED, epsilon=1.0, neighbours="substitute")
    assert by_level(CITY, noise.spread) == pytest.approx([math.inf, 4.0, 4.0], rel=1e-12)
    free = resolve_invariant(cg.consistent(CITY), len(CITY), CITY)
    # substituting a record never changes the total
    assert changing_levels(CITY, free, "substitute") == [1, 2]
    assert changing_levels(CITY, free, "add-remove") == [0, 1, 2]


def test_a_level_without_a_share_is_not_measured():
    noise = calibrate(CITY, PINNED, epsilon=1.0, neighbours="substitute", split={2: 1.0})
    assert by_level(CITY, noise.spread) == pytest.approx([math.inf, math.inf, 2.0], rel=1e-12)


def test_single_nodes_published_exactly_get_no_noise_and_the_rest_of_the_level_does():
    invariant = PINNED & cg.exactly("city/a/a0")
    noise = calibrate(CITY, invariant, epsilon=1.0, neighbours="substitute", split={1: 0.5, 2: 0.5})
    pinned = CITY.find("city/a/a0")
    assert math.isinf(noise.spread[pinned])
    others = (CITY.level == 2) & (np.arange(len(CITY)) != pinned)
    assert np.isfinite(noise.spread[others]).all()
    assert reached(CITY, invariant, noise, "substitute").epsilon <= 1.0


def test_pinned_boroughs_leave_moves_within_a_borough_only():
    invariant = cg.consistent(CITY) & cg.exactly(["root", *(CITY.find(b) for b in "abc")])
    noise = calibrate(CITY, invariant, epsilon=1.0, neighbours="substitute")
    assert by_level(CITY, noise.spread) == pytest.approx([math.inf, math.inf, 2.0], rel=1e-12)


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan, math.inf, True, "1", None])
def test_an_invalid_epsilon_is_refused(epsilon):
    with pytest.raises(ArgumentError, match="epsilon is"):
        calibrate(CITY, PINNED, epsilon=epsilon, neighbours="substitute")


@pytest.mark.parametrize(
    ("split", "message"),
    [
        ({1: 0.4, 2: 0.5}, "adds up to 0.9"),
        ({1: 0.4, 3: 0.6}, "level 3"),
        ({1: -0.5, 2: 1.5}, "split.1. is -0.5"),
        ({1: math.nan, 2: 1.0}, "split.1. is nan"),
        ({1: 10**400}, "split.1. is 1000"),
        ({1: None}, "split.1. is None; give a nonnegative, finite number"),
        ({1: "1"}, "split.1. is '1'"),
        ({1: True}, "split.1. is true"),
        ({1.0: 1.0}, "level 1.0; give 0 to 2"),
        (3, "split is 3; give a mapping"),
    ],
)
def test_an_invalid_split_is_refused(split, message):
    with pytest.raises(ArgumentError, match=message):
        calibrate(CITY, PINNED, epsilon=1.0, neighbours="substitute", split=split)


@pytest.mark.parametrize(
    ("goal", "message"), [(3, "goal is 3; give a mapping"), ({1: None}, "goal.1. is None")]
)
def test_an_invalid_goal_is_refused(goal, message):
    with pytest.raises(ArgumentError, match=message):
        calibrate(CITY, PINNED, epsilon=1.0, neighbours="substitute", goal=goal)


def test_budget_for_a_level_published_exactly_is_refused():
    with pytest.raises(PrivacyError, match="published exactly"):
        calibrate(CITY, PINNED, epsilon=1.0, neighbours="substitute", split={0: 0.2, 2: 0.8})


def test_invariants_that_leave_no_neighbours_are_refused():
    with pytest.raises(EmptyNeighbourhoodError, match="add-remove"):
        calibrate(CITY, PINNED, epsilon=1.0, neighbours="add-remove")
    everything = cg.consistent(CITY) & cg.exactly(np.arange(len(CITY)))
    with pytest.raises(EmptyNeighbourhoodError, match="publish fewer"):
        calibrate(CITY, everything, epsilon=1.0, neighbours="substitute")


def test_unknown_relation_and_method_are_refused():
    with pytest.raises(ArgumentError, match="neighbours is 'swap'"):
        calibrate(CITY, PINNED, epsilon=1.0, neighbours="swap")
    with pytest.raises(ArgumentError, match="method is 'guess'"):
        calibrate(CITY, PINNED, epsilon=1.0, neighbours="substitute", method="guess")


def test_what_is_no_tree_is_refused():
    with pytest.raises(ArgumentError, match="tree is a int; give a Tree or a Workload"):
        cg.calibrate(3, cg.exactly([0]), epsilon=1.0, neighbours="substitute")


def test_the_claim_is_the_worst_ratio_of_an_enumerated_mechanism():
    """Two leaves under an exact root, noise at both: the ratio over all outcomes is e^epsilon."""
    tree = cg.Tree.from_parents([-1, 0, 0])
    resolved = resolve_invariant(cg.consistent(tree) & cg.exactly([0]), 3, tree)
    target = Target(0.8, "substitute", "conditioning")
    scales = level_scales(tree, resolved, target, {1: 1.0})
    first = np.arange(-60, 71)

    def law(x):
        weight = np.exp(-(np.abs(first - x[0]) / scales[1] + np.abs(10 - first - x[1]) / scales[2]))
        return weight / weight.sum()

    inside = slice(20, -20)  # far from where the enumeration is cut off
    ratio = np.abs(np.log(law((5, 5)) / law((6, 4))))[inside]
    assert ratio.max() == pytest.approx(0.8, abs=1e-6)
    # the same check fails for noise 30% too small
    scales = scales * 0.7
    assert np.abs(np.log(law((5, 5)) / law((6, 4))))[inside].max() > 1.1
