"""Decisions that doubles leave open: whether a uniform number is below a probability, in decimals.

A function of a level, 0, 1, 2, ..., encloses the probability between two decimals, more closely at
each level. Decimals have `_GUARD` digits more than they are trusted to: each operation errs by one
unit, an exponential by its exponent times as much, and all numbers that are added are positive.

Proofs: `proofs/forest-draws.md`, `proofs/family-draws.md`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal, localcontext

from congenial.randomness import Randomness

Enclosure = tuple[Decimal, Decimal]
Probability = Callable[[int], Enclosure]

# Trusted digits at level 0, and how many more each level has.
FIRST, MORE = 40, 20
# Digits for the roundings of 10^15 operations and for exponents of 10^15.
_GUARD = 32
_WORD = 64


def is_below(word: int, p: Probability, rng: Randomness) -> bool:
    """Return whether a uniform number, whose first 64 bits are `word`, is below p.

    Further bits are drawn until they decide, which has probability 1.
    """
    known, bits, level = word, _WORD, 0
    while True:
        low, high = p(level)
        with precision(level, ROUND_FLOOR):
            low *= 1 << bits
        with precision(level, ROUND_CEILING):
            high *= 1 << bits
        if known + 1 <= low:
            return True
        if known >= high:
            return False
        known, bits, level = known << _WORD | int(rng.bits(1)[0]), bits + _WORD, level + 1


def product(parts: Iterable[Probability]) -> Probability:
    """Return the product of probabilities."""
    every = list(parts)

    def probability(level: int) -> Enclosure:
        with precision(level):
            found = [p(level) for p in every]
            low, high = (math.prod(ends, start=Decimal(1)) for ends in zip(*found, strict=True))
            return around(low, level)[0], around(high, level)[1]

    return probability


@contextmanager
def precision(level: int, rounding: str | None = None) -> Iterator[None]:
    """Compute with the digits of a level, and the guard's."""
    with localcontext(prec=FIRST + MORE * level + _GUARD) as context:
        if rounding:
            context.rounding = rounding
        yield


def around(x: Decimal, level: int) -> Enclosure:
    """Return ends that enclose a number of which the digits of a level are trusted."""
    off = x * Decimal(10) ** -(FIRST + MORE * level)
    return x - off, x + off
