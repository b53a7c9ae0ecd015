"""Amounts of epsilon and delta in whole units, so that sums are exact and never round down."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Context, Decimal, InvalidOperation
from fractions import Fraction

from congenial.errors import ArgumentError

# Decimal digits of the units: epsilon is counted in 1e-12, delta in 1e-18.
EPSILON_DIGITS = 12
DELTA_DIGITS = 18
_EPSILON: int = 10**EPSILON_DIGITS
_DELTA: int = 10**DELTA_DIGITS
# Largest budget; a larger one promises nothing, and its units overflow 64 bits.
MOST_BUDGET = 1_000_000
# Largest epsilon whose exp does not overflow; a larger one is rounded up.
_MOST_EXPONENT = 700.0
_EXACT = Context(prec=60)


@dataclass(frozen=True)
class Amount:
    """Epsilon and delta in whole units, which basic composition adds up."""

    epsilon: int  # In units of 1e-12.
    delta: int  # In units of 1e-18.

    def __add__(self, other: Amount) -> Amount:
        return Amount(self.epsilon + other.epsilon, self.delta + other.delta)

    def __sub__(self, other: Amount) -> Amount:
        return Amount(self.epsilon - other.epsilon, self.delta - other.delta)

    def covers(self, other: Amount) -> bool:
        """Whether neither part of `other` is larger than its own."""
        return self.epsilon >= other.epsilon and self.delta >= other.delta

    def beyond(self, other: Amount) -> Amount:
        """The excess of each part over that of `other`, 0 if there is none."""
        return Amount(max(0, self.epsilon - other.epsilon), max(0, self.delta - other.delta))

    @property
    def epsilon_text(self) -> str:
        """Epsilon, every digit of it."""
        return _written(self.epsilon, EPSILON_DIGITS)

    @property
    def delta_text(self) -> str:
        """Delta, every digit of it."""
        return _written(self.delta, DELTA_DIGITS)

    def __str__(self) -> str:
        return f"epsilon {self.epsilon_text} and delta {self.delta_text}"


NOTHING = Amount(0, 0)


def amount_of(epsilon: float, delta: float) -> Amount:
    """Return an amount that covers an (epsilon, delta) guarantee.

    Epsilon is rounded to the nearest unit. Delta is charged for that rounding, and rounded up.

    Ten releases of epsilon 0.1 then cost epsilon 1, although the double nearest to 0.1 is above it:
    an (e + t, d) guarantee is also an (e, d + exp(e) (exp(t) - 1)) one, since no event has a
    probability above 1, and exp(e) (exp(t) - 1) is at most t exp(e + t).
    """
    for name, value in (("epsilon", epsilon), ("delta", delta)):
        if not (math.isfinite(value) and value >= 0):
            raise ArgumentError(f"{name} is {value!r}; give a nonnegative, finite number.")
    exact = Fraction(epsilon)
    if epsilon > _MOST_EXPONENT:
        return Amount(math.ceil(exact * _EPSILON), math.ceil(Fraction(delta) * _DELTA))
    units = round(exact * _EPSILON)
    left = max(Fraction(0), exact - Fraction(units, _EPSILON))
    # the second factor is above any rounding of exp
    charged = left * Fraction(math.exp(epsilon)) * Fraction(1 + 2.0**-40)
    return Amount(units, math.ceil((Fraction(delta) + charged) * _DELTA))


def not_above_decimal(value: float) -> float:
    """Return the largest double that is not above the shortest decimal number for `value`.

    For 0.2, that is the double before the nearest one, which is a bit more than a fifth. Ten
    releases of that epsilon cost 2 and no delta.
    """
    above = Fraction(value) > Fraction(repr(float(value)))
    return math.nextafter(value, 0.0) if above else value


def budget(epsilon: str, delta: str) -> Amount:
    """Read a total budget, rounded down to whole units."""
    most = Decimal(MOST_BUDGET)
    return Amount(
        _read("epsilon", epsilon, EPSILON_DIGITS, lambda v: 0 < v <= most, "to 1e6"),
        _read("delta", delta, DELTA_DIGITS, lambda v: 0 <= v < 1, "to below 1, or 0"),
    )


def _read(name: str, text: str, digits: int, fits: Callable[[Decimal], bool], most: str) -> int:
    try:
        value = Decimal(text)
    except InvalidOperation:
        value = Decimal("NaN")
    units = 0
    right = value.is_finite() and fits(value)
    if right:
        floored = value.quantize(Decimal(1).scaleb(-digits), ROUND_FLOOR, context=_EXACT)
        units = int(floored.scaleb(digits, context=_EXACT))
        right = units > 0 or value == 0
    if not right:
        raise ArgumentError(
            f"the budget's {name} is {text!r}; give a decimal number from 1e-{digits} {most}."
        )
    return units


def _written(units: int, digits: int) -> str:
    value = Decimal(units).scaleb(-digits, context=_EXACT).normalize(_EXACT)
    if value == 0 or abs(value) >= Decimal("0.0001"):
        return f"{value:f}"
    return f"{value:e}"
