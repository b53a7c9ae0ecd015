"""Coverage of posteriors under a fitted prior, on simulated datasets of small families."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import congenial as cg
from congenial.errors import UnsupportedError
from congenial.sum_network import count_tables as tables

# Families of 3 leaves and more; the log of their mean is normal; counts are Poisson about gamma
# rates of one dispersion.
WORLDS = {
    "small counts": {"most": 8, "mean": 3.0, "spread": 0.7, "dispersion": 3.0},
    "tiny counts": {"most": 6, "mean": 1.0, "spread": 1.0, "dispersion": 1.0},
    "skewed": {"most": 8, "mean": 20.0, "spread": 1.0, "dispersion": 0.4},
    "long families": {"most": 30, "mean": 30.0, "spread": 1.2, "dispersion": 0.7},
    "large and skewed": {"most": 6, "mean": 500.0, "spread": 1.5, "dispersion": 0.3},
}
FAMILIES, GROUPS, REPLICATES = 40, 6, 5
# By class of the estimate; a class of fewer leaves is not looked at.
CLASSES, ENOUGH = (0, 1, 10, 100), 100


def world(kind, seed):
    rng = np.random.default_rng(seed)
    given = WORLDS[kind]
    parents = [-1, *[0] * GROUPS, *(1 + f % GROUPS for f in range(FAMILIES))]
    counts = []
    for f in range(FAMILIES):
        size = int(rng.integers(3, given["most"] + 1))
        mean = given["mean"] * np.exp(given["spread"] * rng.normal())
        rates = rng.gamma(given["dispersion"], mean / given["dispersion"], size)
        parents += [1 + GROUPS + f] * size
        counts += rng.poisson(rates).tolist()
    tree = cg.Tree.from_parents(parents)
    return tree, tree.roll_up(np.array(counts))


@cache
def covered(kind, scale, told):
    """Shares of 90% intervals that hold: of leaves, by class of the estimate, of inner nodes."""
    holds, classes, inner = [], [], []
    for seed in range(REPLICATES):
        tree, x = world(kind, seed)
        y = cg.Additive(cg.DiscreteLaplace(scale), tree).sample(x, rng=cg.seeded(seed))
        mechanism = cg.Additive(cg.DiscreteLaplace(scale * told), tree)
        found = cg.posterior(y, mechanism, cg.consistent(tree), "negative-binomial").summary(0.1)
        held = (found.lower <= x) & (x <= found.upper)
        leaf = tree.is_leaf
        holds.append(held[leaf])
        inner.append(held[~leaf])
        classes.append(np.searchsorted(CLASSES, np.rint(found.mean[leaf]), side="right"))
    held, place = np.concatenate(holds), np.concatenate(classes)
    by_class = [held[place == c].mean() for c in np.unique(place) if (place == c).sum() >= ENOUGH]
    return float(held.mean()), by_class, float(np.concatenate(inner).mean())


@pytest.mark.parametrize("scale", [4.0, 15.0])
@pytest.mark.parametrize("kind", WORLDS)
def test_intervals_of_small_families_have_the_stated_coverage(kind, scale):
    leaves, by_class, inner = covered(kind, scale, 1.0)
    assert 0.87 < leaves < 0.96
    assert min(by_class) > 0.75
    assert inner > 0.8


@pytest.mark.parametrize("scale", [4.0, 15.0])
def test_intervals_for_too_small_a_scale_lack_coverage(scale):
    # where counts are small and alike, the prior holds more than the measurements do
    kinds = ("skewed", "long families", "large and skewed")
    right, wrong = ([covered(kind, scale, told) for kind in kinds] for told in (1.0, 0.7))
    assert np.mean([found[0] for found in wrong]) < 0.87 < np.mean([found[0] for found in right])
    assert np.mean([found[2] for found in wrong]) < 0.84 < np.mean([found[2] for found in right])


def test_without_measured_sums_leaves_have_coverage_and_sums_less():
    # a limit that pages tell: the fit's own error is shared by all leaves, but no prior says so
    families, size, scale = 8, 30, 5.0
    tree = cg.Tree.from_parents([-1, *[0] * families, *np.repeat(np.arange(8) + 1, size).tolist()])
    scales = np.where(tree.is_leaf, scale, np.inf)
    held = np.zeros(3)
    for seed in range(20):
        counts = np.random.default_rng(seed).negative_binomial(1, 0.5, families * size)
        x = tree.roll_up(counts)
        y = cg.Additive(cg.DiscreteLaplace(scale), tree).sample(x, rng=cg.seeded(seed))
        shown = np.where(tree.is_leaf, y, np.nan)
        mechanism = cg.Additive(cg.DiscreteLaplace(scales), tree)
        law = cg.posterior(shown, mechanism, cg.consistent(tree), "negative-binomial")
        found = law.summary(0.1)
        inside = (found.lower <= x) & (x <= found.upper)
        held += [inside[tree.level == level].mean() / 20.0 for level in range(3)]
    assert 0.85 < held[2] < 0.98
    assert held[0] < held[1] < held[2]


def test_a_small_count_in_a_small_skewed_family_is_not_held_to_be_zero():
    tree = cg.Tree.from_parents([-1, 0, 0, 0, 0])
    mechanism = cg.Additive(cg.DiscreteLaplace(5.0), tree)
    y = [2010, 1007, 1000, 3, 0]
    law = cg.posterior(y, mechanism, cg.consistent(tree), "negative-binomial")
    found = law.summary(0.1)
    assert law.prior.zeros.max() == 0.0
    assert found.mean[3] > 1.0
    assert found.lower[3] <= 3 <= found.upper[3]


@pytest.mark.parametrize("size", [10**6, 10**9, 10**12])
@pytest.mark.parametrize("alike", [True, False])
def test_large_counts_have_posteriors(size, alike):
    tree = cg.Tree.from_parents([-1, *[0] * 4, *[v for v in range(1, 5) for _ in range(5)]])
    rng = np.random.default_rng(size)
    rates = np.full(20, float(size)) if alike else rng.gamma(0.5, size, 20)
    x = tree.roll_up(rng.poisson(rates))
    for noise in (cg.DiscreteLaplace(5.0), cg.DiscreteGaussian(20.0)):
        mechanism = cg.Additive(noise, tree)
        y = mechanism.sample(x, rng=cg.seeded(1))
        law = cg.posterior(y, mechanism, cg.consistent(tree), "negative-binomial")
        found = law.summary(0.1)
        assert np.abs(found.mean - x).max() < 120.0
        assert (found.upper - found.lower).max() < 100
        assert law.error_bound < 1e-7


def measured_in_billions(prior):
    tree = cg.Tree.from_parents([-1, *[0] * 12])
    x = tree.roll_up(np.random.default_rng(1).gamma(1.0, 1e9, 12).astype(np.int64))
    mechanism = cg.Additive(cg.DiscreteLaplace(50.0), tree)
    y = mechanism.sample(x, rng=cg.seeded(1))
    return cg.posterior(y, mechanism, cg.consistent(tree), prior)


def test_too_long_computations_are_refused_at_once():
    with pytest.raises(UnsupportedError, match="a prior nearer to the measurements"):
        measured_in_billions("poisson").summary()


def test_measurements_a_billion_counts_above_all_likely_ones_are_weighed():
    # every measurement of scale 50 lies above, so that it multiplies each count's ratio by e^0.02
    mean, r = 5.0, 0.5
    found = measured_in_billions(cg.inference.Prior(mean, r)).summary()
    b = mean / (mean + r) * np.exp(2.0 / 50.0)
    # values are counted from measurements of 5e9, so that logs of weights have errors of 1e-8
    np.testing.assert_allclose(found.mean[1:], r * b / (1.0 - b), rtol=1e-6)
    np.testing.assert_allclose(found.standard_deviation[1:] ** 2, r * b / (1.0 - b) ** 2, rtol=1e-6)


@pytest.mark.parametrize("noise", [cg.DiscreteGaussian, cg.DiscreteLaplace])
@pytest.mark.parametrize("narrow", [0.05, 0.001])
def test_leaves_measured_almost_exactly_leave_the_others_their_law(noise, narrow):
    # one count beside a measurement costs 200 nats and more
    tree = cg.Tree.from_parents([-1, 0, 0, 0])
    mechanism = cg.Additive(noise([5.0, narrow, narrow, 2.0]), tree)
    law = cg.posterior([12, 3, 4, 5], mechanism, cg.consistent(tree), cg.inference.Prior(4.0))
    k = np.arange(80)
    power = 2 if noise is cg.DiscreteGaussian else 1
    log = k * np.log(4.0) - np.cumsum(np.log(np.maximum(k, 1)))
    log -= (np.abs(k - 5) / 2.0) ** power / power + (np.abs(7 + k - 12) / 5.0) ** power / power
    weight = np.exp(log - log.max())
    mean = weight @ k / weight.sum()
    np.testing.assert_allclose(law.mean(), [7.0 + mean, 3.0, 4.0, mean], atol=1e-7)


def test_the_costs_of_many_windows_are_added_up(monkeypatch):
    monkeypatch.setattr(tables._Filled, "lost", lambda *_: 1.0)
    monkeypatch.setattr(tables, "_VAIN_LIMIT", 1)
    tree = cg.Tree.from_parents([-1, 0, 0])
    mechanism = cg.Additive(cg.DiscreteLaplace(5.0), tree)
    law = cg.posterior(
        [200, 150, 60], mechanism, cg.consistent(tree), cg.inference.Prior(90.0, 2.0)
    )
    with pytest.raises(UnsupportedError, match="products"):
        law.summary()


def test_large_tables_succeed_at_the_fourth_filling(monkeypatch):
    lost = iter([1.0, 1.0, 0.0])
    monkeypatch.setattr(tables, "_VAIN_LIMIT", 1)
    monkeypatch.setattr(tables._Filled, "lost", lambda *_: next(lost))
    tree = cg.Tree.from_parents([-1, 0, 0])
    mechanism = cg.Additive(cg.DiscreteLaplace(5.0), tree)
    law = cg.posterior(
        [200, 150, 60], mechanism, cg.consistent(tree), cg.inference.Prior(90.0, 2.0)
    )
    assert law.summary().lower[0] > 150


def test_empty_leaves_far_from_all_others_are_refused():
    tree = cg.Tree.from_parents([-1, 0, 0])
    mechanism = cg.Additive(cg.DiscreteLaplace(40.0), tree)
    given = [3100, 3000, 20], mechanism, cg.consistent(tree)
    assert cg.posterior(*given, cg.inference.Prior(3000.0, 2.0, 0.5)).summary().lower[2] == 0
    with pytest.raises(UnsupportedError, match="by 973, and the limit is 20; give smaller"):
        cg.posterior(*given, cg.inference.Prior(3000.0, 500.0, 0.5)).summary()
