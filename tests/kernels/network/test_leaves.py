"""Moments of tilted leaves under a prior, against sums."""

from __future__ import annotations

import numpy as np
import pytest

from congenial.kernels.network.leaves import leaf_moments
from congenial.kernels.numerics import laws


@pytest.mark.parametrize("kind", [laws.LAPLACE, laws.GAUSSIAN, laws.FLAT])
@pytest.mark.parametrize("tilt", [-0.2, 0.0, 0.1])
def test_means_and_variances_are_those_of_the_weights(kind, tilt):
    mean, r, center, scale, zero = 4.0, 2.0, 3, 2.5, 0.7
    b = mean / (mean + r)
    a = b * r
    k = np.arange(600)
    log_p = np.concatenate([[0.0], np.cumsum(np.log((a + b * k[:-1]) / (k[:-1] + 1)))])
    noise = {
        laws.LAPLACE: -np.abs(k - center) / scale,
        laws.GAUSSIAN: -0.5 * ((k - center) / scale) ** 2,
        laws.FLAT: np.zeros(k.size),
    }[kind]
    weight = np.exp(log_p + noise + tilt * k + zero * (k == 0))
    wanted = (k * weight).sum() / weight.sum()
    spread = ((k - wanted) ** 2 * weight).sum() / weight.sum()
    out = np.empty((1, 4))
    one = [
        np.array([v], dtype=float) for v in (scale, 0.0, -center, np.inf, a, b, center, zero, tilt)
    ]
    # counted from the measurement: u = k - center
    leaf_moments(np.array([kind]), one[0], one[1], one[2], one[3], *one[4:], 60.0, out)
    assert out[0, 0] == pytest.approx(wanted - center, abs=1e-9)
    assert out[0, 1] == pytest.approx(spread, rel=1e-9)
    assert (out[0, 2:] > 0).all()
