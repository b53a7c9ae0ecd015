"""Priors fitted to measurements: their likelihoods and moments by brute force, and what they do."""

from __future__ import annotations

import numpy as np
import pytest

import congenial as cg
from congenial.errors import ArgumentError
from congenial.inference import fitting
from congenial.inference import point_tables as points
from congenial.inference.measured import pose
from papers.studies.sources import blocks


def measured(tree, x, scale, seed):
    mechanism = cg.Additive(cg.DiscreteLaplace(scale), tree)
    return mechanism.sample(x, rng=cg.seeded(seed)), mechanism, cg.consistent(tree)


def test_a_share_of_empty_leaves_improves_the_fit(monkeypatch):
    tree, x = blocks("53067")
    given = measured(tree, x, 4.0, 1)
    found = {}
    for zeros in (fitting._ZEROS, np.zeros(1)):
        monkeypatch.setattr(fitting, "_ZEROS", zeros)
        law = cg.posterior(*given, "negative-binomial")
        error = np.abs(law.summary().mean - x)[tree.leaves].mean()
        found[zeros.size] = law.log_evidence(), error
    assert found[8][0] > found[1][0] + 20.0
    assert found[8][1] < found[1][1]


def test_a_large_leaf_among_empty_ones_keeps_its_count():
    families, empty = 30, 200
    parents = [-1, *[0] * families, 1, *[1] * empty]
    counts = [1200, *[0] * empty]
    for f in range(2, families + 1):
        parents += [f] * 12
        counts += [40, 90, 0, 25, 60, 110, 30, 75, 20, 50, 0, 35]
    tree = cg.Tree.from_parents(parents)
    x = tree.roll_up(np.array(counts))
    large = int(np.argmax(x * tree.is_leaf))
    off = []
    for seed in range(6):
        law = cg.posterior(*measured(tree, x, 4.0, seed), "negative-binomial")
        found = law.summary()
        off.append(found.mean[large] - x[large])
        assert found.lower[large] - 5 <= x[large] <= found.upper[large] + 5
    # one shape for all families takes some twenty from it
    assert abs(np.mean(off)) < 6.0


def test_best_tables_do_not_depend_on_the_first_window(monkeypatch):
    tree, x = blocks("53067")
    law = cg.posterior(*measured(tree, x, 10.0, 2), "negative-binomial")
    draws = law.sample(15, cg.seeded(3))
    losses = []
    for near in (1, 4, 1000):  # the last is wide enough at once
        monkeypatch.setattr(points, "_NEAR", near)
        chances = points.chances_of_draws(draws)
        found = points.least_absolute(tree, chances, draws[0], law._limits, cg.seeded(4))
        assert tree.is_consistent(found)
        losses.append(np.abs(draws - found).sum())
    assert len(set(losses)) == 1


@pytest.mark.parametrize("scale", [15.0, 40.0])
def test_noise_above_the_counts_gives_no_share_of_empty_leaves(scale):
    tree, x = blocks("53067")
    law = cg.posterior(*measured(tree, x, scale, 0), "negative-binomial")
    assert law.prior.zeros.max() == 0.0
    assert law.error_bound < 1e-6


def test_exact_leaves_need_no_fit():
    tree = cg.Tree.from_parents([-1, 0, 0, 0])
    y, mechanism, known = measured(tree, tree.roll_up([3, 0, 5]), 2.0, 1)
    y[1:] = 3, 0, 5
    law = cg.posterior(y, mechanism, known & cg.exactly([1, 2, 3]), "negative-binomial")
    assert law.summary().lower.tolist() == [8, 3, 0, 5]


def test_shares_of_zeros_are_checked():
    for wrong in (-0.1, 1.0, np.nan, [0.2, 2.0]):
        with pytest.raises(ArgumentError, match="zeros has an entry outside 0 to 1"):
            cg.inference.Prior(3.0, 1.0, wrong)
    tree = cg.Tree.from_parents([-1, 0, 0])
    given = measured(tree, tree.roll_up([3, 0]), 1.0, 1)
    with pytest.raises(ArgumentError, match="3 zeros"):
        cg.posterior(*given, cg.inference.Prior(3.0, 1.0, [0.1, 0.2, 0.3]))
    # all counts of 0 come from the share that is empty besides where the mean is large
    law = cg.posterior(
        [0, 0, 0],
        cg.Additive(cg.DiscreteLaplace(1.0), tree),
        cg.consistent(tree),
        cg.inference.Prior(20.0, 40.0, 0.5),
    )
    assert law.summary().mean[0] < 1e-5


@pytest.mark.parametrize("seed", range(30))
def test_variances_of_families_where_nodes_are_not_measured_against_least_squares(seed):
    generator = np.random.default_rng(seed)
    n = int(generator.integers(3, 25))
    tree = cg.Tree.from_parents([-1, *(int(generator.integers(0, v)) for v in range(1, n))])
    scales = np.exp(generator.uniform(0.0, 4.0, n))
    scales[generator.random(n) < 0.6] = np.inf
    mechanism = cg.Additive(cg.DiscreteGaussian(scales), tree)
    y = np.where(np.isfinite(scales), 3.0, np.nan)
    problem = pose(y, mechanism, cg.consistent(tree), nonnegative_leaves=True)
    _, group = np.unique(tree.parents[tree.leaves], return_inverse=True)
    noise = mechanism.noise.variances(scales)
    found = fitting._variances(problem, tree.leaves, group, noise)
    sums = tree.roll_up(np.eye(tree.leaves.size, dtype=np.int64)).T
    seen = np.isfinite(scales)
    rows = sums[seen] / np.sqrt(noise[seen])[:, None]
    for family, variance in enumerate(found):
        ones = (group == family).astype(float)
        inverse = np.linalg.pinv(rows.T @ rows, rcond=1e-12)
        known = np.abs(rows.T @ rows @ inverse @ ones - ones).max() < 1e-8
        assert np.isfinite(variance) == known
        if known:
            assert variance == pytest.approx(ones @ inverse @ ones, rel=1e-6)


def test_families_that_nothing_measures_have_no_huge_means():
    # 1e30 stood for an infinite variance; two combined were less, and the mean became 1e14
    tree = cg.Tree.from_parents([-1, 0, 0, 1, 1, 2, 2])
    scales = np.array([np.inf, 9.0, np.inf, np.inf, np.inf, np.inf, np.inf])
    mechanism = cg.Additive(cg.DiscreteGaussian(scales), tree)
    y = np.where(np.isfinite(scales), 5.0, np.nan)
    problem = pose(y, mechanism, cg.consistent(tree), nonnegative_leaves=True)
    for family in ("poisson", "negative-binomial"):
        assert fitting.fit(problem, family).mean.max() < 10.0
