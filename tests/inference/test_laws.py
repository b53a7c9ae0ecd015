"""The evidence about each node: bounds that follow from the children's bounds."""

from __future__ import annotations

import numpy as np
import pytest

import congenial as cg
from congenial.inference import posteriors
from congenial.inference.laws import evidence_of
from congenial.inference.measured import pose
from congenial.kernels.numerics import laws
from congenial.sum_network import families
from congenial.sum_network.families import wide_noise
from support.bounded_trees import p_value, posterior_filled, random_tree

LEAST = 1e-6


def test_bounds_of_parents_are_no_wider_than_their_childrens():
    tree = cg.Tree.from_parents([-1, 0, 0, 1, 1])
    mechanism = cg.Additive(cg.DiscreteLaplace([2.0, np.inf, 2.0, 2.0, 2.0]), tree)
    known = cg.consistent(tree) & cg.bounds(
        lo=[-np.inf, -np.inf, 2, 1, -np.inf], hi=[np.inf, 20, 5, 3, 4]
    )
    found = evidence_of(pose([9, 0, 3, 2, 4], mechanism, known, nonnegative_leaves=True))
    assert found.lo.tolist() == [3.0, 1.0, 2.0, 1.0, 0.0]
    assert found.hi.tolist() == [12.0, 7.0, 5.0, 3.0, 4.0]
    assert found.kind.tolist() == [laws.LAPLACE, laws.FLAT, *[laws.LAPLACE] * 3]


def measured(source, n, scale):
    """Return a random tree, and measurements that are wide, negative ones among them."""
    tree, x = random_tree(source, n)
    y = x + np.rint(source.laplace(0.0, scale, len(tree))).astype(np.int64)
    y[0] = x[0]
    return tree, y


@pytest.mark.parametrize("seed", range(10))
def test_draws_by_families_have_the_posterior_law(seed):
    source = np.random.default_rng(seed)
    scale, pinned = float(source.choice([0.7, 3.0, 8.0])), bool(source.integers(2))
    tree, y = measured(source, int(source.integers(4, 20)), scale)
    law, sums, zero = posterior_filled(tree, scale, y, pinned=pinned)
    draws = zero + families.sample(sums, 20_000, cg.seeded(seed))
    assert (draws[:, tree.leaves] >= 0).all()
    assert (draws == tree.roll_up(draws[:, tree.leaves])).all()
    other, _, _ = posterior_filled(tree, 1.3 * scale, y, pinned=pinned)
    told = []
    for v in range(len(tree)):
        assert min(p_value(draws[:, v], *law.marginal(v)), default=1.0) > LEAST
        told += p_value(draws[:, v], *other.marginal(v))
    if len(told) > 3:
        assert min(told) < LEAST


def test_sums_of_some_counts_come_from_tables_of_families_under_wide_noise(monkeypatch):
    monkeypatch.setattr(wide_noise, "_WORTH", 1.0)
    monkeypatch.setattr(posteriors, "MANY_VALUES", 1)
    source = np.random.default_rng(4)
    tree, y = measured(source, 60, 6.0)
    law, sums, _ = posterior_filled(tree, 6.0, y, pinned=True)
    assert isinstance(law._law._draws[0], families.FamilySums) and sums is not None
    asked = tree.leaves[[1, 4, 9]].tolist()
    some = law._sums_alone(asked, 20_000, cg.seeded(1))
    whole = law.sample(20_000, rng=cg.seeded(2))[:, asked].sum(axis=1)
    every = np.union1d(some, whole)
    steps = [np.searchsorted(np.sort(z), every, side="right") / z.size for z in (some, whole)]
    # Kolmogorov and Smirnov: probability below 1e-6
    assert np.abs(steps[0] - steps[1]).max() < 2.7 * np.sqrt(2.0 / some.size)
    low, high = law.interval_of_sum(asked, 0.1, rng=cg.seeded(3))
    assert 0.88 < ((whole >= low) & (whole <= high)).mean() < 0.95


def test_measurements_far_apart_under_wide_noise_are_drawn():
    """Under a flat prior, many small counts pull their sums far above the measurements."""
    tree = cg.Tree.from_parents([-1, *[0] * 20, *np.repeat(np.arange(1, 21), 400)])
    source = np.random.default_rng(6)
    x = tree.roll_up(source.poisson(6.0, 8000) * (source.random(8000) < 0.2))
    for scale in (10.0, 20.0, 50.0):
        y = x + np.rint(source.laplace(0.0, scale, len(tree))).astype(np.int64)
        y[0] = x[0]
        law, sums, zero = posterior_filled(tree, scale, y, pinned=True)
        assert sums is not None
        drawn = zero + families.sample(sums, 20, cg.seeded(1))
        assert (drawn[:, 0] == x[0]).all() and (drawn >= 0).all()
        at = drawn[:, 1:21].mean(axis=0)
        found = [law.marginal(v) for v in (1, 7, 20)]
        for v, (values, p) in zip((1, 7, 20), found, strict=True):
            mean = p @ values
            deviation = np.sqrt(p @ (values - mean) ** 2)
            assert abs(at[v - 1] - mean) < 6.0 * deviation / np.sqrt(20.0)
