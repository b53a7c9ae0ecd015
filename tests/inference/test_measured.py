"""Measurements that are refused, and why."""

from __future__ import annotations

import numpy as np
import pytest

import congenial as cg
from congenial.errors import ArgumentError, InfeasibleError, InvariantError, UnsupportedError

INF = np.inf


def test_mistakes_are_told():
    tree = cg.Tree.from_parents([-1, 0, 0])
    mechanism = cg.Additive(cg.DiscreteLaplace([1.0, INF, INF]), tree)
    known = cg.consistent(tree) & cg.nonnegative()
    with pytest.raises(ArgumentError, match="prior is 'uniform'"):
        cg.posterior([1, 0, 0], mechanism, known, "uniform")
    with pytest.raises(ArgumentError, match="at node '0'"):
        cg.posterior([np.nan, 0, 0], mechanism, known)
    with pytest.raises(ArgumentError, match="shape"):
        cg.posterior([1, 0], mechanism, known)
    with pytest.raises(UnsupportedError, match="held by no measurement"):
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
def test_noise_around_a_true_zero_is_no_mistake(law, scale):
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
