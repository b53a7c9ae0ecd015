"""Normal vectors on a sum forest, against dense linear algebra."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import null_space

from congenial.domain.tree import Tree
from congenial.kernels.network.normal import Climbed, SumArrays, climb, respond, variances
from congenial.sum_network.forest import of_rows, of_tree
from support.seeds import for_each_seed

pytestmark = pytest.mark.kernels


def case(seed):
    """Return a forest, its sums as rows, weights, and which variables are fixed."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 10))
    if seed % 2:
        forest = of_tree(Tree.from_parents([int(rng.integers(-1, v)) for v in range(n)]))
    else:
        signs = rng.choice([-1, 1], n)
        half = n // 2
        forest = of_rows([(np.arange(half + 1), signs[: half + 1])], n)
    fixed = rng.random(n) < 0.15
    weight = rng.choice([0.3, 1.0, 20.0], n)
    weight[rng.random(n) < 0.15] = 0.0
    rows = np.zeros((forest.m, n))
    for k in range(forest.m):
        rows[k, forest.above == k] = 1.0
        if forest.owner[k] >= 0:
            rows[k, forest.owner[k]] -= forest.sign[k]
    return rng, forest, rows, weight, fixed


def climbed(forest, weight, fixed):
    sums = SumArrays(forest.above, forest.owner, forest.sign, forest.order)
    below = Climbed(np.empty(forest.n), np.empty(forest.m), np.empty(forest.m))
    return *climb(sums, weight, fixed, below), sums, below


@for_each_seed(200)
def test_covariance_and_integral_are_those_on_the_solutions(seed):
    rng, forest, rows, weight, fixed = case(seed)
    log, dimension, sums, below = climbed(forest, weight, fixed)
    basis = null_space(np.vstack([rows, np.eye(forest.n)[fixed]]))
    inside = basis.T @ (weight[:, None] * basis)
    proper = np.linalg.eigvalsh(inside).min(initial=1.0) > 1e-9
    assert np.isfinite(log) == proper
    if not proper:
        return
    assert dimension == basis.shape[1]
    covariance = (
        basis @ np.linalg.inv(inside) @ basis.T if basis.size else np.zeros((forest.n,) * 2)
    )
    pull, u, out = rng.normal(size=forest.n), np.empty(forest.n), np.empty(forest.n)
    pull[weight == 0.0] = 0.0
    respond(sums, below, pull, u)
    variances(sums, below, out)
    np.testing.assert_allclose(u, covariance @ pull, atol=1e-9)
    np.testing.assert_allclose(out, np.diag(covariance), atol=1e-9)
    # one solution of integers has the volume of the lattice's cell in the solutions' space
    cell = volume(rows[:, ~fixed]) if dimension else 1.0
    expected = 0.5 * dimension * np.log(2.0 * np.pi) - 0.5 * np.linalg.slogdet(inside)[1]
    assert log == pytest.approx(expected - np.log(cell), abs=1e-8)


def volume(rows):
    """Volume of a cell of the integer solutions: rows of a forest are unimodular."""
    kept = []
    for row in rows:
        if np.linalg.matrix_rank(np.array([*kept, row])) > len(kept):
            kept.append(row)
    return np.sqrt(np.linalg.det(np.array(kept) @ np.array(kept).T)) if kept else 1.0
