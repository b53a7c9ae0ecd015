"""Projections where sums cross."""

from __future__ import annotations

import numpy as np

from congenial.invariants.written import (
    at_least,
    bounds,
    exactly,
    linear,
    resolve_invariant,
)


def cases(count, seed, *, most=8, inequalities=True):
    """Noisy values near a point x that satisfies crossing sums, bounds and inequalities."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        n = int(rng.integers(3, most + 1))
        x = rng.integers(0, 6, n)
        a = rng.integers(-1, 2, (int(rng.integers(1, 4)), n))
        invariant = linear(a, a @ x) & bounds(0.0, np.where(rng.random(n) < 0.3, x + 1.0, np.inf))
        b = rng.integers(-1, 2, (2, n)) if inequalities else np.zeros((0, n))
        if inequalities:
            invariant = invariant & at_least(b, b @ x - rng.integers(0, 3, 2))
        pins = np.flatnonzero(rng.random(n) < 0.15).tolist()
        if pins:
            invariant = invariant & exactly(pins)
        y = x + rng.laplace(0.0, 3.0, n)
        y[pins] = x[pins]
        weight = rng.choice([0.5, 1.0, 4.0], n)
        yield x, y, weight, invariant, resolve_invariant(invariant, n)
