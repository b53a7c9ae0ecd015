"""Claims against independently enumerated losses: a stated loss is never below the true loss."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

import congenial as cg
from congenial.accounting.loss.zero_concentrated import zcdp_epsilon
from congenial.errors import (
    ArgumentError,
    EmptyNeighbourhoodError,
    InfeasibleError,
    InvariantError,
)
from support.notebook import facts, texts

PAIR = cg.Tree.from_parents([-1, 0, 0])
DEEP = cg.Tree.from_parents([-1, 0, 0, 1, 1, 2, 2])


def laws(tree, scales, xs, *, least, pinned, gaussian=False, reach=40):
    """Log probabilities of all consistent outcomes, one row for each x, by brute force."""
    leaves = tree.leaves
    low, high = min(x.min() for x in xs), max(x.max() for x in xs)
    span = range(int(max(least, low - reach)), int(high + reach) + 1)
    rows = []
    outcomes = [
        tree.roll_up(np.array(z))
        for z in itertools.product(span, repeat=leaves.size)
        if not pinned or sum(z) == xs[0][0]
    ]
    whole = np.array(outcomes)
    measured = np.isfinite(scales)
    for x in xs:
        noise = (whole - x)[:, measured] / scales[measured]
        log_weight = -(0.5 * noise**2 if gaussian else np.abs(noise)).sum(axis=1)
        rows.append(log_weight - np.logaddexp.reduce(log_weight))
    return np.array(rows)


@pytest.mark.parametrize("nonnegative", [True, False])
@pytest.mark.parametrize("pinned", [True, False])
def test_pure_claims_cover_every_pair_of_two_leaves(nonnegative, pinned):
    scales = np.array([np.inf if pinned else 3.0, 1.5, 0.8])
    invariant = cg.consistent(PAIR)
    if pinned:
        invariant &= cg.exactly(0)
    if nonnegative:
        invariant &= cg.nonnegative()
    released = cg.condition(cg.Additive(cg.DiscreteLaplace(scales), PAIR), invariant)
    worst = 0.0
    for total in (1, 2, 5):
        xs = [PAIR.roll_up(np.array([k, total - k])) for k in range(total + 1)]
        least = 0 if nonnegative else -60
        rows = laws(PAIR, scales, xs, least=least, pinned=pinned)
        kept = rows.max(axis=0) > -25
        for one, other in itertools.pairwise(rows):
            worst = max(worst, np.abs(one - other)[kept].max())
    claim = released.guarantee("substitute").epsilon
    assert worst <= claim + 1e-9
    # and it is no fiction: without bounds the loss is met
    assert nonnegative or worst == pytest.approx(claim, abs=1e-9)
    assert worst > claim / 2 - 1e-9


def test_a_deep_tree_with_a_pinned_root():
    scales = np.array([np.inf, 2.0, 2.0, 1.0, 1.0, 3.0, 3.0])
    invariant = cg.consistent(DEEP) & cg.exactly(0) & cg.nonnegative()
    released = cg.condition(cg.Additive(cg.DiscreteLaplace(scales), DEEP), invariant)
    leaves = [z for z in itertools.product(range(4), repeat=4) if sum(z) == 3]
    xs = [DEEP.roll_up(np.array(z)) for z in leaves]
    rows = laws(DEEP, scales, xs, least=0, pinned=True, reach=0)
    worst = 0.0
    for i, j in itertools.combinations(range(len(xs)), 2):
        if np.abs(xs[i][3:] - xs[j][3:]).sum() == 2:
            worst = max(worst, np.abs(rows[i] - rows[j]).max())
    claim = released.guarantee("substitute")
    # one record moves between the halves: leaf, half, half, leaf
    assert claim.base_epsilon == pytest.approx(1 / 1 + 1 / 2 + 1 / 2 + 1 / 3)
    assert claim.base_epsilon / 2 < worst <= claim.epsilon


@pytest.mark.parametrize("sigmas", [(1.0, 1.0001), (5.0, 5.5), (20.0, 21.0)])
def test_a_mixture_of_gaussian_parts_keeps_its_delta(sigmas):
    parts = [cg.Additive(cg.DiscreteGaussian(s), PAIR) for s in sigmas]
    released = cg.condition(cg.mixture(parts, [0.5, 0.5]), cg.consistent(PAIR))
    claim = released.guarantee("substitute")
    span = np.arange(-int(9 * max(sigmas)), int(9 * max(sigmas)) + 1)
    first, second = np.meshgrid(span, span, indexing="ij")

    def law(x):
        total = np.zeros(first.shape)
        for s in sigmas:
            noise = (first - x[0]) ** 2 + (second - x[1]) ** 2
            noise = noise + (first + second - x[0] - x[1]) ** 2
            one_entry = np.exp(-0.5 * (span / s) ** 2).sum()
            total += 0.5 * np.exp(-0.5 * noise / s**2) / one_entry**3
        return total / total.sum()

    one, other = law((0, 0)), law((1, -1))
    true_delta = np.maximum(one - np.exp(claim.epsilon) * other, 0.0).sum()
    assert true_delta <= claim.delta
    assert claim.delta >= 1e-6
    # the part alone states the same, so the mixture claims no less
    alone = cg.condition(parts[0], cg.consistent(PAIR)).guarantee("substitute")
    assert claim.delta >= alone.delta


def test_sampler_errors_are_charged_twice_over():
    from congenial.accounting.guarantee import with_sampler_error

    assert with_sampler_error(1.0, 1e-6, 1e-9) == pytest.approx(1e-6 + (1 + np.e) * 1e-9)
    assert with_sampler_error(1e4, 0.0, 1e-9) == 1.0


def test_zcdp_of_a_moved_record():
    released = cg.condition(cg.Additive(cg.DiscreteGaussian(2.0), PAIR), cg.consistent(PAIR))
    claim = released.guarantee("substitute")
    # two leaves change by one: rho = 2 / (2 sigma^2)
    assert claim.rho == pytest.approx(2 / (2 * 4.0))


@pytest.mark.parametrize("make", [cg.condition, cg.image])
def test_two_different_trees_are_refused(make):
    flat = cg.Tree.from_parents([-1] + [0] * 6)
    with pytest.raises(InvariantError, match="not the tree of the mechanism"):
        make(cg.Additive(cg.DiscreteLaplace(2.0), flat), cg.consistent(DEEP))


def test_bounds_of_one_value_count_as_pins():
    invariant = cg.consistent(PAIR) & cg.bounds([10, 0, 0], [10, np.inf, np.inf])
    released = cg.condition(cg.Additive(cg.DiscreteLaplace(2.0), PAIR), invariant)
    with pytest.raises(EmptyNeighbourhoodError):
        released.guarantee("add-remove")
    assert "exact count of 0" in released.guarantee("substitute").unprotected[0]


def test_a_count_revealed_by_small_noise_is_listed():
    # B keeps its count in every pair that keeps A, so its noise costs nothing
    tree = cg.Tree.from_paths(["city/A/a1", "city/A/a2", "city/B/b1", "city/B/b2"])
    scales = np.full(len(tree), 4.0)
    scales[[tree.find("B"), tree.find("city")]] = 0.01
    invariant = cg.consistent(tree) & cg.exactly(["A"]) & cg.nonnegative()
    released = cg.condition(cg.Additive(cg.DiscreteLaplace(scales), tree), invariant)
    claim = released.guarantee("substitute")
    assert claim.epsilon < 1.0
    counts = released.sample(tree.roll_up([3, 4, 7, 2]), 20, cg.seeded(3))
    assert set(counts[:, tree.find("B")].tolist()) == {9}
    assert any("the count of city/B," in told for told in claim.unprotected)


@pytest.mark.parametrize(
    ("lo", "hi", "covered"),
    [
        (0, np.inf, "all datasets"),
        (-5, np.inf, "all datasets"),
        (0, [10, 5, 5], "all datasets that satisfy the bounds"),
        ([1, 0, 0], np.inf, "all datasets that satisfy the bounds"),
    ],
)
def test_bounds_that_data_may_violate_are_part_of_the_claim(lo, hi, covered):
    invariant = cg.consistent(PAIR) & cg.bounds(lo, hi)
    released = cg.condition(cg.Additive(cg.DiscreteLaplace(2.0), PAIR), invariant)
    assert released.guarantee("add-remove").covered == covered


def test_an_alternative_excluded_by_pins_has_weight_zero():
    # z1 is fixed at 2, so the second alternative, z1 >= 5, cannot hold
    base = cg.linear([1, 1], 4) & cg.exactly(0)
    union = (base & cg.bounds([-9, -9], [9, 3])) | (base & cg.bounds([-9, 5], [9, 9]))
    released = cg.condition(cg.Additive(cg.DiscreteLaplace(1.0), 2), union)
    assert released.log_prob([2, 2], [2, 2]) == pytest.approx(0.0, abs=1e-12)
    assert (released.sample([2, 2], 50, cg.seeded(1)) == 2).all()


def test_an_alternative_excluded_by_the_sum_is_refused():
    wide = cg.linear([1, 1], 2)
    union = (wide & cg.bounds([0, 0], [2, 9])) | (wide & cg.bounds([6, 0], [9, 9]))
    with pytest.raises(InfeasibleError, match=r"the bounds of.*row 0 of linear\(\)"):
        cg.condition(cg.Additive(cg.DiscreteLaplace(1.0), 2), union)


def test_an_alternative_may_fix_an_entry_at_another_value():
    base = cg.linear([1, 1], 4)
    union = (base & cg.bounds([1, -9], [1, 9])) | (base & cg.bounds([2, -9], [2, 9]))
    released = cg.condition(cg.Additive(cg.DiscreteLaplace(1.0), 2), union)
    # |z0 - 1| + |z1 - 3| is 0 or 2
    weights = np.exp([0.0, -2.0])
    assert np.exp(released.log_prob([2, 2], [1, 3])) == pytest.approx(weights[1] / weights.sum())


@pytest.mark.parametrize(
    ("epsilon", "factor"),
    [
        (1e-4, "1.00011"),
        (0.001, "1.0011"),
        (0.1, "1.11"),
        (0.7, "2.02"),
        (1.0, "2.72"),
        (1.3, "3.67"),
        (10.0, "2.21e+04"),
        (1e6, "exp(1e+06)"),
    ],
)
def test_the_factor_is_rounded_up_and_never_1(epsilon, factor):
    tree = cg.Tree.from_parents([-1, 0, 0])
    whole = cg.Additive(cg.DiscreteLaplace(2.0), tree)
    stated = replace(
        cg.condition(whole, cg.consistent(tree)).guarantee("substitute"), epsilon=epsilon
    )
    assert f"at most a factor of {factor}, among" in stated.sentence
    assert epsilon > 700.0 or math.exp(epsilon) <= float(factor) * (1.0 + 1e-12)


@pytest.mark.parametrize("weight", [np.nan, np.inf, 0.0, -1.0, 1.5])
def test_a_record_that_adds_no_multiple_of_the_grid_spacing_is_refused(weight):
    with pytest.raises(ArgumentError, match="per_record"):
        cg.Additive(cg.DiscreteLaplace(2.0), PAIR, per_record=weight)


def test_shares_whose_sum_misses_one_by_rounding_reach_epsilon():
    invariant = cg.consistent(DEEP) & cg.exactly(0) & cg.nonnegative()
    noise = cg.calibrate(
        DEEP,
        invariant,
        epsilon=1.0,
        neighbours="substitute",
        split={1: 0.3333333334, 2: 0.6666666667},
    )
    released = cg.condition(cg.Additive(noise, DEEP), invariant)
    assert 1 - 1e-8 < released.guarantee("substitute").epsilon <= 1.0


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"delta": 1.0}, "A delta of 1 allows any release, so this promises nothing."),
        ({"epsilon": 112.0}, "lets a reader be certain of a record, so this promises nothing."),
        ({"epsilon": 20.0, "delta": 0.999}, ""),
    ],
)
def test_a_guarantee_that_promises_nothing_says_so(changes, said):
    tree = cg.Tree.from_parents([-1, 0, 0])
    whole = cg.Additive(cg.DiscreteLaplace(2.0), tree)
    stated = cg.condition(whole, cg.consistent(tree)).guarantee("substitute")
    found = replace(stated, **changes)
    assert said in found.sentence
    assert ("promises nothing" in found.sentence) is bool(said)


def test_claims_of_projections_cover_data_outside_of_the_bounds():
    """The loss of every move between leaves is that of the noise; bounds restrict no dataset."""
    rng = np.random.default_rng(8)
    ancestors = np.array([[0, 1, 3], [0, 1, 4], [0, 2, 5], [0, 2, 6]])
    for _ in range(200):
        scales = rng.uniform(0.5, 4.0, size=7)
        low, high = np.full(7, -np.inf), np.full(7, np.inf)
        at = rng.choice(7, size=3, replace=False)
        low[at], high[at] = 0.0, rng.integers(0, 2, size=3)  # some counts are held at 0
        pinned = rng.random() < 0.5
        invariant = cg.consistent(DEEP) & cg.bounds(low, high)
        if pinned:
            scales[0] = np.inf
            invariant &= cg.exactly(0)
        mechanism = cg.Additive(cg.DiscreteLaplace(scales), DEEP)
        losses = [
            (1.0 / scales[np.setxor1d(one, other)]).sum()
            for one, other in itertools.combinations(ancestors, 2)
        ]
        stated = cg.image(mechanism, invariant, integer=True).guarantee("substitute")
        assert stated.epsilon == pytest.approx(max(losses), rel=1e-12)
        assert "bounds" not in stated.sentence
        if not pinned:
            alone = max((1.0 / scales[path]).sum() for path in ancestors)
            stated = cg.imaging.topdown_image(mechanism, invariant).guarantee("add-remove")
            assert stated.epsilon == pytest.approx(alone, rel=1e-12)


def test_a_guarantee_is_shown_with_what_it_does_not_protect():
    noise, exact = cg.Additive(cg.DiscreteLaplace(2.0), PAIR), cg.exactly([0])
    stated = cg.condition(noise, cg.consistent(PAIR) & exact).guarantee("substitute")
    assert (
        repr(stated) == f"Guarantee(epsilon=1, delta={stated.delta:.2g}, neighbours='substitute')"
    )
    shown = facts(stated._repr_html_())
    assert (shown["epsilon"], shown["neighbours"]) == ("1", "substitute")
    assert shown["not protected"] == "; ".join(stated.unprotected)
    assert texts(stated._repr_html_())[-1] == stated.sentence
    noise = cg.Additive(cg.DiscreteGaussian(2.0), PAIR)
    gaussian = cg.condition(noise, cg.consistent(PAIR)).guarantee("substitute")
    assert f"rho={gaussian.rho:.6g}" in repr(gaussian)
    assert facts(gaussian._repr_html_())["rho (zCDP)"] == f"{gaussian.rho:.6g}"
    added = cg.condition(noise, cg.consistent(PAIR)).guarantee("add-remove")
    assert facts(added._repr_html_())["not protected"] == "nothing is published exactly"


@pytest.mark.parametrize("engine", [cg.condition, cg.image])
@pytest.mark.parametrize("sigma", [0.8, 6.4, 40.0])
def test_real_gaussian_noise_under_equalities_has_its_exact_epsilon(engine, sigma):
    tree = cg.Tree.from_parents([-1, 0, 0, 0])
    noise = cg.Gaussian([np.inf, sigma, sigma, sigma])
    claim = engine(cg.Additive(noise, tree), cg.consistent(tree) & cg.exactly(0)).guarantee(
        "substitute"
    )
    # the density of the loss, N(rho, 2 rho), integrated on a grid
    loss = claim.rho + math.sqrt(2 * claim.rho) * np.linspace(-12, 12, 2_000_001)
    weight = np.exp(-((loss - claim.rho) ** 2) / (4 * claim.rho))
    spent = float((weight * -np.expm1(np.minimum(claim.epsilon - loss, 0.0))).sum() / weight.sum())
    assert spent == pytest.approx(1e-6, rel=1e-4)
    assert claim.epsilon < zcdp_epsilon(claim.rho, 1e-6)
    assert claim.gamma == 0.0


def test_integer_gaussian_noise_loses_more_than_real_noise_and_less_than_is_claimed():
    tree = cg.Tree.from_parents([-1, 0, 0])
    total = cg.consistent(tree) & cg.exactly(0)
    scales = [np.inf, 6.4, 6.4]
    claim = cg.condition(cg.Additive(cg.DiscreteGaussian(scales), tree), total)
    real = cg.condition(cg.Additive(cg.Gaussian(scales), tree), total)
    rows = np.array([[9, z, 9 - z] for z in range(-60, 70)])
    here, there = (np.asarray(claim.log_prob(rows, x)) for x in ([9, 4, 5], [9, 5, 4]))

    def delta(epsilon):
        return float(np.maximum(0.0, np.exp(here) - np.exp(epsilon + there)).sum())

    stated = claim.guarantee("substitute").epsilon
    assert stated == pytest.approx(1.0013, abs=1e-4)
    assert real.guarantee("substitute").epsilon == pytest.approx(0.929, abs=5e-4)
    # the least epsilon at this delta lies between 0.930 and 0.931
    assert delta(0.930) > 1e-6 > delta(0.931)
