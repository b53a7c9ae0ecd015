"""Many crossing equalities by a sparse factorisation, against the dense one."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import congenial as cg
from congenial.conditioning.laws.normal import ConditionedGaussian
from congenial.conditioning.laws.sparse_subspace import Sparse
from congenial.conditioning.laws.subspace import (
    Dense,
    OnForest,
    subspace,
)
from congenial.errors import (
    UnsupportedError,
)
from congenial.invariants.written import resolve_invariant
from support.continuous_cases import build, compare, equalities

INF = np.inf


BINARY = cg.Tree.from_parents([-1, 0, 0, 1, 1])


CROSSED = np.array([[0, 0, 0, 1, 1], [0, 0, 1, 0, 1], [0, 1, 1, 1, 0]])


@pytest.mark.parametrize("way", [Dense, Sparse])
@pytest.mark.parametrize("pinned", [(), (1,)])
@pytest.mark.parametrize("sigma", [[1.0] * 5, [0.1, 1.0, 2.0, 0.5, 30.0], [1, INF, 1, 2, 0.5]])
def test_three_ways_to_solve_agree(way, pinned, sigma):
    """A tree is solved in two passes; the test forces the other two ways."""
    sigma = np.array(sigma)
    mechanism, invariant = build(5, sigma, BINARY, pinned)
    resolved = resolve_invariant(invariant, 5, BINARY)
    rows = equalities(5, BINARY, pinned)
    made = cg.condition(mechanism, invariant)
    assert isinstance(made.space, OnForest)
    space = Sparse(resolved) if way is Sparse else Dense(5, resolved.pinned, rows)
    other = ConditionedGaussian(mechanism, resolved, space)
    compare(made, rows, sigma)
    compare(other, rows, sigma)
    x = np.array([6.0, 4.0, 2.0, 1.0, 3.0])
    a, b = (k.sample(x, 20, cg.seeded(3)) for k in (made, other))
    np.testing.assert_allclose(a, b, atol=1e-9)


def test_crossing_sums_are_solved_densely_and_long_ones_sparsely():
    sigma = np.array([1.0, 2.0, 0.5, 1.0, 3.0])
    mechanism, invariant = build(5, sigma, rows=CROSSED)
    made = cg.condition(mechanism, invariant)
    assert isinstance(made.space, Dense)
    compare(made, CROSSED.astype(float), sigma)
    n = 1600  # a table of 40 by 40 with all margins but one
    cells = np.arange(n)
    rows = np.concatenate(
        ([cells // 40 == i for i in range(40)], [cells % 40 == j for j in range(39)])
    ).astype(float)
    table = cg.Additive(cg.Gaussian(2.0), n)
    made = cg.condition(table, cg.linear(rows, np.zeros(79)))
    assert isinstance(made.space, Sparse)
    x = np.zeros(n)
    assert made.marginal(7, x).sd == pytest.approx(2.0 * 39 / 40)  # sigma^2 (1 - 1/40)^2
    z = made.sample(x, rng=cg.seeded(1))
    assert np.abs(rows @ z).max() < 1e-9
    want = -0.5 * (z**2).sum() / 4 - 39**2 * np.log(2 * np.sqrt(2 * np.pi))
    assert made.log_prob(z, x) == pytest.approx(want, rel=1e-9)
    assert "sparse" in made.explain()


def test_without_scipy_long_crossing_sums_are_refused(monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy.sparse", None)
    rows = np.zeros((2, 1600))
    rows[0, :900], rows[1, 800:] = 1, 2
    resolved = resolve_invariant(cg.linear(rows, [0, 0]), 1600)
    with pytest.raises(UnsupportedError, match="need scipy; run pip install scipy, or"):
        subspace(resolved)
    few = resolve_invariant(cg.linear(CROSSED, [0] * 3), 5)
    assert isinstance(subspace(few), Dense)
