"""Mixtures and disjoint unions against enumeration."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

import congenial as cg
from congenial import randomness
from congenial.accounting.loss.inequalities import PROVED
from congenial.conditioning import mixtures
from congenial.errors import ArgumentError, InvariantError, PrivacyError, UnsupportedError
from congenial.randomness import given

TREE = cg.Tree.from_parents([-1, 0, 0])
X = TREE.roll_up(np.array([2, 1]))
FIXED = cg.consistent(TREE) & cg.exactly("root")


def laplace(scale: float) -> cg.Additive:
    return cg.Additive(cg.DiscreteLaplace(scale), TREE)


def enumerated(scales: list[float], weights: list[float], lo: float) -> dict[int, float]:
    """Law of the first leaf: the mixed probabilities of all splits of the root, normalised."""
    mass = {}
    for z in range(-400, 401):
        if min(z, 3 - z) < lo:
            continue
        shifts = np.array([0, z - 2, 3 - z - 1])
        mass[z] = sum(
            w * np.exp(cg.DiscreteLaplace(s).log_pmf(shifts, np.full(3, s)).sum())
            for w, s in zip(weights, scales, strict=True)
        )
    total = sum(mass.values())
    return {z: p / total for z, p in mass.items()}


@pytest.mark.parametrize("lo", [-np.inf, 0.0])
def test_conditioning_a_mixture_reweights_its_parts(lo: float) -> None:
    mixed = cg.mixture([laplace(0.7), laplace(5.0)], [0.3, 0.7])
    released = cg.condition(mixed, FIXED & cg.bounds(lo))
    truth = enumerated([0.7, 5.0], [0.3, 0.7], lo)
    values, probabilities = released.marginal(1, X)
    np.testing.assert_allclose(probabilities, [truth.get(int(v), 0.0) for v in values], atol=1e-11)
    for z in (0, 2, 3):
        assert released.log_prob([3, z, 3 - z], X) == pytest.approx(np.log(truth[z]), abs=1e-11)
    draws = released.sample(X, 40_000, cg.seeded(1))
    assert (draws[:, 1] == 2).mean() == pytest.approx(truth[2], abs=0.015)
    assert (draws.sum(axis=1) == 6).all()


def test_conditioning_on_a_union_weighs_its_alternatives() -> None:
    low = cg.bounds([-np.inf, -np.inf, -np.inf], [np.inf, 0, np.inf])
    high = cg.bounds([-np.inf, 2, -np.inf], [np.inf, 3, np.inf])
    released = cg.condition(laplace(1.5), (FIXED & low) | (FIXED & high))
    whole = enumerated([1.5], [1.0], -np.inf)
    kept = {z: p for z, p in whole.items() if z <= 0 or z in (2, 3)}
    values, probabilities = released.marginal(1, X)
    expected = np.array([kept.get(int(v), 0.0) for v in values]) / sum(kept.values())
    np.testing.assert_allclose(probabilities, expected, atol=1e-11)
    assert np.isneginf(released.log_prob([3, 1, 2], X))
    claim = released.guarantee("substitute")
    # both leaves follow from the first: proofs/inequalities.md, one line
    a = np.exp(-2 / 1.5)
    assert claim.epsilon == pytest.approx(np.log(1 / a + 1 - a))
    assert claim.gamma_source == PROVED
    rows = np.array([[3, z, 3 - z] for z in (*range(-30, 1), 2, 3)])
    near = [(rows[i], rows[j]) for i, j in ((29, 30), (30, 29), (-2, -1), (-1, -2))]
    losses = [np.subtract(*(released.log_prob(rows, x) for x in pair)).max() for pair in near]
    assert claim.base_epsilon < max(losses) <= claim.epsilon
    draws = released.sample(X, 2_000, cg.seeded(2))[:, 1]
    assert not np.isin(draws, [1, 4, 5]).any()


@pytest.mark.parametrize("second", [1, 2])
def test_a_union_of_values_is_charged_for_revealing_the_alternative(second: int) -> None:
    """Each alternative fixes the first leaf, the union does not, and the leaf's noise is small."""
    tree = cg.Tree.from_parents([-1, 0, 0, 0])
    fixed = cg.consistent(tree) & cg.exactly("root")
    low, high = (
        cg.bounds([-np.inf, a, -np.inf, -np.inf], [np.inf, b, np.inf, np.inf])
        for a, b in ((0, 0), (1, second))
    )
    noise = cg.DiscreteLaplace([np.inf, 0.2, 10.0, 10.0])
    released = cg.condition(cg.Additive(noise, tree), (fixed & low) | (fixed & high))
    near = [tree.roll_up(np.array(leaves)) for leaves in ([0, 3, 3], [1, 2, 3])]
    laws = [released.marginal(1, x)[1] for x in near]
    loss = np.abs(np.log(laws[0] / laws[1])).max()
    assert 4.9 < loss <= released.guarantee("substitute").epsilon


