"""Which pairs of made-up datasets an audit compares, if comparing all of them would take too long.

Tables of a law grow with the scale of the noise and with the number of different families of a
tree. Their size is known before they are filled. A limit of work, unlike one of time, leaves out
the same pairs on every machine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from congenial.accounting.mechanism import Mechanism
from congenial.auditing.finding import Pair
from congenial.conditioning.laws.forest_sampler import Conditioned
from congenial.errors import NumericalError, UnsupportedError
from congenial.wording import many

# Most work of an audit, in multiplications that fill tables: some 30 seconds of one core. Losses
# are computed first, because they prove something; draws have what they leave.
MOST_WORK = 3e11
# Time of looking up a value during a draw, as a multiple of a multiplication (measured).
_LOOK_UP = 4.0
# Tables that are filled for draws at one dataset: one to draw from, and one for the stated laws.
_FILLED = 2.0


class Affordable(NamedTuple):
    """The pairs that are compared, how many others are left out, and the work that is left."""

    pairs: list[Pair]
    left_out: int
    work: float

    @property
    def text(self) -> str:
        """Say how many pairs are left out, to follow another sentence; empty if none is."""
        if not self.left_out:
            return ""
        were = "was" if self.left_out == 1 else "were"
        return (
            f"; {many(self.left_out, 'further pair')} of datasets {were} not compared, because "
            "that would take too long"
        )


def to_compute(mechanism: Mechanism, pairs: Sequence[Pair], most: float = MOST_WORK) -> Affordable:
    """Choose the pairs whose losses are computed, with `most` work."""
    return _chosen(mechanism, pairs, lambda filling, _: filling, most)


def to_draw(mechanism: Mechanism, pairs: Sequence[Pair], draws: int, most: float) -> Affordable:
    """Choose the pairs at whose datasets releases are drawn, with `most` work."""

    def of_both(filling: float, drawing: float) -> float:
        return 2.0 * (_FILLED * filling + _LOOK_UP * draws * drawing)

    return _chosen(mechanism, pairs, of_both, most)


def _chosen(
    mechanism: Mechanism,
    pairs: Sequence[Pair],
    price: Callable[[float, float], float],
    most: float,
) -> Affordable:
    """Choose pairs in turn, each if there is work left for it; at least the one of least work."""
    if type(mechanism) is not Conditioned or mechanism.data_free:
        # other mechanisms have no such tables; without bounds, all datasets share one
        return Affordable(list(pairs), 0, most)
    prices = [price(*_work_at(mechanism, pair)) for pair in pairs]
    left, kept = most, []
    for pair, needed in zip(pairs, prices, strict=True):
        if needed <= left:
            left -= needed
            kept.append(pair)
    if pairs and not kept:
        kept = [pairs[prices.index(min(prices))]]
    return Affordable(kept, len(pairs) - len(kept), left)


def _work_at(mechanism: Conditioned, pair: Pair) -> tuple[float, float]:
    """Work at the first dataset of a pair; the tables of the other are nearly the same."""
    try:
        return mechanism.work_at(pair[0])
    except (NumericalError, UnsupportedError):
        return 0.0, 0.0  # it is refused again, and reported, when the pair is compared
