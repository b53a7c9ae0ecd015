"""Arithmetic in doubled precision, against exact fractions and decimals of 60 digits."""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest

from support.kernel_entries import entry

RNG = np.random.default_rng(7)
# Pairs whose second part is below half a unit of the first.
FIRST = [(float(x), float(x * RNG.uniform(-1, 1) * 2.0**-54)) for x in RNG.lognormal(0, 9, 400)]
SECOND = [(float(x), float(x * RNG.uniform(-1, 1) * 2.0**-54)) for x in RNG.lognormal(0, 9, 400)]


def exact(pair):
    return Fraction(pair[0]) + Fraction(pair[1])


@pytest.mark.parametrize(
    ("name", "right"),
    [
        ("plus", lambda x, y: x + y),
        ("times", lambda x, y: x * y),
        ("over", lambda x, y: x / y),
    ],
)
def test_sums_products_and_quotients(name, right):
    kernel = entry(f"numerics.doubled.{name}")
    for x, y in zip(FIRST, SECOND, strict=True):
        wanted = right(exact(x), exact(y))
        assert abs(exact(kernel(*x, *y)) - wanted) <= abs(wanted) * Fraction(1, 2**98)


@pytest.mark.parametrize(
    ("name", "right"), [("two_sum", lambda x, y: x + y), ("two_product", lambda x, y: x * y)]
)
def test_two_parts_are_exact(name, right):
    kernel = entry(f"numerics.doubled.{name}")
    for (x, _), (y, _) in zip(FIRST, SECOND, strict=True):
        assert exact(kernel(x, y)) == right(Fraction(x), Fraction(y))


def test_exponentials_and_logarithms():
    exp, log = entry("numerics.doubled.doubled_exp"), entry("numerics.doubled.doubled_log")
    with localcontext() as context:
        context.prec = 60
        near = RNG.normal(size=1500) * 10.0 ** RNG.integers(-12, 2, 1500)
        for x in (0.0, *RNG.uniform(-600, 600, 1500).tolist(), *near.tolist()):
            rest = x * float(RNG.uniform(-1, 1)) * 2.0**-54
            h, low = exp(x, rest)
            assert h + low == h
            wanted = (Decimal(x) + Decimal(rest)).exp()
            assert abs(Decimal(h) + Decimal(low) - wanted) < wanted * Decimal(2) ** -95
        for x in RNG.lognormal(0, 9, 200).tolist():
            h, low = log(x, 0.0)
            assert abs(Decimal(h) + Decimal(low) - Decimal(x).ln()) < Decimal(2) ** -93


def test_a_fraction_is_rounded_down_to_a_word():
    word_of = entry("numerics.doubled.word_of")
    pairs = [(h, h * off) for h in RNG.random(200) for off in (0.0, 2.0**-60, -(2.0**-60))]
    pairs += [(0.0, 0.0), (0.5, -(2.0**-80)), (2.0**-32, -(2.0**-90)), (1.0, -(2.0**-70))]
    for pair in pairs:
        # the part beyond 32 bits is rounded to a double
        assert abs(int(word_of(*pair)) - exact(pair) * 2**64) <= 2
    assert int(word_of(1.0, 0.0)) == 2**64 - 1
