"""The message of a part whose tables are those of families, and draws below its root.

Proof: `proofs/family-draws.md`, statement 8.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

import numpy as np

from congenial.kernels.numerics import elementwise
from congenial.randomness import Enclosure, Probability, Randomness, around, is_below, precision
from congenial.sum_network import SharedUnary, SumForest
from congenial.sum_network.families.family_draws import attempt_below
from congenial.sum_network.families.family_records import FamilySums
from congenial.sum_network.families.family_sums import fill_below_root
from congenial.sum_network.weights import PartMessage, moments_of_table
from congenial.types import BoolArray, IntArray

# Largest share of an entry of the message by which it may be too large. Beyond are tails.
_DOUBT = 2.0**-8
# Nats by which a tail begins above the last entry, so that it may fall as fast as further ones.
_ROOM = 1.0
# Bits of a double's fraction; factors that make up for the rounding of a rate, and of a tail.
_FRACTION, _SLOWER, _ABOVE = 53, 1.0 - 2.0**-30, 1.0 + 2.0**-40
# Least rate of a tail: its ratio must be below 1 after all factors. And the least ratio.
_LEAST_FALL, _LEAST_RATIO = 2.0**-36, 2.0**-500


@dataclass(frozen=True, eq=False)
class PartOfFamilies:
    """Tables of the families of a part, and the message of the sum below its root, variable 0."""

    sums: FamilySums
    message: PartMessage
    unit: float  # Weight of an entry of 1 in the message, a power of two.

    def attempt(self, roots: IntArray, rng: Randomness) -> tuple[BoolArray, IntArray]:
        """Try once to draw the variables given those of the root, shape (rows,).

        Returns which attempts are accepted, and the variables of these; see `exact.attempt`.
        """
        accepted, values = attempt_below(self.sums, roots, rng)
        sent = self.message
        beyond = (roots < sent.lo) | (roots > sent.hi)
        for row in np.flatnonzero(accepted & beyond).tolist():
            # tails of the message are a bit larger than those of the table
            kept = is_below(int(rng.bits(1)[0]), self._share(int(roots[row])), rng)
            values = values if kept else np.delete(values, accepted[:row].sum(), axis=0)
            accepted[row] = kept
        return accepted, values

    def _share(self, x: int) -> Probability:
        """Return the weight of the root's table at x over that of the message, beyond both."""
        sent, side = self.message, 0 if x < self.message.lo else 2
        k = sent.lo - x if side == 0 else x - sent.hi
        bound, fall = self.sums.tables.tails[side : side + 2, self.sums.tables.of[0]].tolist()
        edge, ratio = sent.tails[side : side + 2].tolist()

        def probability(level: int) -> Enclosure:
            with precision(level):
                own = Decimal(bound) * (-Decimal(fall) * (k - 1)).exp() * Decimal(self.unit)
                return around(own / (Decimal(edge) * Decimal(ratio) ** k), level)

        return probability


def fill_sending(forest: SumForest, weights: SharedUnary, least: float) -> PartOfFamilies | None:
    """Fill the tables of a part and its message, of sums from `least` on; see `fill_below_root`.

    None where draws would be rejected too often.
    """
    filled = fill_below_root(forest, weights)
    if filled is None:
        return None
    sums, theta = filled
    # no other family has the table of the root, since none is as high in the tree
    tables, doubt, t = sums.tables, sums.doubt, int(sums.tables.of[0])
    begin, first, entries = int(tables.place[t]), int(tables.first[t]), tables.entries(0)
    x = first + np.arange(entries.size, dtype=np.float64)
    excess = doubt.factor[t] * elementwise.exp(doubt.slope[t] * x - doubt.top[t]) + 1.0
    clear = excess / entries + doubt.rounding[t] <= _DOUBT
    low, high = _around(clear, int(entries.argmax()))
    if not low < high:
        return None
    own = _rounded_up(entries[low:high])
    tails = tables.tails[:, t]
    tails[:2] = _tail(own[0], entries[:low][::-1], *tails[:2])
    tails[2:] = _tail(own[-1], entries[high:], *tails[2:])
    if min(tails[1::2][tails[::2] > 0.0], default=1.0) < _LEAST_FALL:
        return None
    tables.running[begin : begin + own.size] = np.cumsum(own)
    tables.first[t], tables.size[t] = first + low, own.size
    doubt.rounding[t] += 2.0 ** (1 - _FRACTION) * (doubt.rounding[t] > 0.0)
    unit = 1.0 / float(elementwise.power_of_two_above(float(own.max())))
    table = own.astype(np.float64) * unit
    falls = np.where(tails[::2] > 0.0, tails[1::2], np.inf)
    ratios = np.maximum(elementwise.exp(-falls) * _ABOVE, _LEAST_RATIO) * (tails[::2] > 0.0)
    edges = tails[::2] * unit * _ABOVE / np.maximum(ratios, _LEAST_RATIO)
    open_below, open_above = tails[::2] > 0.0
    ends = least if open_below else first + low, np.inf if open_above else first + high - 1
    place = np.array([*moments_of_table(first + low, table), *ends, *falls])
    sent = np.stack((edges, ratios), axis=1).ravel()
    return PartOfFamilies(sums, PartMessage(first + low, table, sent, theta, place), unit)


def _around(clear: BoolArray, peak: int) -> tuple[int, int]:
    """Return the ends of the clear entries around the peak; without it if it is not clear."""
    unclear = np.flatnonzero(~clear)
    i = int(unclear.searchsorted(peak))
    low = int(unclear[i - 1]) + 1 if i else 0
    return low, int(unclear[i]) if i < unclear.size else clear.size


def _rounded_up(entries: IntArray) -> IntArray:
    """Round integers up to those that doubles have exactly."""
    spare = np.maximum(np.frexp(entries.astype(np.float64))[1] - _FRACTION, 0).astype(np.int64)
    return np.asarray(-(-entries >> spare) << spare)


def _tail(last: int, entries: IntArray, bound: float, fall: float) -> tuple[float, float]:
    """Return a tail, factor and rate, after `last` in the place of some entries and their tail."""
    if not entries.size:
        return bound, fall
    k, top = np.arange(1, entries.size + 1), float(elementwise.log(float(last))) + _ROOM
    rates = (top - elementwise.log(entries.astype(np.float64))) / k
    slow = float(rates.min())
    if bound > 0.0:
        slow = min(slow, fall, (top - float(elementwise.log(bound))) / (entries.size + 1))
    slow *= _SLOWER
    return float(elementwise.exp(top - slow)) * _ABOVE, slow
