"""The bound on subnormal factors in sums of products, against exact fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from support.kernel_entries import entry


@pytest.mark.parametrize("seed", range(20))
def test_sums_lack_no_more_than_is_stated(seed):
    rng = np.random.default_rng(seed)
    extent, lacking = entry("network.lacking.extent"), entry("network.lacking.lacking")
    p, q = (np.exp(-rng.uniform(0, 420, 8)) * (rng.random(8) < 0.9) for _ in range(2))
    sums = [extent(values) for values in (p, q)]
    for (total, least), values in zip(sums, (p, q), strict=True):
        assert total == pytest.approx(values.sum(), rel=1e-12)
        assert least == min([1.0, *values[values > 0]])
    # numbers that lack a part of themselves
    of_p, of_q = 1e-310, 1e-300
    wanted = sum(
        (Fraction(a) + Fraction(of_p)) * (Fraction(b) + Fraction(of_q))
        for a, b in zip(p, q, strict=True)
    )
    found = sum(Fraction(a * b) for a, b in zip(p, q, strict=True))
    (sum_p, least_p), (sum_q, least_q) = sums
    bound = lacking(sum_p, least_p, of_p, sum_q, least_q, of_q, 8)
    rounding = wanted * Fraction(1, 2**48)
    assert wanted - found <= Fraction(bound) * Fraction(1 + 2.0**-40) + rounding
    assert lacking(1.0, 1e-10, 0.0, 1.0, 1e-10, 0.0, 8) == 0.0
