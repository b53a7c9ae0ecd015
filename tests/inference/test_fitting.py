"""Priors fitted to measurements: their likelihoods and moments by brute force, and what they do."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import congenial as cg
from congenial.errors import ArgumentError
from congenial.inference import fitting
from congenial.inference import point_tables as points
from congenial.kernels.network import evidence, leaves, priors
from congenial.kernels.numerics import laws
from papers.studies.sources import blocks

COUNTS = np.arange(400)


def negative_binomial(mean, r):
    logs = [math.lgamma(k + r) - math.lgamma(r) - math.lgamma(k + 1.0) for k in COUNTS]
    b = mean / (mean + r)
    return np.exp(np.array(logs) + COUNTS * math.log(b) + r * math.log1p(-b))


@pytest.mark.parametrize("gaussian", [False, True])
def test_likelihoods_of_families(gaussian):
    # negative, equal, overlapping and far measurements; two scales; a family of one; two families
    # of one mean, which share a measurement
    mean = np.array([12.0, 20.0, 40.0])
    families = [[-40, -3, 0, 0, 5, 17, 150], [33], [2, 300], [5, 9]]
    of_mean = [[0, 3], [1], [2]]
    dispersions, zeros = np.array([0.05, 0.7, 30.0]), np.array([0.0, 0.3, 0.9])
    leaves = [[(y, 2.0 + y % 2, f) for f in fs for y in families[f]] for fs in of_mean]
    once = [sorted({leaf[:2] for leaf in group}) for group in leaves]
    start = np.cumsum([0, *map(len, once)])
    number = [
        start[g] + once[g].index(leaf[:2]) for g, group in enumerate(leaves) for leaf in group
    ]
    y, scale = (np.array(column) for column in zip(*itertools.chain(*once), strict=True))
    inverse = 0.5 / scale**2 if gaussian else 1.0 / scale
    most = 60 if not gaussian else 30
    out = np.zeros((4, zeros.size, dispersions.size))
    evidence.family_curves(
        start,
        y.astype(np.int64),
        inverse,
        gaussian,
        np.full(y.size, most),
        mean,
        dispersions,
        zeros,
        np.cumsum([0, *map(len, leaves)]),
        np.array(number),
        np.array([leaf[2] for group in leaves for leaf in group]),
        out,
    )
    for f in range(4):
        m = mean[[f in group for group in of_mean].index(True)]
        for h, q in enumerate(zeros):
            for j, r in enumerate(dispersions):
                p = (1.0 - q) * negative_binomial(m / (1.0 - q), r)
                wanted = 0.0
                for value in families[f]:
                    d = np.abs(COUNTS - value).astype(float)
                    width = 2.0 + value % 2
                    law = np.exp(-0.5 * (d / width) ** 2 if gaussian else -d / width)
                    near = d <= max(most, -value)
                    whole = (p * law)[near].sum() + q * law[0]
                    wanted += math.log(max(whole, 1e-300))
                assert out[f, h, j] == pytest.approx(wanted, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("kind", [laws.LAPLACE, laws.GAUSSIAN, laws.FLAT])
@pytest.mark.parametrize("zero", [0.0, 3.0])
@pytest.mark.parametrize("center", [-6.0, 0.0, 25.0])
def test_moments_of_leaves(kind, zero, center):
    mean, r, base, tilt = 9.0, 0.6, 4.0, -0.03
    b = mean / (mean + r)
    inverse = {laws.LAPLACE: 0.5, laws.GAUSSIAN: 0.02, laws.FLAT: 0.0}[kind]
    u = COUNTS - base
    d = np.abs(u - center)
    p = negative_binomial(mean, r)
    p[0] *= math.exp(zero)
    w = p * np.exp(tilt * u - inverse * (d * d if kind == laws.GAUSSIAN else d))
    w /= w.sum()
    out = np.empty((1, 4))
    scale = {laws.LAPLACE: 2.0, laws.GAUSSIAN: 5.0, laws.FLAT: 1.0}[kind]
    columns = (scale, center, -base, np.inf, b * r, b, base, zero, tilt)
    leaves.leaf_moments(np.array([kind]), *(np.array([float(c)]) for c in columns), 45.0, out)
    assert out[0, 0] == pytest.approx(w @ u, rel=1e-6, abs=1e-6)
    assert out[0, 1] == pytest.approx(w @ (u - w @ u) ** 2, rel=1e-5)
    # slopes at the far ends: of prior, noise and tilt above; below, the counts end
    if kind == laws.LAPLACE:
        assert out[0, 3] == pytest.approx(0.5 + 0.03 - math.log(b), rel=0.15)
    if center == -6.0:
        assert out[0, 2] == np.inf


@pytest.mark.parametrize("kind", [laws.LAPLACE, laws.GAUSSIAN, laws.FLAT])
@pytest.mark.parametrize("zero", [0.0, 3.0, 900.0])
@pytest.mark.parametrize(("center", "low"), [(-6.0, 0), (25.0, 0), (3000.0, 0), (25.0, 7)])
def test_weights_of_leaves(kind, zero, center, low):
    # shapes with a mode at 0, at the measurement, at both, and far beyond what a float holds
    inverse = {laws.LAPLACE: 0.5, laws.GAUSSIAN: 0.02, laws.FLAT: 0.0}[kind]
    base, tilt, size = 4.0, -0.03, 3300 if center > 1000.0 else 90
    for mean, r in ((9.0, 0.6), (9.0, math.inf), (0.1, 2.0)):
        b = 0.0 if r == math.inf else mean / (mean + r)
        a = mean if r == math.inf else b * r
        k = np.arange(low, low + size)
        u = k - base
        d = np.abs(u - center)
        law = tilt * u - inverse * (d * d if kind == laws.GAUSSIAN else d)
        steps = np.log((a + b * np.arange(low + size)) / (np.arange(low + size) + 1.0))
        prior = np.append(0.0, np.cumsum(steps))[k]
        logs = law + prior + np.where(k == 0, zero, 0.0)
        out = np.empty(size)
        lo = low - int(base)
        top = priors.fill_leaf(kind, inverse, center, a, b, base, zero, tilt, lo, out)
        assert top == pytest.approx(logs.max(), rel=1e-9, abs=1e-9)
        assert out.max() == 1.0 == out[np.argmax(logs)]
        np.testing.assert_allclose(out, np.exp(logs - logs.max()), rtol=1e-9, atol=1e-290)


def measured(tree, x, scale, seed):
    mechanism = cg.Additive(cg.DiscreteLaplace(scale), tree)
    return mechanism.sample(x, rng=cg.seeded(seed)), mechanism, cg.consistent(tree)


def test_shares_of_empty_leaves_pay(monkeypatch):
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


def test_points_are_the_same_however_far_values_are_told_apart(monkeypatch):
    tree, x = blocks("53067")
    law = cg.posterior(*measured(tree, x, 10.0, 2), "negative-binomial")
    draws = law.sample(15, cg.seeded(3))
    losses = []
    for near in (1, 4, 10**4):
        monkeypatch.setattr(points, "_NEAR", near)
        chances = points.chances_of_draws(draws)
        found = points.least_absolute(tree, chances, draws[0], law._limits, cg.seeded(4))
        assert tree.is_consistent(found)
        losses.append(np.abs(draws - found).sum())
    assert len(set(losses)) == 1


@pytest.mark.parametrize("scale", [15.0, 40.0])
def test_noise_above_the_counts_tells_of_no_empty_leaves(scale):
    tree, x = blocks("53067")
    law = cg.posterior(*measured(tree, x, scale, 0), "negative-binomial")
    assert law.prior.zeros.max() == 0.0
    assert law.error_bound < 1e-6


def test_leaves_that_are_exact_leave_nothing_to_fit():
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
