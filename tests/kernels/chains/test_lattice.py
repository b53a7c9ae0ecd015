"""Shorter vectors of a lattice: the same lattice, and no length grows."""

from __future__ import annotations

import numpy as np
import pytest

from congenial.kernels.chains.lattice import shorten


@pytest.mark.parametrize("seed", range(20))
def test_shortened_vectors_span_the_same_lattice(seed):
    rng = np.random.default_rng(seed)
    k, n = 3, 5
    basis = rng.integers(-9, 10, (k, n))
    while np.linalg.matrix_rank(basis) < k:
        basis = rng.integers(-9, 10, (k, n))
    weight, given = rng.random(n) + 0.1, basis.copy()
    shorten(basis, weight)
    lengths, before = (np.sort((weight * b**2).sum(axis=1)) for b in (basis, given))
    assert (lengths <= before + 1e-9).all()
    change = np.linalg.lstsq(given.T.astype(float), basis.T.astype(float), rcond=None)[0]
    np.testing.assert_allclose(change, np.rint(change), atol=1e-6)
    assert abs(np.linalg.det(change)) == pytest.approx(1.0, abs=1e-6)
    # no multiple of one vector makes another shorter
    for i in range(k):
        for j in range(k):
            for times in (-1, 1):
                moved = basis[i] + times * basis[j]
                assert i == j or weight @ moved**2 >= weight @ basis[i] ** 2 * (1 - 1e-6)
