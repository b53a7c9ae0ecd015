"""The bound on subnormal factors in sums of products, against exact fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from support.kernel_entries import entry

pytestmark = pytest.mark.kernels

extent, lacking = entry("network.lacking.extent"), entry("network.lacking.lacking")


def test_errors_of_thousands_of_sums_with_subnormal_factors_are_within_the_bound():
    told = 0
    for seed in range(3000):
        rng = np.random.default_rng([92, seed])
        n = int(rng.integers(1, 9))
        # products from 1 down to those that are too small for any digit
        p, q = (
            2.0 ** -(rng.uniform(0, 560) + rng.uniform(0, rng.choice([1.0, 40.0, 500.0]), n))
            * (rng.random(n) < 0.9)
            for _ in range(2)
        )
        sums = [extent(values) for values in (p, q)]
        for (total, least), values in zip(sums, (p, q), strict=True):
            assert total == pytest.approx(values.sum(), rel=n * 2.0**-52, abs=0.0)
            assert least == min([1.0, *values[values > 0]])
        # numbers that lack a part of themselves
        of_p, of_q = 2.0 ** -rng.uniform(300, 1060, 2) * (rng.random(2) < 0.5)
        wanted = sum(
            (Fraction(a) + Fraction(of_p)) * (Fraction(b) + Fraction(of_q))
            for a, b in zip(p, q, strict=True)
        )
        found = sum(Fraction(a * b) for a, b in zip(p, q, strict=True))
        (sum_p, least_p), (sum_q, least_q) = sums
        bound = lacking(sum_p, least_p, of_p, sum_q, least_q, of_q, n)
        # a product that has its digits is rounded once; the bound's own sums are rounded too
        rounding = found * Fraction(1, 2**52)
        assert wanted - found <= Fraction(bound) * Fraction(1 + 2.0**-45) + rounding, seed
        told += wanted - found > rounding
    assert told > 500
    assert lacking(1.0, 1e-10, 0.0, 1.0, 1e-10, 0.0, 8) == 0.0
