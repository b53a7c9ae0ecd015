"""Continuous noise under equalities beside a dense reference."""

from __future__ import annotations

import numpy as np
import pytest

import congenial as cg
from congenial.conditioning.laws.subspace import (
    project,
)


def equalities(n, tree=None, pinned=(), rows=()):
    """Every equality as a dense row, written down here anew."""
    out = [np.eye(n)[v] for v in pinned] + [np.asarray(r, dtype=float) for r in rows]
    for v in range(n) if tree is not None else ():
        below = np.flatnonzero(tree.parents == v)
        if below.size:
            row = np.zeros(n)
            row[v], row[below] = -1, 1
            out.append(row)
    return np.array(out).reshape(-1, n)


def reference(rows, sigma):
    """Covariance and log normaliser in Euclidean volume, on a basis; None if improper."""
    _, singular, right = np.linalg.svd(rows) if rows.size else (0, np.zeros(0), np.eye(sigma.size))
    basis = right[(singular > 1e-10).sum() :].T
    gram = basis.T @ (basis / sigma[:, None] ** 2)
    if gram.size and np.linalg.matrix_rank(basis[np.isfinite(sigma)], tol=1e-9) < basis.shape[1]:
        return None
    covariance = basis @ np.linalg.inv(gram) @ basis.T
    log_volume = 0.5 * (basis.shape[1] * np.log(2 * np.pi) - np.linalg.slogdet(gram)[1])
    return covariance, log_volume


def build(n, sigma, tree=None, pinned=(), rows=()):
    invariant = cg.consistent(tree) if tree is not None else cg.linear(np.zeros(n), 0)
    if pinned:
        invariant = invariant & cg.exactly(list(pinned))
    if len(rows):
        invariant = invariant & cg.linear(rows, np.zeros(len(rows)))
    noise = cg.Gaussian(np.asarray(sigma, dtype=float))
    return cg.Additive(noise, n if tree is None else tree), invariant


def compare(made, rows, sigma, tolerance=1e-8):
    """Every answer of a conditional Gaussian against the dense reference."""
    covariance, log_volume = reference(rows, sigma)
    zero = np.zeros(sigma.size)
    known = np.isfinite(sigma)
    at_mode = -np.log(sigma[known] * np.sqrt(2 * np.pi)).sum()
    assert made.log_normalizer(zero) == pytest.approx(at_mode + log_volume, abs=tolerance)
    size = np.sqrt(covariance.diagonal().max())
    for v in range(sigma.size):
        mean, sd = made.marginal(v, zero)
        assert mean == 0.0
        assert abs(sd**2 - covariance[v, v]) <= tolerance * max(size**2, 1e-6)
    got = made.joint(list(range(sigma.size)), zero)[1]
    np.testing.assert_allclose(got, covariance, atol=tolerance * max(size**2, 1e-6))
    noise = np.where(known, np.where(known, sigma, 0.0) * np.sin(np.arange(1.0, 1 + sigma.size)), 0)
    moved = project(made.fitted, noise[None])[0]
    want = covariance @ np.where(known, noise / sigma**2, 0.0)
    np.testing.assert_allclose(moved, want, atol=tolerance * max(1.0, size))
    weight = np.where(known, moved**2 / sigma**2, 0.0).sum()
    # rows of large entries are met up to rounding only
    assert made.log_prob(moved, zero) == pytest.approx(-0.5 * weight - log_volume, abs=1e-6)
