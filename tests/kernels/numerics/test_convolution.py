"""Convolutions of nonnegative tables, against sums of exact fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from support.kernel_entries import entry

UNIT = Fraction(1, 2**53)


@pytest.mark.parametrize(("name", "units"), [("plainly", 9), ("closely", 5)])
def test_the_relative_error_is_as_stated(name, units):
    kernel = entry(f"numerics.convolution.convolve_{name}")
    rng = np.random.default_rng(3)
    for _ in range(40):
        sizes = rng.integers(1, 40, 2)
        a, b = (rng.lognormal(0, 8, size) * (rng.random(size) < 0.9) for size in sizes)
        whole = a.size + b.size - 1
        first = int(rng.integers(0, whole))
        n = int(rng.integers(1, whole - first + 1))
        longest = max(int(sizes.max()), n)
        out, work = np.full(n + 2, -1.0), np.empty((4, 2 * longest + 16))
        kernel(a, 0, a.size, b, 0, b.size, first, out, 1, n, work)
        assert out[0] == out[-1] == -1.0
        for i in range(n):
            at = first + i
            terms = [
                Fraction(a[j]) * Fraction(b[at - j]) for j in range(a.size) if 0 <= at - j < b.size
            ]
            wanted = sum(terms, Fraction(0))
            assert abs(Fraction(out[1 + i]) - wanted) <= units * UNIT * wanted
