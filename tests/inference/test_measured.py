"""Measurements that are refused, and why."""

from __future__ import annotations

import numpy as np
import pytest

import congenial as cg
from congenial.errors import ArgumentError, InfeasibleError, UnsupportedError

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
