"""Tilts of the sums of families such that tables are accurate where draws will lie.

The tilts of a network match the means of the weights taken one by one. Where noise is wide beside
its bounds, the means of the messages are needed. Here the sum of a family is taken as normal, with
its own mean and variance, and passed up through the weight of its owner. Then the means that the
top imposes are passed down. A few rounds settle the tilts. Only the time of draws depends on them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from congenial.kernels.network import family_tilts as kernels
from congenial.kernels.network import moments as unary_laws
from congenial.kernels.numerics import elementwise, laws
from congenial.sum_network import Unary
from congenial.sum_network.families.equal_families import ranges
from congenial.types import BoolArray, FloatArray, Indices, IntArray

# Most rounds.
_ROUNDS = 400
# Steps to which settled tilts are rounded, at most: in nats over a deviation of the sum, or the
# largest scale of the noise, and over the largest distance of a leaf below from its bound.
_SHARED, _APART = 0.5, 4.0
# Scales of the lowest tilt that leaves begin with, and how often the range is halved.
_WIDEST, _HALVES = 50.0, 40


class Leaves(NamedTuple):
    """Families of leaves by number; see `kernels.network.family_sums`."""

    begins: IntArray  # shape (m + 1,): Where the distinct gaps of each family begin.
    gaps: IntArray  # Distances of the modes from the lower bounds, and how often each occurs.
    counts: IntArray
    base: IntArray  # shape (m,): Least sum.
    inverse: FloatArray
    tilt: FloatArray

    def take(self, number: Indices | IntArray) -> Leaves:
        """Return the families of leaves with some numbers, in that order."""
        begins, length = self.begins[number], np.diff(self.begins)[number]
        at = ranges(begins, length)
        laid = np.append(0, np.cumsum(length)), self.gaps[at], self.counts[at]
        return Leaves(*laid, self.base[number], self.inverse[number], self.tilt[number])


class Settled(NamedTuple):
    """Tilts of sums, shape (m,), and moments of laws that they tilt, as normal ones stand for them.

    The moments of a variable are those of its law given the sum below it, and not the one above.
    """

    tilt: FloatArray
    of_sum: tuple[FloatArray, FloatArray]  # Means and variances, shapes (m,).
    of_variable: tuple[FloatArray, FloatArray]  # The same of variables, shapes (n,).


class Shape(NamedTuple):
    """A tree of families as arrays: m families, n variables."""

    # Members of families that are not of leaves alone, and for how many members of its family each
    # of them stands.
    members: IntArray
    family: IntArray
    times: IntArray
    above: IntArray  # shape (m,): Family of which the owner is a member, -1 for none.
    below: IntArray  # shape (n,): Family that each variable owns, -1 for none.
    owner: IntArray  # shape (m,): -1 for a sum that is fixed at 0.
    depth: IntArray  # shape (m,)
    of_leaves: BoolArray  # shape (m,)
    code: IntArray  # shape (n,): Weight of each variable.
    size: IntArray  # shape (m,)


def common_tilt(unary: Unary, number: IntArray) -> float:
    """Return a tilt at which the means of all leaves add up to about 0, `number` of each weight."""
    of = np.flatnonzero(number)
    law = tuple(
        column[of] for column in (unary.kind, unary.scale, unary.center, unary.lo, unary.hi)
    )
    found = np.empty((2, of.size))

    def exceeds(tilt: float) -> bool:
        unary_laws.moments(*law, np.full(of.size, tilt), *found)
        return elementwise.dot(found[0], number[of]) > 0.0

    low, high = -_WIDEST / float(unary.scale[of].min()), 1.0 / float(unary.scale[of].max())
    if (law[0] == laws.GAUSSIAN).all():  # these have a law at every tilt, far from 0 too
        reach = float((np.abs(unary.center[of]) / unary.scale[of] ** 2).max())
        low, high = low - reach, high + reach
    for _ in range(_HALVES):
        middle = 0.5 * (low + high)
        if exceeds(middle):
            high = middle
        else:
            low = middle
    return low


class Rounds:
    """Moments of all sums and their owners, and tilts on their way.

    `unary` has the distinct weights. If `near`, no weight rises outwards, beside the tilts below
    and above it, faster than it falls.
    """

    def __init__(
        self, shape: Shape, leaves: Leaves, unary: Unary, start: float, *, near: bool
    ) -> None:
        m, n = leaves.inverse.size, shape.code.size
        self.owner, self.theta = shape.owner, np.full(m, start)
        # of variables, and of the sums below them; what normal laws miss of the means of
        # variables, and factors of their variances
        self.mean, self.variance, self.missed = np.zeros((3, n))
        self.spread = np.ones(n)
        self.own_mean, self.own_variance = np.zeros((2, m))
        # the last distance of each sum from its wanted mean, the share of its steps, and moves of
        # the tilt above since moments were found
        last, damp, drift = np.zeros(m), np.ones(m), np.zeros(m)
        held = shape.owner >= 0
        self.over = shape.above.copy()
        own = shape.code[shape.owner]
        decay = np.where(unary.kind == laws.LAPLACE, unary.inverse, 0.0)[own]
        lo, hi, center = unary.lo[own], unary.hi[own], unary.center[own]
        fixed = ~held | (lo == hi)
        # by how much a tilt may lie below and above that of the sum above
        bounded = [np.isfinite(end) | fixed | (not near) for end in (hi, lo)]
        self.least, self.most = (np.where(end, np.inf, decay) for end in bounded)
        depths = range(int(shape.depth.max()) + 1)
        self.levels = [np.flatnonzero(shape.depth == d) for d in depths]
        # tilts hardly change the variance of normal members, so steps need no limit
        normal = (unary.kind == laws.GAUSSIAN)[shape.code[shape.members]]
        others = np.bincount(shape.family[~normal | (shape.below[shape.members] >= 0)], minlength=m)
        free = ~shape.of_leaves & (others == 0)
        begins = np.searchsorted(shape.family, np.arange(m + 1))
        tree = begins, shape.members, shape.times, shape.owner, self.over, shape.below
        # families whose moments are out of date, and those whose tilts are kept
        self.stale, self.kept = np.ones(m, dtype=np.bool_), np.zeros(m, dtype=np.bool_)
        scale = np.where(np.isfinite(unary.scale), unary.scale, 1.0)
        columns = unary.kind, scale, unary.center, unary.lo, unary.hi
        self.order, self.drift = np.concatenate(self.levels[::-1]), drift
        self._fixed = (
            (*tree, shape.of_leaves, free, shape.size),
            leaves,
            (shape.code, *columns),
            (decay, lo, hi, center, self.least, self.most),
        )
        self.widest = float(unary.scale[np.isfinite(unary.scale)].max(initial=0.0))
        self.pole = np.empty(m)
        kernels.fill_poles(self.order, *self._fixed, self.pole)
        self._moments = self.mean, self.variance, self.missed, self.spread
        self._steps = last, damp, drift

    def settle(self) -> Settled:
        """Move the tilts until they settle."""
        self._settle(_ROUNDS)
        of_sum = self.own_mean, self.own_variance
        return Settled(self.theta, of_sum, (self.mean, self.variance))

    def settle_above(self, of: IntArray, found: FloatArray, tilt: FloatArray) -> Settled:
        """Move the tilts again, where moments of the owners of families `of` are known.

        `found` (2, of.size) has their means and variances by tables, which have the tilts `tilt`
        (m,) of these families and of those above them. The tilts of families `of` are kept.
        """
        v, moved = self.owner[of], self.theta != tilt
        self.theta = tilt.copy()
        self.stale |= moved | moved[self.over] & (self.over >= 0)
        self._settle(0)
        self.missed[v] += found[0] - self.mean[v]
        factor = np.clip(found[1] / np.maximum(self.variance[v], kernels.LEAST), 0.1, 10.0)
        self.spread[v] *= factor
        self.mean[v], self.variance[v] = found[0], factor * self.variance[v]
        self.kept[of], self.drift[of] = True, 0.0
        # moments below sums whose tilts are kept serve no more
        over = self.over[self.order]
        done = (over >= 0) & self.kept[over]
        self.stale[of] = self.stale[self.order[done]] = False
        self.order, over = self.order[~done], self.over[of]
        self.stale[over[over >= 0]] = True
        return self.settle()

    def _settle(self, rounds: int) -> None:
        of_sums = self.theta, self.own_mean, self.own_variance, *self._steps
        state = self.pole, self._moments, of_sums, self.stale, self.kept
        kernels.settle(self.order, *self._fixed, *state, rounds)

    def rounded(self, tilt: FloatArray, reach: IntArray) -> FloatArray:
        """Round tilts, so that equal families of all sums share tables.

        `reach` (m,) has the largest distance of a leaf below each sum from its bound. Steps are a
        part of a deviation. They are smaller where a leaf may lie far away, since its law may have
        two modes.
        """
        out = tilt.copy()
        for of in self.levels:
            if self.kept[of].all():
                continue
            spread = np.maximum(np.sqrt(self.own_variance[of]), reach[of] * (_SHARED / _APART))
            spread = np.maximum(spread, self.widest)
            steps = elementwise.power_of_two_above(spread / _SHARED)
            own = np.rint(tilt[of] * steps) / steps + 0.0
            above = np.where(self.over[of] >= 0, out[self.over[of]], 0.0)
            out[of] = np.clip(own, above - self.least[of], above + self.most[of])
        return out
