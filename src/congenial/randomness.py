"""The only place where randomness enters: operating-system entropy, or a seed for simulations.

Words of a key are for draws that may be repeated on another machine. The key itself comes from the
operating system, or from a seed.

A uniform number is compared with a probability exactly, in decimals, where doubles leave it open. A
function of a level, 0, 1, 2, ..., encloses the probability between two decimals, more closely at
each level. Decimals have `_GUARD` digits more than they are trusted to: each operation errs by one
unit, an exponential by its exponent times as much, and all numbers that are added are positive.
Proofs: `proofs/forest-draws.md`, `proofs/family-draws.md`.
"""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, ROUND_FLOOR, Decimal, localcontext
from fractions import Fraction
from itertools import accumulate
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from congenial.errors import ArgumentError, NumericalError

Bits = npt.NDArray[np.uint64]
KEY_BITS = 256
_KEY = KEY_BITS // 8
# Words that one call of SHAKE-256 makes from a key.
_BLOCK = 8192
# Words that Philox makes at a time.
_PHILOX = 4
# First bytes of an input of SHAKE-256; no input of one kind is an input of the other.
_OF_KEYS, _OF_WORDS = b"congenial: key", b"congenial: words"

Enclosure = tuple[Decimal, Decimal]
Probability = Callable[[int], Enclosure]

# Trusted digits at level 0, and how many more each level has.
FIRST, MORE = 40, 20
# Digits for the roundings of 10^15 operations and for exponents of 10^15.
_GUARD = 32
_WORD = 64
_ONE_BIT_OF_A_WORD = Decimal(2) ** -_WORD
# No geometric variable is larger.
_LARGEST = 1 << 62


@runtime_checkable
class Randomness(Protocol):
    """A source of independent uniform 64-bit words.

    Attributes
    ----------
    private : bool
        True where the words come from the operating system and cannot be reproduced.
    """

    @property
    def private(self) -> bool:
        """Whether the words may protect a real release."""

    def bits(self, count: int) -> Bits:
        """Return `count` fresh words, shape ``(count,)``, dtype uint64."""


class _Secure:
    """Words from the operating system's cryptographic generator; keeps no state."""

    private = True

    def bits(self, count: int) -> Bits:
        return np.frombuffer(os.urandom(8 * count), dtype=np.uint64)

    def __repr__(self) -> str:
        return "congenial.secure()"


class _Seeded:
    """Reproducible words, for simulation only."""

    private = False

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._source = np.random.Philox(seed)

    def bits(self, count: int) -> Bits:
        words = np.asarray(self._source.random_raw(count), dtype=np.uint64)
        words.setflags(
            write=False
        )  # read-only like secure words, so that kernels are compiled for one type
        return words

    def __repr__(self) -> str:
        return f"congenial.seeded({self.seed})"


class _Given:
    """Words that are given: those with which a draw is repeated, or a part of one."""

    private = False

    def __init__(self, words: Bits) -> None:
        self._words = words

    def bits(self, count: int) -> Bits:
        if count > self._words.size:
            raise ArgumentError(f"{count} words are asked for, and {self._words.size} are left.")
        words, self._words = self._words[:count], self._words[count:]
        words.setflags(write=False)  # as seeded words
        return words


class _Keyed:
    """Words that follow from a key: the same key gives the same words, on every machine.

    Block i of the words is SHAKE-256 of the key and i, so that a word depends on its place alone,
    not on the sizes of the requests before it.
    """

    def __init__(self, key: bytes, *, private: bool) -> None:
        self.private = private
        self._key = key
        self._block = 0
        self._left = np.zeros(0, dtype=np.uint64)

    def bits(self, count: int) -> Bits:
        found, size = [self._left], self._left.size
        while size < count:
            text = _OF_WORDS + self._key + self._block.to_bytes(8, "little")
            block = hashlib.shake_256(text).digest(8 * _BLOCK)
            found.append(np.frombuffer(block, dtype="<u8").astype(np.uint64, copy=False))
            self._block += 1
            size += _BLOCK
        words = np.concatenate(found)
        words.setflags(write=False)  # as secure words
        self._left = words[count:].copy()
        return words[:count]

    def __repr__(self) -> str:
        return "congenial.randomness.keyed(...)"


