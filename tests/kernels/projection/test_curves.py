"""Curves added along one axis, against their values at many abscissae."""

from __future__ import annotations

import numpy as np
import pytest

from congenial.kernels.projection import curves


def random_curve(rng):
    """Return points and the slopes of the rays, from horizontal to vertical."""
    k = int(rng.integers(1, 6))
    x = np.sort(rng.integers(-5, 6, k)).astype(float)
    y = np.sort(rng.integers(-5, 6, k)).astype(float)
    ends = rng.choice([0.0, 0.5, 2.0, np.inf], 2)
    return x, y, float(ends[0]), float(ends[1])


def span(curve, at):
    x, y, left, right = curve
    return curves.span(x, y, 0, x.size, left, right, at)


@pytest.mark.parametrize("seed", range(60))
def test_a_sum_has_the_summed_ordinates(seed):
    rng = np.random.default_rng(seed)
    a, b = random_curve(rng), random_curve(rng)
    starts = [c[0][0] if c[2] == np.inf else -np.inf for c in (a, b)]
    ends = [c[0][-1] if c[3] == np.inf else np.inf for c in (a, b)]
    if max(starts) > min(ends):
        return
    xo, yo = np.empty(20), np.empty(20)
    stop, left, right = curves.add(
        a[0], a[1], 0, a[0].size, a[2], a[3], b[0], b[1], 0, b[0].size, b[2], b[3], xo, yo, 0
    )
    assert stop <= 2 * (a[0].size + b[0].size)
    total = (xo[:stop], yo[:stop], left, right)
    for at in np.arange(-8, 8.25, 0.25):
        if not max(starts) < at < min(ends):
            continue
        wanted = np.add(span(a, at), span(b, at))
        np.testing.assert_allclose(span(total, at), wanted, atol=1e-12)


def test_slopes_of_swapped_axes():
    assert curves.inverse(0.0) == np.inf
    assert curves.inverse(np.inf) == 0.0
    assert curves.inverse(4.0) == 0.25
