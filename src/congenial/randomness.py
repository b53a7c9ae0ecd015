"""The only place where randomness enters: operating-system entropy, or a seed for simulations."""

from __future__ import annotations

import os
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from congenial.errors import ArgumentError

Bits = npt.NDArray[np.uint64]


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


def resolve(rng: Randomness | None) -> Randomness:
    """Return `rng`, or the secure source where it is None."""
    if rng is None:
        return secure()
    if not isinstance(rng, _Secure | _Seeded):
        raise ArgumentError(
            f"rng is a {type(rng).__name__}; give congenial.secure() or congenial.seeded(n)."
        )
    return rng
