"""Messages of small networks, against sums over all values."""

from __future__ import annotations

import numpy as np
import pytest

from congenial.kernels.network.messages import MERGE, PRODUCT, UNARY, cover, fill
from congenial.kernels.network.records import Classes, TiltedWeights, Windows
from congenial.kernels.numerics import laws
from support.kernel_entries import entry
from support.seeds import for_each_seed

pytestmark = pytest.mark.kernels

power_above = entry("network.messages.power_above")


@for_each_seed(150)
def test_tables_and_scales_are_those_of_the_sums(seed):
    # two weights, their sum, a third weight, and its product with the sum
    rng = np.random.default_rng(seed)
    ctype = np.array([UNARY, UNARY, MERGE, UNARY, PRODUCT])
    left, right = np.array([-1, -1, 0, -1, 3]), np.array([-1, -1, 1, -1, 2])
    sign = np.array([1, 1, 1, 1, rng.choice([-1, 1])])
    kind = rng.choice([laws.LAPLACE, laws.GAUSSIAN, laws.FLAT], 5)
    inverse, tilt = rng.choice([0.01, 0.3, 2.0], 5), rng.normal(0, 0.3, 5)
    center = rng.integers(-3, 4, 5).astype(float)
    lo = rng.integers(-12, 1, 5)
    hi = lo + rng.integers(12, 30, 5)
    lo[2], hi[2] = lo[0] + lo[1], hi[0] + hi[1]
    ends = np.sort(sign[4] * np.array([lo[2], hi[2]]))
    lo[4], hi[4] = max(lo[3], ends[0]), min(hi[3], ends[1])
    width = hi - lo + 1
    offset = np.cumsum(width) - width
    table, factor, log_scale = np.empty(int(width.sum())), np.ones(5), np.zeros(5)
    law = TiltedWeights(kind, inverse, center, tilt)
    plain = np.full(5, seed % 2 == 0)
    classes, windows = Classes(ctype, left, right, sign), Windows(lo, hi, offset)
    fill(0, 5, classes, law, windows, table, factor, log_scale, plain)

    def weight(c, u):
        away = np.abs(u - center[c])
        own = {laws.LAPLACE: away, laws.GAUSSIAN: away**2, laws.FLAT: 0.0 * away}[int(kind[c])]
        return np.exp(tilt[c] * u - inverse[c] * own)

    one, two = (weight(c, np.arange(lo[c], hi[c] + 1.0)) for c in (0, 1))
    below = np.convolve(one, two)
    u = np.arange(lo[4], hi[4] + 1)
    wanted = [one, two, below, None, weight(3, u) * below[sign[4] * u - lo[2]]]
    for c in (0, 1, 2, 4):
        got = table[offset[c] : offset[c] + width[c]]
        assert 0.0 < got.max() <= 1.0 + 1e-12
        np.testing.assert_allclose(got * np.exp(log_scale[c]), wanted[c], rtol=1e-11, atol=1e-290)


@pytest.mark.parametrize("x", [0.5, 0.50001, 1.0, 3.0, 2.0**-990, 1.7e300])
def test_a_power_of_two_lies_at_or_just_above(x):
    top = power_above(x)
    assert top / 2.0 < x <= top
    assert np.log2(top) == round(np.log2(top))


def test_a_power_of_two_has_an_inverse():
    assert power_above(0.0) == power_above(-1.0) == 1.0
    assert power_above(5e-324) == 2.0**-1000


@for_each_seed(200)
def test_windows_are_covered_and_reachable(seed):
    rng = np.random.default_rng(seed)
    ctype, left, right, sign = [UNARY] * 5, [-1] * 5, [-1] * 5, [1] * 5
    support = [
        (float(a), float(a + w))
        for a, w in zip(rng.integers(-30, 1, 5), [9, 30, 80, 200, 5], strict=True)
    ]
    free = list(range(5))
    while len(free) > 1:
        a, b = (free.pop(int(rng.integers(len(free)))) for _ in range(2))
        merge = bool(rng.integers(2))
        s = int(rng.choice([-1, 1]))
        (a0, a1), (b0, b1) = support[a], support[b]
        if not merge:
            b0, b1 = (b0, b1) if s > 0 else (-b1, -b0)
        if not merge and max(a0, b0) > min(a1, b1):
            merge, (b0, b1) = True, support[b]
        ctype.append(MERGE if merge else PRODUCT)
        left.append(a)
        right.append(b)
        sign.append(s)
        support.append((a0 + b0, a1 + b1) if merge else (max(a0, b0), min(a1, b1)))
        free.append(len(ctype) - 1)
    low, high = np.array(support).T
    at = np.floor(rng.uniform(low, high))
    lo, hi = np.maximum(at - rng.integers(0, 9, at.size), low), np.minimum(at + 9.0, high)
    needed = np.full((at.size, 2), (np.inf, -np.inf))
    needed[-1] = -np.inf, np.inf
    cover(*(np.array(x) for x in (ctype, left, right, sign)), low, high, needed, lo, hi)
    assert ((low <= lo) & (lo <= hi) & (hi <= high)).all()
    for c, kind in enumerate(ctype):
        a, b = left[c], right[c]
        if kind == MERGE:
            assert lo[a] + lo[b] <= lo[c]
            assert hi[c] <= hi[a] + hi[b]
        elif kind == PRODUCT:
            ends = sorted((sign[c] * lo[c], sign[c] * hi[c]))
            assert lo[a] <= lo[c] <= hi[c] <= hi[a]
            assert lo[b] <= ends[0] <= ends[1] <= hi[b]
