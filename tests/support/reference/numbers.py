"""Random words one after another, and a uniform number beside a probability of many digits."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from decimal import MAX_EMAX, MIN_EMIN, Decimal, localcontext
from fractions import Fraction

import numpy as np

_DIGITS, _TRUSTED = 150, Decimal("1e-120")


class Words:
    """The words of `congenial.seeded(seed)`, one after another."""

    def __init__(self, seed):
        self._source = np.random.Philox(seed)

    def take(self, count):
        return np.asarray(self._source.random_raw(count), dtype=np.uint64)

    bits = take

    def word(self):
        return int(self.take(1)[0])


@contextmanager
def many_digits() -> Iterator[None]:
    with localcontext(prec=_DIGITS, Emin=MIN_EMIN, Emax=MAX_EMAX):
        yield


def decimal(x: Fraction | float) -> Decimal:
    ratio = Fraction(x)
    return Decimal(ratio.numerator) / Decimal(ratio.denominator)


def below(word: int, p: Decimal, words: Words) -> bool:
    """Whether a uniform number that begins with a word is below p, by as many words as it takes."""
    known, unit = word, 1 << 64
    while True:
        if known + 1 <= p * (1 - _TRUSTED) * unit:
            return True
        if known >= p * (1 + _TRUSTED) * unit:
            return False
        known, unit = known << 64 | words.word(), unit << 64


def picked(weights, word: int) -> tuple[int | None, int]:
    """The place whose interval has the first 62 bits of a word; None, and what they exceed all."""
    target, sums = word >> 2, np.cumsum(weights)
    if sums.size and target < sums[-1]:
        return int(np.searchsorted(sums, target, side="right")), 0
    return None, target - (int(sums[-1]) if sums.size else 0)
