"""Measurements that are refused, and why."""

from __future__ import annotations

import numpy as np
import pytest

import congenial as cg
from congenial.errors import ArgumentError, InfeasibleError, InvariantError, UnsupportedError
from congenial.inference.measured import pose

INF = np.inf


def test_mistakes_are_refused_with_a_message():
    tree = cg.Tree.from_parents([-1, 0, 0])
    mechanism = cg.Additive(cg.DiscreteLaplace([1.0, INF, INF]), tree)
    known = cg.consistent(tree) & cg.nonnegative()
    with pytest.raises(ArgumentError, match="prior is 'uniform'"):
        cg.posterior([1, 0, 0], mechanism, known, "uniform")
    with pytest.raises(ArgumentError, match="at node '0'"):
        cg.posterior([np.nan, 0, 0], mechanism, known)
    with pytest.raises(ArgumentError, match="shape"):
        cg.posterior([1, 0], mechanism, known)
    with pytest.raises(UnsupportedError, match="not determined by measurements"):
        cg.posterior([1, 0, 0], mechanism, cg.consistent(tree)).sample(rng=cg.seeded(1))
    with pytest.raises(UnsupportedError, match="tree"):
        cg.posterior([1, 0, 0], mechanism, cg.nonnegative())
    with pytest.raises(InfeasibleError):
        cg.posterior([-3, 0, 0], mechanism, known & cg.exactly(1) & cg.bounds(hi=[-1, INF, INF]))
    with pytest.raises(ArgumentError, match="positive"):
        cg.inference.Prior(0.0)
    with pytest.raises(ArgumentError, match="means"):
        cg.posterior([1, 0, 0], mechanism, known, cg.inference.Prior([1.0, 2.0, 3.0]))
    law = cg.posterior([1, 0, 0], mechanism, known)
    with pytest.raises(ArgumentError, match="alpha"):
        law.interval(0, 2.0)
    with pytest.raises(ArgumentError, match="truth"):
        law.probability(lambda z: z[:, 0], rng=cg.seeded(1))


def test_an_exact_count_given_as_zero_over_large_measurements_is_refused():
    tree = cg.Tree.from_paths(["all/a/1", "all/a/2", "all/b/3"])
    mechanism = cg.Additive(cg.DiscreteLaplace(2.0), tree)
    mandates = cg.consistent(tree) & cg.exactly(["all", "a"]) & cg.nonnegative()
    y = np.array(tree.roll_up([300, 40, 500]))
    for zero, first in ((["all", "a"], "all"), (["a"], "all/a")):
        wrong = y.copy()
        wrong[[tree.find(name) for name in zero]] = 0
        with pytest.raises(InvariantError, match=f"y is 0 at node '{first}', which is published"):
            cg.posterior(wrong, mechanism, mandates)
    cg.posterior(y, mechanism, mandates)


@pytest.mark.parametrize("law", [cg.DiscreteLaplace, cg.DiscreteGaussian])
@pytest.mark.parametrize("scale", [0.3, 40.0])
def test_noise_around_a_true_zero_is_accepted(law, scale):
    tree = cg.Tree.from_paths([f"all/{i}/{i}.{j}" for i in range(20) for j in range(50)])
    mechanism = cg.Additive(law(scale), tree)
    mandates = cg.consistent(tree) & cg.exactly("root") & cg.nonnegative()
    source = cg.seeded(3)
    for _ in range(20):
        y = mechanism.sample(np.zeros(len(tree), dtype=np.int64), rng=source)
        y[0] = 0
        assert cg.posterior(y, mechanism, mandates).problem.hi[0] == 0
    y = 2 * y + 5 * np.rint(1 + scale).astype(int)
    y[0] = 0
    with pytest.raises(InvariantError, match="give the exact"):
        cg.posterior(y, mechanism, mandates)


def posed(y, noise=1.0, invariant=None, **options):
    tree = cg.Tree.from_parents([-1, 0, 0])
    known = cg.consistent(tree) if invariant is None else cg.consistent(tree) & invariant
    mechanism = cg.Additive(cg.DiscreteLaplace(noise), tree)
    return pose(y, mechanism, known, **{"nonnegative_leaves": True, **options})


def test_integers_that_doubles_represent_are_measurements():
    most = 2**52
    assert posed([most, most, 0]).y.tolist() == [most, most, 0]
    for wrong in (most + 1, 0.5, np.inf):
        with pytest.raises(
            ArgumentError, match=r"not an integer of at most 2\^52 in size at node '0/1'"
        ):
            posed([0, wrong, 0])
    # where nothing is measured anything may stand
    found = posed([np.nan, 3, 4], noise=[INF, 1.0, 2.0])
    assert found.measured.tolist() == [False, True, True]
    assert np.isnan(found.groups["observed_data"]["measurement"]).tolist() == [True, False, False]


def test_bounds_that_no_tree_of_counts_satisfies_are_refused():
    for bounds in (
        cg.bounds([-INF, 3, 3], [5, INF, INF]),
        cg.bounds([5, -INF, -INF], [INF, 2, 2]),
        cg.bounds(hi=[-1, INF, INF]),
    ):
        with pytest.raises(InfeasibleError, match="no counts below node '0' satisfy"):
            posed([5, 2, 2], invariant=bounds)
    posed([5, 2, 2], invariant=cg.bounds(hi=[-1, INF, INF]), nonnegative_leaves=False)


def test_counts_around_the_measurements_add_up_within_bounds():
    found = posed([9, -4, 6], noise=[1.0, 1.0, INF], invariant=cg.bounds([-INF, 1, -INF]))
    assert found.around(np.array([7.0, 2.6])).tolist() == [4, 1, 3]
