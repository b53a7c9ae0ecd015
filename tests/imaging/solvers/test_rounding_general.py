"""The nearest integers under any linear conditions."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from congenial.imaging.closest import project
from congenial.imaging.solvers.rounding_general import round_general
from congenial.invariants.written import (
    at_least,
    bounds,
    linear,
    nonnegative,
    resolve_invariant,
)
from congenial.randomness import seeded
from support.seeds import for_each_seed

pytestmark = pytest.mark.kernels


def test_ties_between_integers_do_not_go_by_position():
    a = np.array([[1, 1, 1, 0], [0, 1, 1, 1]])
    invariant = linear(a, [1, 1]) & nonnegative()
    draws = np.array(
        [project([0, 0.5, 0.5, 0], invariant, integer=True, rng=seeded(s)) for s in range(60)]
    )
    # one of the two middle entries; a fair coin misses both bounds with probability 1e-6
    assert 11 <= draws[:, 1].sum() <= 49
    assert (draws[:, 1] + draws[:, 2] == 1).all()


def test_integers_satisfy_conditions_with_non_integer_coefficients():
    rng = np.random.default_rng(9)
    for seed in range(60):
        x = rng.integers(0, 6, 4)
        rows = rng.integers(-2, 3, (3, 4)) * rng.choice([0.1, 1 / 3, 1.7])
        invariant = at_least(rows, rows @ x) & linear(0.1 * np.ones(4), 0.1 * x.sum())
        whole = project(x + rng.laplace(0.0, 3.0, 4), invariant, integer=True, rng=seeded(seed))
        assert whole.sum() == x.sum()
        assert (rows @ whole >= rows @ x - 1e-9).all()


@for_each_seed(40)
def test_rounding_is_of_least_change_by_enumeration(seed):
    rng = np.random.default_rng([107, seed])
    n = 4
    matrix = rng.integers(-1, 2, (2, n)).astype(float)
    # solutions of the sums that are up to two units from integers that solve them
    _, _, basis = np.linalg.svd(matrix)
    free = basis[np.linalg.matrix_rank(matrix) :]
    x = rng.integers(0, 4, n).astype(float)
    z = x + rng.uniform(-1.5, 1.5, free.shape[0]) @ free
    lo, hi = np.minimum(x, np.floor(z)) - rng.integers(0, 2, n), np.full(n, np.inf)
    known = linear(matrix, matrix @ x) & bounds(lo, hi)
    resolved = resolve_invariant(known, n, None)
    found = round_general(resolved, z, rng.integers(0, 2**64, n, dtype=np.uint64))
    near = np.array(list(itertools.product(*(np.arange(v - 4, v + 6) for v in np.floor(z)))))
    near = near[(near @ matrix.T == matrix @ x).all(axis=1) & (near >= lo).all(axis=1)]
    assert (found @ matrix.T == matrix @ x).all() and (found >= lo).all()
    # ties may cost up to 2^-21 an entry
    least = np.abs(near - z).sum(axis=1).min()
    assert np.abs(found - z).sum() <= least + 2 * n * 2.0**-20
