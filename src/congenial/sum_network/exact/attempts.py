"""Single attempts at draws from envelopes: a refused draw does not begin again."""

from __future__ import annotations

import numpy as np

from congenial.randomness import Randomness
from congenial.sum_network import draws
from congenial.sum_network.exact.envelopes import Envelopes
from congenial.sum_network.exact.exact_draws import Acceptance
from congenial.types import BoolArray, FloatArray, IntArray


def attempt(
    of: Envelopes, rows: int, rng: Randomness, *, first: int | None = None
) -> tuple[IntArray, BoolArray]:
    """Try to draw the variables `rows` times; return the values, and which draws are accepted.

    Values have shape (rows, n), or (rows, first). Refused draws have values that mean nothing.
    """
    noted = _Noted(of)
    values = draws.sample(of, rows, rng, first=first, opened=noted)
    return values, np.concatenate((np.zeros(0, dtype=np.bool_), *noted.accepted_ones))


class _Noted:
    """Choices and draws that the kernel leaves open, see `draws.Opened`; all draws are kept."""

    def __init__(self, of: Envelopes) -> None:
        self._opened = Acceptance(of)
        self.accepted_ones: list[BoolArray] = []  # of one batch after another

    @property
    def lacking(self) -> FloatArray:
        """Mass that the tables of roots lack, shape (c,)."""
        return self._opened.lacking

    def choose(self, op: int, c: int, s: int, word: int, rng: Randomness) -> draws.Chosen | None:
        """Choose a root's value, or the left part of a sum s; None if the draw is refused."""
        return self._opened.choose(op, c, s, word, rng)

    def accepted(
        self, values: IntArray, doubt: FloatArray, rare: draws.Rare, rng: Randomness
    ) -> BoolArray:
        """Note which draws are accepted; a refused one becomes zeros, which can be composed."""
        found = self._opened.accepted(values, doubt, rare, rng)
        self.accepted_ones.append(found)
        values[:, ~found] = 0
        return np.ones_like(found)