def test_unions_that_overlap_or_differ_in_more_than_bounds_are_refused() -> None:
    low = cg.bounds(-np.inf, [np.inf, 2, np.inf])
    with pytest.raises(ArgumentError, match="may hold at once"):
        cg.condition(laplace(1.0), (FIXED & low) | (FIXED & cg.nonnegative()))
    with pytest.raises(UnsupportedError, match="more than bounds"):
        cg.condition(laplace(1.0), FIXED | cg.consistent(TREE))


def test_data_outside_every_alternative_are_refused() -> None:
    far = cg.bounds([-np.inf, 50, -np.inf], np.inf)
    near = cg.bounds([-np.inf, -np.inf, -np.inf], [np.inf, 0, np.inf])
    released = cg.condition(laplace(1.0), (FIXED & far) | (FIXED & near))
    with pytest.raises(InvariantError, match="no alternative"):
        released.sample(X)


def test_a_mixture_has_the_loss_of_its_worst_part() -> None:
    mixed = cg.mixture([laplace(4.0), laplace(2.0)], [0.5, 0.5])
    # a record moved between the leaves changes both by one
    assert cg.condition(mixed, FIXED).guarantee("substitute").epsilon == pytest.approx(1.0)
    assert mixed.guarantee("add-remove").epsilon == pytest.approx(1.0)
    both = cg.condition(mixed, FIXED & cg.nonnegative()).guarantee("substitute")
    assert (both.epsilon, both.gamma) == (pytest.approx(2.0), 1.0)


def test_draws_and_law_of_a_plain_mixture() -> None:
    mixed = cg.mixture([laplace(0.5), laplace(20.0)], [0.25, 0.75])
    draws = mixed.sample(X, 20_000, cg.seeded(3))
    at_truth = np.exp(np.asarray(mixed.log_prob(X, X)))
    wide = np.abs(draws[:, 0] - 3) > 5
    share = (
        0.75 * np.exp(cg.DiscreteLaplace(20.0).log_pmf(np.arange(6, 900), np.full(894, 20.0))).sum()
    )
    assert wide.mean() == pytest.approx(2 * share, abs=0.02)
    assert 0 < at_truth < 1


@pytest.mark.parametrize("weights", [[1.0], [0.5, 0.6], [-0.5, 1.5], [np.nan, 1.0]])
def test_wrong_weights_are_refused(weights: list[float]) -> None:
    with pytest.raises(ArgumentError, match="weights"):
        cg.mixture([laplace(1.0), laplace(2.0)], weights)


def test_parts_that_fix_different_totals_share_no_guarantee() -> None:
    noise = cg.Additive(cg.DiscreteLaplace(2.0), 3)
    parts = [cg.condition(noise, cg.linear(row, [6])) for row in ([1, 1, 0], [0, 1, 1])]
    with pytest.raises(PrivacyError, match="fix different values"):
        cg.mixture(parts, [0.5, 0.5]).guarantee("substitute")
    same = [cg.condition(noise, cg.linear([1, 1, 0], [6])) for _ in range(2)]
    assert cg.mixture(same, [0.5, 0.5]).guarantee("substitute").epsilon == pytest.approx(1.0)


def test_parts_that_count_records_in_different_ways_share_no_guarantee() -> None:
    parts = [cg.Additive(cg.DiscreteLaplace(1.0), 3), laplace(4.0)]
    with pytest.raises(PrivacyError, match="count records in different ways"):
        cg.mixture(parts, [0.5, 0.5]).guarantee("add-remove")


def test_nested_parts_and_parts_on_grids_are_checked() -> None:
    halves = cg.Additive(cg.DiscreteLaplace(2.0, granularity=0.5), 3)
    total = cg.linear([1, 1, 1], [6])
    grid, whole = (
        cg.condition(halves, total),
        cg.condition(cg.Additive(cg.DiscreteLaplace(2.0), 3), total),
    )
    nested = cg.mixture([cg.mixture([grid, whole], [0.5, 0.5]), whole], [0.5, 0.5])
    assert nested.guarantee("substitute").epsilon == pytest.approx(1.0)
    other = cg.condition(halves, cg.linear([1, 1, 1], [7]))
    with pytest.raises(PrivacyError, match="fix different values"):
        cg.mixture([grid, other], [0.5, 0.5]).guarantee("substitute")


