"""Amounts of budget: never less than the guarantee, and sums that come out even."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from congenial.accounting.amounts import Amount, amount_of, budget, not_above_decimal
from congenial.errors import ArgumentError


def test_an_amount_covers_its_guarantee():
    rng = np.random.default_rng(4)
    for epsilon, delta in zip(rng.lognormal(0, 3, 500), rng.lognormal(-20, 8, 500), strict=True):
        if epsilon > 600:
            continue
        amount = amount_of(float(epsilon), float(delta))
        short = Fraction(float(epsilon)) - Fraction(amount.epsilon, 10**12)
        assert abs(short) <= Fraction(1, 2 * 10**12)
        charged = Fraction(amount.delta, 10**18) - Fraction(float(delta))
        # an (e + t, d) guarantee is an (e, d + e^e (e^t - 1)) one
        lost = max(0.0, math.exp(float(epsilon)) * math.expm1(float(max(short, 0))))
        assert charged >= Fraction(lost) * Fraction(1 - 2.0**-40)


def test_ten_tenths_are_one():
    total = sum((amount_of(0.1, 0.0) for _ in range(10)), Amount(0, 0))
    assert total.epsilon_text == "1"
    assert 0 < total.delta < 100


def test_doubles_not_above_their_decimals_cost_no_delta():
    source = np.random.default_rng(5)
    values = [k / 100 for k in range(1, 1000)] + source.lognormal(0, 3, 500).round(9).tolist()
    lower = 0
    for value in values:
        below = not_above_decimal(value)
        assert below in (value, math.nextafter(value, 0.0))
        assert Fraction(below) <= Fraction(repr(value))
        assert math.nextafter(below, math.inf) > Fraction(repr(value))
        lower += below < value
        assert amount_of(below, 0.0) == budget(f"{value:.12f}", "0")
    assert 300 < lower < 1200


def test_a_budget_is_rounded_down_and_read_back():
    assert budget("1.0000000000009", "0.3") == Amount(10**12, 3 * 10**17)
    amount = budget("0.123456789012", "1e-9")
    assert budget(amount.epsilon_text, amount.delta_text) == amount


@pytest.mark.parametrize(
    ("epsilon", "delta"),
    [("0", "0"), ("-1", "0"), ("x", "0"), ("1e7", "0"), ("1", "1"), ("1", "-1"), ("1e-13", "0")],
)
def test_a_budget_out_of_range_is_refused(epsilon, delta):
    with pytest.raises(ArgumentError, match="the budget's"):
        budget(epsilon, delta)


@pytest.mark.parametrize("pair", [(math.nan, 0.0), (math.inf, 0.0), (-1.0, 0.0), (1.0, -1e-9)])
def test_an_invalid_guarantee_is_refused(pair):
    with pytest.raises(ArgumentError, match="nonnegative, finite"):
        amount_of(*pair)


def test_amounts_are_compared_part_by_part():
    one, other = Amount(5, 1), Amount(3, 2)
    assert not one.covers(other)
    assert (one + other).covers(one)
    assert one.beyond(other) == Amount(2, 0)
    assert one - other == Amount(2, -1)
