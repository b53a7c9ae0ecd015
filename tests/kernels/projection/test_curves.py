"""Curves added along one axis, against their values at many abscissae."""

from __future__ import annotations

import numpy as np
import pytest

from congenial.kernels.projection.curves import add, inverse, span


def random_curve(rng):
    """Return a curve with rays from horizontal to vertical."""
    k = int(rng.integers(1, 6))
    x = np.sort(rng.integers(-5, 6, k)).astype(float)
    y = np.sort(rng.integers(-5, 6, k)).astype(float)
    ends = rng.choice([0.0, 0.5, 2.0, np.inf], 2)
    return np.array([x, y]), np.array([[0, k]]), ends[None]


@pytest.mark.parametrize("seed", range(60))
def test_a_sum_has_the_summed_ordinates(seed):
    rng = np.random.default_rng(seed)
    a, b = random_curve(rng), random_curve(rng)
    starts = [c[0][0, 0] if c[2][0, 0] == np.inf else -np.inf for c in (a, b)]
    ends = [c[0][0, -1] if c[2][0, 1] == np.inf else np.inf for c in (a, b)]
    if max(starts) > min(ends):
        return
    out = np.empty((2, 20))
    stop, left, right = add(0, *a, 0, *b, 0, out, 0)
    assert stop <= 2 * (a[0].shape[1] + b[0].shape[1])
    total = out, np.array([[0, stop]]), np.array([[left, right]])
    for at in np.arange(-8, 8.25, 0.25):
        if not max(starts) < at < min(ends):
            continue
        wanted = np.add(span(0, *a, 0, at), span(0, *b, 0, at))
        np.testing.assert_allclose(span(0, *total, 0, at), wanted, atol=1e-12)


def test_slopes_of_swapped_axes():
    assert inverse(0.0) == np.inf
    assert inverse(np.inf) == 0.0
    assert inverse(4.0) == 0.25