def test_parts_that_impose_different_trees_share_no_guarantee() -> None:
    noise = cg.Additive(cg.DiscreteLaplace(2.0), 3)
    trees = (TREE, cg.Tree.from_parents([-1, 0, 1]))
    parts = [cg.condition(noise, cg.consistent(tree)) for tree in trees]
    with pytest.raises(PrivacyError, match="count records in different ways"):
        cg.mixture(parts, [0.5, 0.5]).guarantee("add-remove")


@pytest.mark.parametrize("other", [cg.Tree.from_parents([-1, -1, -1]), 3])
@pytest.mark.parametrize("kept", [cg.bounds(), cg.nonnegative()])
def test_conditioned_parts_must_count_records_alike(other: cg.Tree | int, kept) -> None:
    """A record counts in three entries of the first part, whose loss the second understates."""
    deep = cg.Additive(cg.DiscreteLaplace(6.0), cg.Tree.from_parents([-1, 0, 1]))
    mixed = cg.mixture([deep, cg.Additive(cg.DiscreteLaplace(1.0), other)], [0.01, 0.99])
    with pytest.raises(PrivacyError, match="count records in different ways"):
        cg.condition(mixed, kept).guarantee("add-remove")


def test_parts_with_different_changes_per_record_share_no_guarantee() -> None:
    parts = [
        cg.Additive(cg.DiscreteLaplace(1.0), 1),
        cg.Additive(cg.DiscreteLaplace(6.0), 1, per_record=3.0),
    ]
    mixed = cg.mixture(parts, [0.5, 0.5])
    for released in (mixed, cg.condition(mixed, cg.bounds())):
        with pytest.raises(PrivacyError, match="by 1 and by 3"):
            released.guarantee("add-remove")


@pytest.mark.parametrize("weight", [0.5, 0.001])
def test_weights_that_depend_on_bounds_are_charged_even_if_no_part_is(weight: float) -> None:
    """Each part has unbounded entries that avoid the cost of the bound; the mixture does not."""
    losses = ([3.0] + [3.05] * 5, [1.0] + [0.05] * 4 + [1.22])
    parts = [cg.Additive(cg.DiscreteLaplace(1.0 / np.array(each)), 6) for each in losses]
    bounded = cg.bounds([0.0] + [-np.inf] * 5)
    for part in parts:
        assert cg.condition(part, bounded).guarantee("add-remove").gamma == 0.0
    released = cg.condition(cg.mixture(parts, [weight, 1.0 - weight]), bounded)
    stated = released.guarantee("add-remove")
    one, other = np.zeros(6, dtype=int), np.eye(6, dtype=int)[0]
    loss = float(released.log_prob(one, one) - released.log_prob(one, other))
    assert loss > 3.1
    assert stated.epsilon >= loss
    assert stated.gamma == 1.0


def test_a_part_is_drawn_with_exactly_its_weight_over_the_sum() -> None:
    """Weights are doubles: thirds of them are not, and a tiny one is not lost."""
    weights = [1 / 3, 1e-300, 2 / 3]
    mixed = cg.mixture([laplace(1.0), laplace(2.0), laplace(3.0)], weights)
    whole = sum(map(Fraction, mixed.weights))
    ends = [int(Fraction(w) / whole * (1 << 128)) for w in accumulated(mixed.weights)[:2]]
    chosen = []
    for end in (ends[0] - 1, ends[0] + 1, ends[1] + 2):
        source = given(np.array([end >> 64, end & (1 << 64) - 1, *[0] * 4], dtype=np.uint64))
        units = [int(Fraction(w) * mixtures._UNITS) for w in mixed.weights]
        chosen.append(int(randomness.choose(units, 1, source)[0]))
    assert chosen == [0, 2, 2]
    assert sum(units) == whole * mixtures._UNITS
    assert units[1] > 0


def accumulated(weights) -> list[Fraction]:
    return list(itertools.accumulate(map(Fraction, weights)))


def test_conditioning_mixtures_and_unions_has_no_error() -> None:
    mixed = cg.condition(cg.mixture([laplace(0.7), laplace(5.0)], [0.3, 0.7]), FIXED)
    low = cg.bounds([-np.inf, -np.inf, -np.inf], [np.inf, 0, np.inf])
    high = cg.bounds([-np.inf, 2, -np.inf], [np.inf, 3, np.inf])
    union = cg.condition(laplace(1.5), (FIXED & low) | (FIXED & high))
    for released in (mixed, union):
        assert released.error_bound == 0.0
        stated = released.guarantee("substitute")
        assert stated.delta == stated.sampler_error == 0.0
        assert "exactly" in released.explain()
    normal = cg.mixture([cg.Additive(cg.DiscreteGaussian(s), TREE) for s in (1.0, 4.0)], [0.5, 0.5])
    released = cg.condition(normal, FIXED)
    assert released.error_bound == released.guarantee("substitute").sampler_error == 0.0
