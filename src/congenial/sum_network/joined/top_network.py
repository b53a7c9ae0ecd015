"""The top of a tree of sums with the messages of parts, and what is outside each part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from congenial.kernels.numerics import laws
from congenial.sum_network import families
from congenial.sum_network.families import Settled
from congenial.sum_network.forest import SumForest
from congenial.sum_network.joined.part_tables import Outside
from congenial.sum_network.network import compile_network
from congenial.sum_network.weights import PartMessage, SharedUnary, Unary
from congenial.sum_network.windows import check_proper, place_classes, surroundings
from congenial.types import FloatArray, IntArray

# Least and largest variance of what stands for the outside of a part, and least of a part's own.
_NARROW, _WIDE, _LEAST = 0.25, 1e24, 1e-9
# Variance, as a multiple of a part's own, from which on a law has one slope wherever the part is.
_FLAT = 1e4
# Most times that multipliers are balanced, and the move of a cut variable below which they are.
_BALANCES, _STILL = 12, 0.1


@dataclass(frozen=True, eq=False)
class Saddle:
    """Multipliers of a forest with the moments at them."""

    forest: SumForest
    near: SharedUnary  # The weights from which they follow.
    settled: Settled

    def beyond(self) -> FloatArray:
        """Return the variance of each variable given the rest of the tree alone, shape (n,).

        It is infinite where there is nothing else.
        """
        forest, unary, code = self.forest, self.near.unary, self.near.code
        (_, of_sum), (_, of_variable) = self.settled.of_sum, self.settled.of_variable
        of_sum = np.maximum(of_sum, _LEAST)
        fixed = (forest.owner < 0) | (unary.lo == unary.hi)[code[forest.owner]]
        below = np.where(forest.above >= 0, np.append(forest.depth, 0)[forest.above], -1)
        beyond = np.full(forest.n, np.inf)
        for depth in range(int(forest.depth.max(initial=-1)) + 1):
            at = np.flatnonzero(below == depth)
            sums = forest.above[at]
            owner = forest.owner[sums]
            # that of the owner's own weight, and of all beyond it
            inverse = 1.0 / np.maximum(of_variable[owner], _LEAST)
            precision = np.maximum(inverse - 1.0 / of_sum[sums], 0.0)
            precision += 1.0 / np.maximum(beyond[owner], _LEAST)
            room = np.where(fixed[sums], 0.0, 1.0 / np.maximum(precision, 1.0 / _WIDE))
            beyond[at] = room + np.maximum(of_sum[sums] - of_variable[at], 0.0)
        return beyond


@dataclass(frozen=True, eq=False)
class Top:
    """The top with one more variable below each cut variable, whose weight is a message.

    The sums below cut variables come last.
    """

    forest: SumForest
    weights: SharedUnary
    near: SharedUnary  # The weights with Gaussian laws for the messages.
    bare: tuple[SumForest, SharedUnary]  # The top without messages.
    cut: IntArray
    messages: Sequence[PartMessage]

    @staticmethod
    def of(
        forest: SumForest, weights: SharedUnary, cut: IntArray, messages: Sequence[PartMessage]
    ) -> Top:
        """Add the variables; raises UnsupportedError if the law does not exist."""
        n, m, k = forest.n, forest.m, cut.size
        depth = np.append(forest.depth, np.int32(-1))[forest.above[cut]] + np.int32(1)
        whole = SumForest(
            above=np.append(forest.above, np.arange(m, m + k, dtype=np.int32)),
            owner=np.append(forest.owner, cut.astype(np.int32)),
            sign=np.append(forest.sign, np.ones(k, dtype=np.int8)),
            orientation=np.ones(n + k, dtype=np.int8),
            depth=np.append(forest.depth, depth.astype(np.int32)),
        )
        place = np.array([one.place for one in messages]).reshape(k, 6)
        given = np.array([one.theta for one in messages])
        scale = np.sqrt(np.maximum(place[:, 1], _NARROW))
        # these have the moments of the messages once tilted
        middle = np.rint(place[:, 0] - given * place[:, 1])
        near = _with_tables(weights, laws.GAUSSIAN, scale, middle, place)
        check_proper(whole, near)
        numbers = np.arange(k, dtype=np.float64)  # each message is a weight of its own
        tabled = _with_tables(weights, laws.TABLE, scale, numbers, place)
        return Top(whole, tabled, near, (forest, weights), cut, messages)

    def settled(self) -> Saddle:
        """Return multipliers by the moments of the messages, where noise is wide."""
        return Saddle(self.forest, self.near, families.settled(self.forest, self.near))

    def balanced(self, theta: FloatArray) -> Saddle | None:
        """Return multipliers by the moments of tables, from `theta` on; None if tables lack some.

        A weight that its tilt brings near the end of its range has no moments by itself that would
        tell those of its product with a message.
        """
        forest, weights, found = *self.bare, None
        count, free = weights.unary.kind.size, self._free
        if not free.size:
            return None
        code = weights.code.copy()
        code[self.cut[free]] = count + np.arange(free.size)
        own = weights.unary.at(weights.code[self.cut])
        for _ in range(_BALANCES):
            tilt, before = self.tilts_of(theta)[free], theta
            moments = [
                self.messages[i].weighed(own.at(np.array([i])), float(t) - self.messages[i].theta)
                for i, t in zip(free.tolist(), tilt, strict=True)
            ]
            known = [pair for pair in moments if pair is not None]
            if len(known) < free.size:
                return None
            mean, variance = np.maximum(np.array(known).reshape(-1, 2), (-np.inf, _NARROW)).T
            ends = own.at(free)
            gaussian = np.full(free.size, laws.GAUSSIAN)
            place = gaussian, np.sqrt(variance), mean - tilt * variance, ends.lo, ends.hi
            every = (np.append(*pair) for pair in zip(_columns(weights.unary), place, strict=True))
            near = SharedUnary(Unary(*every), code)
            found = Saddle(forest, near, families.settled(forest, near))
            theta = found.settled.tilt
            moved = np.abs(self.tilts_of(theta)[free] - self.tilts_of(before)[free])
            if (moved * np.sqrt(variance) < _STILL).all():
                break
        return found

    def around(self, saddle: Saddle, beyond: float) -> list[Outside]:
        """Return what stands for the rest of the tree at each cut variable, given multipliers."""
        variance, (mean, _) = saddle.beyond(), saddle.settled.of_variable
        tilt, cut = self.tilts_of(saddle.settled.tilt), self.cut
        own = np.array([max(one.place[1], _NARROW) for one in self.messages])
        wide = np.where(self.forest.above[cut] >= 0, np.minimum(variance[cut], _FLAT * own), np.inf)
        columns = mean[cut].tolist(), tilt.tolist(), wide.tolist()
        return [_outside(*at, beyond) for at in zip(*columns, strict=True)]

    @property
    def _free(self) -> IntArray:
        """Numbers of the cut variables that are not fixed and lie below a sum."""
        unary = self.bare[1].unary.at(self.bare[1].code[self.cut])
        return np.flatnonzero((unary.lo < unary.hi) & (self.forest.above[self.cut] >= 0))

    def tilts_of(self, theta: FloatArray) -> FloatArray:
        """Return the multiplier of the sum above each cut variable, 0 where there is none."""
        above = self.forest.above[self.cut]
        return np.where(above >= 0, theta[above], 0.0)

    def outsides(self, theta: FloatArray, beyond: float) -> list[Outside]:
        """Return what stands for the rest of the tree at each cut variable, given multipliers."""
        network = compile_network(self.forest, self.near, theta)
        place = place_classes(network)
        mid, _, variance, *_ = surroundings(network, place)
        found = []
        for v, slope in zip(self.cut.tolist(), self.tilts_of(theta).tolist(), strict=True):
            c = network.slot_class[v]
            own, rest = max(float(place.var[c]), _LEAST), float(variance[c])
            if rest < _WIDE:
                # the multiplier above has tilted both sides
                tilt = slope + float(mid[c] - place.mean[c]) / own
                found.append(_outside(float(mid[c]), tilt, rest, beyond))
            else:
                found.append(Outside(0.0, np.inf, beyond))
        return found


def _columns(unary: Unary) -> tuple[IntArray, FloatArray, FloatArray, FloatArray, FloatArray]:
    return unary.kind, unary.scale, unary.center, unary.lo, unary.hi


def _outside(mean: float, tilt: float, variance: float, beyond: float) -> Outside:
    """Return a Gaussian law whose logarithm has the slope `tilt` at `mean`."""
    if not variance < _WIDE:  # there is nothing outside
        return Outside(0.0, np.inf, beyond)
    variance = max(variance, _NARROW)
    return Outside(mean + tilt * variance, variance, beyond)


def _with_tables(
    weights: SharedUnary, kind: int, scale: FloatArray, center: FloatArray, place: FloatArray
) -> SharedUnary:
    """Append a weight for each message."""
    unary, k = weights.unary, scale.size
    every = Unary(
        np.append(unary.kind, np.full(k, kind)),
        np.append(unary.scale, scale),
        np.append(unary.center, center),
        np.append(unary.lo, place[:, 2]),
        np.append(unary.hi, place[:, 3]),
    )
    more = np.arange(unary.kind.size, unary.kind.size + k, dtype=np.int32)
    return SharedUnary(every, np.append(weights.code, more))
