"""Noise for a final epsilon, and sensitivities, if only several records can move at once."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import congenial as cg
from congenial.accounting.calibration.level_units import changing_levels
from congenial.accounting.calibration.scales import calibrate, goal_split, level_scales
from congenial.accounting.calibration.target import Target
from congenial.accounting.guarantee import conditioned_guarantee, imaged_guarantee
from congenial.errors import ArgumentError, PrivacyError
from congenial.invariants.written import resolve_invariant
from support.sum_networks import margins

# two groups of two, sums across them
SQUARE = cg.Tree.from_parents([-1, 0, 0, 1, 1, 2, 2])
# the same with a level between
DEEP = cg.Tree.from_parents([-1, 0, 0, 1, 2, 3, 3, 4, 4])
CUBE = cg.Tree.from_parents([-1, 0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3])


def leaf_sums(tree, rows):
    whole = np.zeros((len(rows), len(tree)))
    whole[:, tree.leaves] = rows
    return cg.linear(whole, whole[:, tree.leaves] @ np.ones(len(tree.leaves)))


CASES = {
    "square": (SQUARE, cg.consistent(SQUARE) & leaf_sums(SQUARE, margins(2, 2)[:3])),
    "deep": (DEEP, cg.consistent(DEEP) & leaf_sums(DEEP, [[1, 0, 1, 0]]) & cg.exactly([1, 2])),
    "three by three": (CUBE, cg.consistent(CUBE) & leaf_sums(CUBE, margins(3, 3))),
    # groups change too: two records of the middle for one of each side
    "weights": (SQUARE, cg.consistent(SQUARE) & leaf_sums(SQUARE, [[0, 1, 2, 4]])),
}


def moves(tree, invariant, most):
    """All changes of all nodes by up to so many records that keep the sums, one by one."""
    resolved = resolve_invariant(invariant, len(tree), tree)
    leaves = len(tree.leaves)
    found = {}
    for k in range(1, most + 1):
        for out in itertools.combinations_with_replacement(range(leaves), k):
            for into in itertools.combinations_with_replacement(range(leaves), k):
                v = np.bincount(into, minlength=leaves) - np.bincount(out, minlength=leaves)
                change = np.asarray(tree.roll_up(v))
                kept = (
                    not (resolved.equalities[0] @ change).any()
                    and not change[resolved.pinned].any()
                )
                if kept and v.any():
                    found[tuple(change)] = np.abs(change)
    return np.array([*found.values()])


def loss(tree, invariant, noise, claim):
    scales = noise if isinstance(noise, np.ndarray) else noise.scale
    return float((moves(tree, invariant, claim.records) / scales).sum(axis=1).max())


def reached(tree, invariant, noise, method):
    state = conditioned_guarantee if method == "conditioning" else imaged_guarantee
    resolved = resolve_invariant(invariant, len(tree), tree)
    return state(cg.Additive(noise, tree), resolved, "substitute", sampler_error=0.0)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("method", ["conditioning", "imaging"])
@pytest.mark.parametrize("epsilon", [0.3, 2.0])
def test_the_final_epsilon_is_as_asked(name, method, epsilon):
    tree, invariant = CASES[name]
    asked = {"epsilon": epsilon, "neighbours": "substitute", "method": method}
    noise = calibrate(tree, invariant, **asked)
    claim = reached(tree, invariant, noise, method)
    assert claim.at_once
    assert claim.epsilon == pytest.approx(epsilon, rel=1e-9)
    assert claim.epsilon <= epsilon
    # by brute force too, and nothing smaller would do
    assert loss(tree, invariant, noise, claim) == pytest.approx(epsilon, rel=1e-9)


@pytest.mark.parametrize("name", CASES)
def test_bounds_are_part_of_it(name):
    tree, invariant = CASES[name]
    bounded = invariant & cg.nonnegative()
    noise = calibrate(tree, bounded, epsilon=1.0, neighbours="substitute")
    claim = reached(tree, bounded, noise, "conditioning")
    assert claim.epsilon == pytest.approx(1.0, rel=1e-9)
    assert claim.base_epsilon < 1.0
    assert 0.0 < claim.gamma < 1.0
    assert loss(tree, bounded, noise, claim) == pytest.approx(claim.base_epsilon, rel=1e-9)


def test_a_given_split_and_levels_that_no_move_changes():
    tree, invariant = CASES["weights"]
    resolved = resolve_invariant(invariant, len(tree), tree)
    assert changing_levels(tree, resolved, "substitute") == [1, 2]
    assert changing_levels(*_known("square"), "substitute") == [2]
    assert changing_levels(*_known("deep"), "substitute") == [3]
    for share in (0.2, 0.5, 0.9):
        noise = calibrate(
            tree, invariant, epsilon=1.0, neighbours="substitute", split={1: share, 2: 1 - share}
        )
        claim = reached(tree, invariant, noise, "conditioning")
        assert loss(tree, invariant, noise, claim) == pytest.approx(1.0, rel=1e-9)
        # no other noise is in the same proportion to share and change, and has the same loss
        most = moves(tree, invariant, claim.records)
        ends = [most[:, tree.level == level].sum(axis=1).max() for level in (1, 2)]
        ratio = noise.scale[1] / noise.scale[3]
        assert ratio == pytest.approx(ends[0] / share / (ends[1] / (1 - share)), rel=1e-12)


def _known(name):
    tree, invariant = CASES[name]
    return tree, resolve_invariant(invariant, len(tree), tree)


@pytest.mark.parametrize("method", ["conditioning", "imaging"])
@pytest.mark.parametrize("bounds", [False, True])
def test_no_split_on_a_grid_is_better_for_the_goal(method, bounds):
    tree, invariant = CASES["weights"]
    if bounds:
        invariant &= cg.nonnegative()
    resolved = resolve_invariant(invariant, len(tree), tree)
    target = Target(1.0, "substitute", method)
    goal = {1: 3.0, 2: 1.0}

    def error(split):
        scales = level_scales(tree, resolved, target, split)
        return 3.0 * scales[1] + scales[3]

    best = error(goal_split(tree, resolved, target, goal))
    for share in np.linspace(0.02, 0.98, 49):
        assert best <= error({1: share, 2: 1 - share}) * (1 + 1e-6)


def test_gaussian_noise_is_for_the_squares():
    tree, invariant = CASES["weights"]
    resolved = resolve_invariant(invariant, len(tree), tree)
    target = Target(1.0, "substitute", "imaging", 1e-6)
    sigmas = level_scales(tree, resolved, target, {1: 0.3, 2: 0.7})
    law = cg.Additive(cg.DiscreteGaussian(sigmas), tree)
    claim = imaged_guarantee(law, resolved, "substitute", sampler_error=0.0, delta=1e-6)
    assert claim.epsilon == pytest.approx(1.0, rel=1e-8)
    changes = moves(tree, invariant, claim.records)
    rho = float((changes**2 / (2 * sigmas**2)).sum(axis=1).max())
    assert claim.rho == pytest.approx(rho, rel=1e-9)


def largest(change, norm):
    return max(float(np.abs(d).sum() if norm == 1 else math.sqrt((d**2).sum())) for d in change)


@pytest.mark.parametrize("norm", [1, 2])
def test_sensitivity_is_that_of_all_joint_moves(norm):
    for tree, invariant in CASES.values():
        asked = {"neighbours": "substitute", "norm": norm, "invariant": invariant}
        found = cg.accounting.sensitivity(tree, **asked)
        assert found.records >= 2
        assert found.value == pytest.approx(largest(moves(tree, invariant, found.records), norm))
        change = np.zeros(len(tree))
        for leaf, gain in found.move:
            change = change + gain * np.asarray(
                tree.roll_up((tree.leaves == leaf).astype(np.int64))
            )
        assert largest([change], norm) == pytest.approx(found.value)
        assert "at once" in found.sentence
        # the same as a matrix
        counted = np.array([tree.roll_up(unit) for unit in np.eye(len(tree.leaves), dtype=int)]).T
        resolved = resolve_invariant(invariant, len(tree), tree)
        mandate = cg.linear(*resolved.equalities)
        if resolved.pinned.any():
            mandate &= cg.exactly(np.flatnonzero(resolved.pinned).tolist())
        other = cg.accounting.sensitivity(
            counted, neighbours="substitute", norm=norm, invariant=mandate
        )
        assert (other.value, other.records) == (found.value, found.records)


def test_sensitivity_of_a_vector():
    table = cg.linear(margins(2, 3), np.ones(5))
    found = cg.accounting.sensitivity(6, neighbours="substitute", invariant=table)
    assert (found.value, found.records, found.norm) == (4.0, 2, 1)
    gains = dict(found.move)
    assert sorted(gains.values()) == [-1, -1, 1, 1]
    assert (margins(2, 3) @ [gains.get(i, 0) for i in range(6)] == 0).all()
    assert gains[found.origin] < 0 < gains[found.destination]
    text = found.sentence
    assert text.startswith("L1 sensitivity 4, attained by moving 2 records at once, from cells ")
    alone = cg.accounting.sensitivity(6, neighbours="substitute")
    assert (alone.records, alone.move) == (1, ())
    sigma = cg.accounting.gaussian_sigma(epsilon=1.0, delta=1e-6, sensitivity=found)
    assert sigma == cg.accounting.gaussian_sigma(epsilon=1.0, delta=1e-6, sensitivity=4.0)


def test_cases_outside_the_search_are_still_refused():
    tree = cg.Tree.from_parents([-1, 0, 0, 0])
    rows = np.array([[0.0, 0.0, 1.0, 7.0]])
    invariant = cg.consistent(tree) & cg.linear(rows, [8.0])
    with pytest.raises(PrivacyError, match="more than 4 records"):
        calibrate(tree, invariant, epsilon=1.0, neighbours="substitute")
    with pytest.raises(ArgumentError, match="level 0"):
        goal_split(*_known("square"), Target(1.0, "substitute", "imaging"), {0: 1.0})


def test_margins_published_exactly_leave_joint_moves_too():
    counted = np.vstack((np.eye(6, dtype=int), margins(2, 3)))
    exact = cg.exactly(list(range(6, 11)))
    found = cg.accounting.sensitivity(counted, neighbours="substitute", norm=2, invariant=exact)
    assert (found.value, found.records) == (2.0, 2)
