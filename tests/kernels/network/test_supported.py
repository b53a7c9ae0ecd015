"""Messages of weights with ends, against sums over the values between these."""

from __future__ import annotations

import numpy as np
import pytest

from congenial.kernels.network.messages import MERGE, UNARY
from congenial.kernels.network.records import Classes, TiltedWeights, Windows
from congenial.kernels.network.supported import fill
from congenial.kernels.numerics import laws
from support.seeds import for_each_seed

pytestmark = pytest.mark.kernels


@for_each_seed(150)
def test_entries_outside_the_support_are_zero_and_others_within_the_stated_error(seed):
    rng = np.random.default_rng(seed)
    ctype, left, right = (
        np.array([UNARY, UNARY, MERGE]),
        np.array([-1, -1, 0]),
        np.array([-1, -1, 1]),
    )
    inverse, tilt = rng.choice([0.2, 3.0, 40.0], 3), rng.normal(0, 1, 3)
    center = rng.integers(-3, 4, 3).astype(float)
    lo = rng.integers(-20, 1, 3)
    hi = lo + rng.integers(4, 40, 3)
    lo[2], hi[2] = lo[0] + lo[1], hi[0] + hi[1]
    least = lo + rng.integers(0, 4, 3)
    most = np.maximum(least, hi - rng.integers(0, 9, 3))
    least[0] -= 5  # outside its window
    width = hi - lo + 1
    offset = np.cumsum(width) - width
    table, lost = np.empty(int(width.sum())), np.empty(3)
    law = TiltedWeights(np.full(3, laws.LAPLACE), inverse, center, tilt)
    classes = Classes(ctype, left, right, np.ones(3, dtype=np.int64))
    fill(classes, law, least, most, Windows(lo, hi, offset), table, lost)
    logs, parts = [], []
    for c in range(2):
        u = np.arange(lo[c], hi[c] + 1)
        inside = (u >= least[c]) & (u <= most[c])
        log = np.where(inside, tilt[c] * u - inverse[c] * np.abs(u - center[c]), -np.inf)
        logs.append(log)
        parts.append(np.exp(log - log.max()))
        got = table[offset[c] : offset[c] + width[c]]
        assert (got[~inside] == 0.0).all()
        np.testing.assert_allclose(got, parts[c], rtol=1e-12, atol=lost[c] + 1e-300)
    whole = np.convolve(*parts)
    got = table[offset[2] :]
    assert 0.5 <= got.max() <= 1.0
    np.testing.assert_allclose(
        got / got.sum(), whole / whole.sum(), rtol=1e-11, atol=lost[2] + 1e-300
    )
