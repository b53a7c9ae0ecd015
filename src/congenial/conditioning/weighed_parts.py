"""Exact draws from a mixture of conditional laws, whose parts are weighed by their attempts.

A part is chosen by an upper bound on its weight times the mass of its attempts. One attempt at a
draw follows, and if it is refused, a part is chosen again. Proof: `proofs/forest-draws.md`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property

import numpy as np

from congenial.conditioning.laws.forest_sampler import Attempts, Conditioned
from congenial.errors import NumericalError
from congenial.invariants.resolved import checked_draws
from congenial.randomness import (
    Bits,
    Enclosure,
    Probability,
    Randomness,
    around,
    choose,
    is_below,
    precision,
    product,
)
from congenial.sum_network import exact
from congenial.types import BoolArray, IntArray

# A part of the largest bound has this share, and a part that is far less likely has the second one.
_LARGEST, _SMALL = 1 << 192, 1 << 77
# Rounding of a bound on the probability that a chosen part is kept.
_ROUNDED = 2.0**-48


@dataclass(frozen=True, eq=False)
class WeighedPart:
    """One part of a mixture: a conditional mechanism with a weight, for the counts `x`.

    If it is `far`, its tables are filled only once it is chosen. Its weight times its probability
    of the invariant is then below e^-100 of that of another part.
    """

    part: Conditioned
    weight: float
    x: IntArray
    far: bool = False

    @cached_property
    def attempts(self) -> Attempts:
        """Attempts at draws of the part."""
        return self.part.attempts(self.x)

    @cached_property
    def mass(self) -> Probability:
        """The part's weight, times its probability of no noise, times the mass of its attempts."""
        mechanism = self.part.mechanism
        zero = exact.without_noise(mechanism.noise.kind, mechanism.scales)
        return product((self._weight, zero, self.attempts.mass))

    def fill(self) -> None:
        """Fill the tables; raises InfeasibleError if no values satisfy the invariant."""
        _ = self.attempts

    def _weight(self, level: int) -> Enclosure:
        with precision(level):
            return around(Decimal(self.weight), level)


def draw_weighed(
    parts: Sequence[WeighedPart], counts: IntArray, rows: int, rng: Randomness
) -> IntArray:
    """Draw `rows` releases of counts, independently, shape (rows, n).

    At least one part is not `far`. Raises NumericalError if a part that is far is drawn from, and
    cannot be; this has a probability below 1e-34.
    """
    most = max(part.mass(0)[1] for part in parts if not part.far)
    with precision(0):
        unit = most / _LARGEST
        # rounded up, by more than decimals err
        shares = [_SMALL if part.far else int(part.mass(0)[1] / unit) + 2 for part in parts]
        bounds = [share * unit for share in shares]
    out = np.empty((rows, counts.size), dtype=np.int64)
    left = np.arange(rows)
    while left.size:
        chosen, words = choose(shares, left.size, rng), rng.bits(left.size)
        again = np.ones(left.size, dtype=np.bool_)
        for i in np.unique(chosen).tolist():
            mine = np.flatnonzero(chosen == i)
            mine = mine[_kept(parts[i], bounds[i], words[mine], rng)]
            if not mine.size:
                continue
            accepted, noise = parts[i].attempts.attempt(mine.size, rng)
            mine, drawn = mine[accepted], noise + counts
            out[left[mine]] = checked_draws(parts[i].part.resolved, drawn, counts)
            again[mine] = False
        left = left[again]
    return out


def _kept(part: WeighedPart, bound: Decimal, words: Bits, rng: Randomness) -> BoolArray:
    """Decide for each word whether a part stays chosen: with probability mass / bound."""
    low, high = part.mass(0)
    if high > bound:
        raise NumericalError(
            "an alternative far from the counts cannot be drawn from; use noise scales that differ "
            "less."
        )
    ratio = _over(part.mass, bound)
    sure = words * 2.0**-64 < float(low / bound) - _ROUNDED
    for at in np.flatnonzero(~sure).tolist():
        sure[at] = is_below(int(words[at]), ratio, rng)
    return np.asarray(sure)


def _over(mass: Probability, bound: Decimal) -> Probability:
    """Return a mass over a bound on it."""

    def probability(level: int) -> Enclosure:
        with precision(level):
            low, high = mass(level)
            return around(low / bound, level)[0], around(high / bound, level)[1]

    return probability