def fresh_key(rng: Randomness) -> bytes:
    """Return a key of 32 bytes from a source of words."""
    return rng.bits(_KEY // 8).tobytes()


def derived_key(key: bytes, *context: bytes) -> bytes:
    """Return the key of 32 bytes that belongs to a key and a context; other contexts have others.

    It is SHAKE-256 of the key and of each item of the context with its length.
    """
    items = b"".join(len(item).to_bytes(8, "little") + item for item in context)
    return hashlib.shake_256(_OF_KEYS + _checked(key) + items).digest(_KEY)


def keyed(key: bytes, *, private: bool) -> Randomness:
    """Return the words that follow from a key; `private` says whether the key is a secret.

    Notes
    -----
    If the key is uniform and secret, nobody can distinguish the words from uniform ones, unless
    they can distinguish SHAKE-256 with a secret key from a random function. A release that uses
    these words states so.
    """
    return _Keyed(_checked(key), private=private)


def _checked(key: bytes) -> bytes:
    if not isinstance(key, bytes) or len(key) != _KEY:
        raise ArgumentError(f"a key has {_KEY} bytes; take one from fresh_key or derived_key.")
    return key


def secure() -> Randomness:
    """Return the operating system's entropy source, the default of every draw.

    Returns
    -------
    Randomness
        Its words come from the system's cryptographic generator, one call for each request.
    """
    return _Secure()


def seeded(seed: int) -> Randomness:
    """Return a reproducible source, for simulations and tests only.

    Parameters
    ----------
    seed : int
        Nonnegative; the same seed gives the same words.

    Returns
    -------
    Randomness
        A release drawn from it is marked as not private.

    Raises
    ------
    ArgumentError
        If `seed` is not a nonnegative integer.
    """
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise ArgumentError(f"seed is {seed!r}; give a nonnegative integer.")
    return _Seeded(int(seed))


def seeded_words(seed: int, begin: int, count: int) -> Bits:
    """Return some of the words of `seeded(seed)`: `count`, after the first `begin`."""
    source = np.random.Philox(seed)
    source.advance(begin // _PHILOX)
    skipped = begin % _PHILOX
    return np.asarray(source.random_raw(skipped + count)[skipped:], dtype=np.uint64)


def given(words: Bits) -> Randomness:
    """Return a source of these words alone, to repeat a part of a seeded draw."""
    return _Given(words)


def resolve(rng: Randomness | None) -> Randomness:
    """Return `rng`, or the secure source where it is None."""
    if rng is None:
        return secure()
    if not isinstance(rng, _Secure | _Seeded | _Keyed):
        raise ArgumentError(
            f"rng is a {type(rng).__name__}; give congenial.secure() or congenial.seeded(n)."
        )
    return rng


def is_below(word: int, p: Probability, rng: Randomness) -> bool:
    """Return whether a uniform number, whose first 64 bits are `word`, is below p.

    Further bits are drawn until they decide, which has probability 1. They are drawn only where
    p itself lies among the numbers that begin with the known bits. So how closely p is enclosed
    changes neither the answer nor the number of words.
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
        # where p is an end of those numbers, no enclosure would decide
        if (known <= low and high <= known + 1) or high - low < _ONE_BIT_OF_A_WORD:
            known, bits = known << _WORD | int(rng.bits(1)[0]), bits + _WORD
        level += 1


def choose(weights: Sequence[int], count: int, rng: Randomness) -> npt.NDArray[np.int64]:
    """Draw `count` places of weights, independently, with probabilities exactly in proportion.

    Weights are nonnegative integers of any size, not all zero. Place i is drawn if a uniform
    number lies between the sum of the weights before it and the sum with it, over the sum of all.
    One word decides nearly always; otherwise, further bits are drawn.
    """
    possible = [i for i, weight in enumerate(weights) if weight]
    sums = list(accumulate(weights[i] for i in possible))
    # the first bits of each end; the last end is 1
    ends = np.array([(end << _WORD) // sums[-1] for end in sums[:-1]], dtype=np.uint64)
    words = rng.bits(count)
    below = np.searchsorted(ends, words, side="left")
    drawn = np.searchsorted(ends, words, side="right")
    for row in np.flatnonzero(below != drawn).tolist():
        known, bits = int(words[row]), _WORD
        first, last = int(below[row]), int(drawn[row])
        while first < last:  # the ends first..last-1 may lie above or below the number
            known, bits = known << _WORD | int(rng.bits(1)[0]), bits + _WORD
            left = [(end << bits) // sums[-1] for end in sums[first:last]]
            last = first + sum(end <= known for end in left)
            first += sum(end < known for end in left)
        drawn[row] = first
    return np.array(possible, dtype=np.int64)[drawn]


def uniform_below(n: int, rng: Randomness) -> int:
    """Draw one of the integers 0 to n - 1, each with exactly the same probability."""
    words, spare = -(-n.bit_length() // _WORD), -n.bit_length() % _WORD
    while True:
        drawn = int.from_bytes(rng.bits(words).tobytes(), "little") >> spare
        if drawn < n:
            return drawn


def geometric(ratio: Fraction, rng: Randomness) -> int:
    """Draw k with the probability (1 - ratio) ratio^k, exactly."""

    def probability(level: int) -> Enclosure:
        with precision(level):
            return around(Decimal(ratio.numerator) / Decimal(ratio.denominator), level)

    k = 0
    while is_below(int(rng.bits(1)[0]), probability, rng):
        k += 1
        if k > _LARGEST:
            raise NumericalError("the noise of one count exceeds 2^62; use smaller noise scales.")
    return k


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
    digits = FIRST + MORE * level + _GUARD
    with localcontext(prec=digits, Emin=MIN_EMIN, Emax=MAX_EMAX) as context:
        if rounding:
            context.rounding = rounding
        yield


def around(x: Decimal, level: int) -> Enclosure:
    """Return ends that enclose a number of which the digits of a level are trusted."""
    off = x * Decimal(10) ** -(FIRST + MORE * level)
    return x - off, x + off
