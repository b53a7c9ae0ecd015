"""Draws from envelopes, which have exactly the law of the weights."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from congenial.kernels.network import descend
from congenial.randomness import Randomness, is_below
from congenial.sum_network import draws
from congenial.sum_network.exact import rare_draws
from congenial.sum_network.exact.envelopes import Envelopes
from congenial.types import BoolArray, FloatArray, IntArray

# Bound on the part by which each of a draw's factors falls below 1, apart from rounded integers.
_FALL = 2.0**-41


def sample(
    of: Envelopes,
    rows: int,
    rng: Randomness,
    *,
    first: int | None = None,
    threads: int | None = None,
) -> IntArray:
    """Draw the variables `rows` times, independently; see `sum_network.sample`."""
    return draws.sample(of, rows, rng, first=first, threads=threads, opened=Acceptance(of))


def attempt(
    of: Envelopes,
    rows: int,
    rng: Randomness,
    *,
    first: int | None = None,
    roots: IntArray | None = None,
) -> tuple[BoolArray, IntArray]:
    """Try once to draw the variables, `rows` times; a refused draw does not begin again.

    `roots`, shape (rows,), has the values of variable 0 of a network that sends a message. The
    network that received the message has drawn them. If an attempt is refused, that draw is void.

    Returns which attempts are accepted, shape (rows,), and the variables of these, (accepted, n),
    or (accepted, first).
    """
    return draws.attempt(of, rows, rng, opened=Acceptance(of), first=first, roots=roots)


@dataclass(frozen=True, eq=False)
class Acceptance:
    """Choices and draws that the kernel leaves open; see `draws.Opened`."""

    of: Envelopes

    @property
    def lacking(self) -> FloatArray:
        """Mass that the tables of roots lack, shape (c,)."""
        return self.of.beyond

    def choose(self, op: int, c: int, s: int, word: int, rng: Randomness) -> draws.Chosen | None:
        """Choose a root's value, or the left part of a sum s; None if the draw begins again."""
        return rare_draws.choose(self.of, op, c, s, word, rng)

    def accepted(
        self, values: IntArray, doubt: FloatArray, rare: draws.Rare, rng: Randomness
    ) -> BoolArray:
        """Return which draws are accepted, each with its weight over that of its envelopes."""
        of, words = self.of, rng.bits(values.shape[1])
        sure = words * 2.0**-64 < 1.0 - 2.0 * (doubt + lacking_of_weights(of))
        sure[list(rare)] = False
        for column in np.flatnonzero(~sure).tolist():
            beyond, mine = rare.get(column, {}), values[:, column]
            if beyond is None or (beyond and not _within_bounds(of, mine)):
                continue
            p = rare_draws.share(of, mine, beyond)
            sure[column] = is_below(int(words[column]), p, rng)
        return np.asarray(sure)


def lacking_of_weights(of: Envelopes) -> float:
    """Bound the part by which raised weights and products let a draw's share fall below 1."""
    network = of.network
    factors, composed = network.op.size + 4.0, np.count_nonzero(network.op >= descend.COMPOSE)
    return float(factors * (_FALL + 2.0 * of.raised[1]) + 2.0 * of.raised[0] * composed)


def _within_bounds(of: Envelopes, values: IntArray) -> bool:
    """Whether variables that are not composed obey all bounds."""
    own = np.flatnonzero(of.network.slot_class[: of.network.n] >= 0)
    every, mine = of.weights.each, values[own]
    return bool(((every.lo[own] <= mine) & (mine <= every.hi[own])).all())
