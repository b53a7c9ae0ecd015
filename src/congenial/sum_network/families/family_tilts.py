"""Tilts of the sums of families such that tables are accurate where draws will lie.

The tilts of a network match the means of the weights taken one by one. Where noise is wide beside
its bounds, the means of the messages are needed. Here the sum of a family is taken as normal, with
its own mean and variance, and passed up through the weight of its owner. Then the means that the
top imposes are passed down. A few rounds settle the tilts. Only the time of draws depends on them.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from congenial.kernels.network import family_sums as kernels
from congenial.kernels.network import moments as unary_laws
from congenial.kernels.numerics import elementwise, laws
from congenial.sum_network import Unary
from congenial.types import BoolArray, FloatArray, IntArray

# Most rounds, and the move of a sum, in deviations, below which they stop. After `_FEW` rounds they
# also stop once no sum has come nearer for `_STUCK` of them. A county of 600,000 cells needs 50.
_ROUNDS, _FEW, _STUCK, _STILL = 400, 40, 5, 0.7
# Least variance of a sum.
_LEAST = 1e-3
# Largest step in one round: its product with the deviation of a member, which limits by how much
# the variance changes. Factor by which a step that had to be shortened grows again.
_STEP, _GROW = 3.0, 1.5
# Moves below which a family keeps its tilt and its moments, in deviations.
_NEAR = 0.1
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


class Settled(NamedTuple):
    """Tilts of sums, shape (m,), and moments of laws that they tilt, as normal ones stand for them.

    The moments of a variable are those of its law given the sum below it, and not the one above.
    Of families that are equal only the first has moments.
    """

    tilt: FloatArray
    of_sum: tuple[FloatArray, FloatArray]  # Means and variances, shapes (m,).
    of_variable: tuple[FloatArray, FloatArray]  # The same of variables, shapes (n,).


class Shape(NamedTuple):
    """A tree of families as arrays: m families, n variables."""

    # Members of families that are not of leaves alone, one of those that are equal, and how often
    # each occurs in its family.
    members: IntArray
    family: IntArray
    times: IntArray
    above: IntArray  # shape (n,): Family of each variable, -1 for none.
    owner: IntArray  # shape (m,): -1 for a sum that is fixed at 0.
    depth: IntArray  # shape (m,): -1 for a family that equals another one.
    of_leaves: BoolArray  # shape (m,)
    owned: BoolArray  # shape (n,): Whether a variable owns a family.
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

    `unary` has the distinct weights. Only the first of equal families gets a tilt of its own. If
    `near`, no weight rises outwards, beside the tilts below and above it, faster than it falls.
    """

    def __init__(
        self, shape: Shape, leaves: Leaves, unary: Unary, start: float, *, near: bool
    ) -> None:
        m, n = leaves.inverse.size, shape.code.size
        self.shape, self.leaves, self.theta = shape, leaves, np.full(m, start)
        # of variables, and of the sums below them
        self.mean, self.variance = np.zeros((2, n))
        self.own_mean, self.own_variance = np.zeros((2, m))
        lone = ~shape.owned[shape.members]  # leaves among inner nodes
        self.alone, self.alone_in = shape.members[lone], shape.family[lone]
        scale = np.where(np.isfinite(unary.scale), unary.scale, 1.0)
        columns = unary.kind, scale, unary.center, unary.lo, unary.hi
        self.law = tuple(column[shape.code[self.alone]] for column in columns)
        self.held, self.owner = shape.owner >= 0, np.maximum(shape.owner, 0)
        self.top = ~self.held | (shape.above[self.owner] < 0)
        self.over = np.where(self.top, 0, shape.above[self.owner])
        own = shape.code[self.owner]
        self.decay = np.where(unary.kind == laws.LAPLACE, unary.inverse, 0.0)[own]
        self.lo, self.hi, self.center = unary.lo[own], unary.hi[own], unary.center[own]
        self.fixed = ~self.held | (self.lo == self.hi)
        # by how much a tilt may lie below and above that of the sum above
        bounded = [np.isfinite(end) | self.fixed | ~near for end in (self.hi, self.lo)]
        self.least, self.most = (np.where(end, np.inf, self.decay) for end in bounded)
        depths = range(int(shape.depth.max()) + 1)
        self.levels = [np.flatnonzero(shape.depth == d) for d in depths]
        pairs = [shape.depth[shape.family] == d for d in depths]
        self.below = [(shape.family[at], shape.members[at], shape.times[at]) for at in pairs]
        owned = np.full(n, -1)
        owned[shape.owner[self.held]] = np.flatnonzero(self.held)
        inner = [(family, owned[members]) for family, members, _ in self.below]
        self.children = [(family[at >= 0], at[at >= 0]) for family, at in inner]
        self.pole = self._poles()
        # tilts hardly change the variance of normal members, so steps need no limit
        normal = (unary.kind == laws.GAUSSIAN)[shape.code[shape.members]] & lone
        others = np.bincount(shape.family[~normal], minlength=m)
        self.free = ~shape.of_leaves & (others == 0)
        # the last distance of each sum from its wanted mean, and the share of its steps
        self.last, self.damp = np.zeros(m), np.ones(m)
        # families whose moments are out of date, and moves of the tilt above since they were found
        self.stale, self.drift = np.ones(m, dtype=np.bool_), np.zeros(m)
        # families whose tilts are kept; what normal laws miss of the means of variables, and
        # factors of their variances
        self.kept, self.missed, self.spread = np.zeros(m, dtype=np.bool_), np.zeros(n), np.ones(n)

    def settle(self) -> Settled:
        """Move the tilts until they settle."""
        nearest, since = math.inf, 0
        for done in range(_ROUNDS):
            self.pass_up()
            moved = self.pass_down()
            since = 0 if moved < nearest else since + 1
            nearest = min(nearest, moved)
            stuck = done >= _FEW and since >= _STUCK
            if moved < _STILL or stuck or not math.isfinite(moved):
                break
        of_sum = self.own_mean, self.own_variance
        return Settled(self.theta, of_sum, (self.mean, self.variance))

    def settle_above(self, of: IntArray, found: FloatArray, tilt: FloatArray) -> Settled:
        """Move the tilts again, where moments of the owners of families `of` are known.

        `found` (2, of.size) has their means and variances by tables, which have the tilts `tilt`
        (m,) of these families and of those above them. The tilts of families `of` are kept.
        """
        v, before = self.shape.owner[of], self.theta
        self.theta = tilt.copy()
        self.stale |= (before != tilt) | (before[self.over] != tilt[self.over]) & ~self.top
        self.pass_up()
        self.missed[v] += found[0] - self.mean[v]
        self.spread[v] *= np.clip(found[1] / np.maximum(self.variance[v], _LEAST), 0.1, 10.0)
        self.kept[of] = True
        return self.settle()

    def _poles(self) -> FloatArray:
        """Return the tilts from which on what is below each sum has no law."""
        pole = np.where(self.shape.of_leaves, self.leaves.inverse, np.inf)
        least = np.full(self.mean.size, np.inf)
        kind, scale, *_, hi = self.law
        ends = np.isposinf(hi) & (kind == laws.LAPLACE)
        least[self.alone] = np.where(ends, 1.0 / scale, np.inf)
        for of, (family, members, _) in zip(
            reversed(self.levels), reversed(self.below), strict=True
        ):
            np.minimum.at(pole, family, least[members])
            at = of[self.held[of]]
            endless = np.isposinf(self.hi[at])
            least[self.owner[at]] = np.where(endless, pole[at] + self.decay[at], np.inf)
        return pole

    def pass_up(self) -> None:
        """Find the moments of all sums and of their owners that are out of date."""
        shape, m = self.shape, self.theta.size
        begins, gaps, counts, base, inverse, _ = self.leaves
        moving = np.flatnonzero(shape.of_leaves & self.stale & (shape.depth >= 0))
        law = moving, begins, gaps, counts, shape.size, inverse, self.theta
        kernels.moments_of_leaves(*law, self.own_mean, self.own_variance)
        self.own_mean[moving] += base[moving]
        if self.alone.size:
            found = np.empty((2, self.alone.size))
            unary_laws.moments(*self.law, self.theta[self.alone_in], *found)
            self.mean[self.alone], self.variance[self.alone] = found
        for level, (family, members, times), (above, child) in zip(
            reversed(self.levels), reversed(self.below), reversed(self.children), strict=True
        ):
            self.stale[above[self.stale[child]]] = True
            inner = level[~shape.of_leaves[level]]
            summed = [
                np.bincount(family, times * x[members], m) for x in (self.mean, self.variance)
            ]
            self.own_mean[inner] = summed[0][inner]
            self.own_variance[inner] = np.maximum(summed[1][inner], _LEAST)
            of = level[self.stale[level]]
            tilt = np.where(self.top[of], 0.0, self.theta[self.over[of]]) - self.theta[of]
            center, found = self.center[of], np.empty((2, of.size))
            weight = self.decay[of], tilt, self.lo[of] - center, self.hi[of] - center
            kernels.weigh_normal(self.own_mean[of] - center, self.own_variance[of], *weight, found)
            found[0] += center
            found[0, self.fixed[of]] = self.lo[of[self.fixed[of]]]
            found[1, self.fixed[of]] = 0.0
            at = self.held[of]
            v = self.owner[of[at]]
            self.mean[v] = found[0, at] + self.missed[v]
            self.variance[v] = found[1, at] * self.spread[v]

    def pass_down(self) -> float:
        """Move the tilts towards the means that the top imposes; return the largest distance.

        Distances are in deviations.
        """
        wanted, moved = self.mean.copy(), 0.0
        change = np.zeros(self.theta.size)
        for of, (family, members, _) in zip(self.levels, self.below, strict=True):
            spread = np.sqrt(self.own_variance[of])
            aim = np.where(self.held[of], wanted[self.owner[of]], 0.0)
            off = (aim - self.own_mean[of]) / spread
            # steps that go back and forth are shortened
            back, damp = off * self.last[of] < 0.0, self.damp[of]
            self.damp[of] = np.where(back, 0.5 * damp, np.minimum(_GROW * damp, 1.0))
            self.last[of] = off
            most = np.where(self.free[of], np.inf, _STEP * np.sqrt(self.shape.size[of]))
            step = self.damp[of] * np.clip(off, -most, most) / spread
            # families that are near are left as they are
            step[np.abs(off) < _NEAR] = 0.0
            free = ~self.kept[of]
            wish = self.theta[of] + np.minimum(step, 0.5 * (self.pole[of] - self.theta[of]))
            over = np.where(self.top[of], 0.0, self.theta[self.over[of]] + change[self.over[of]])
            # no weight may rise outwards faster than without noise
            kept = np.clip(wish, over - self.least[of], over + self.most[of])
            change[of] = free * (kept - self.theta[of])
            near = free & ((kept == wish) | (kept != self.theta[of]))
            moved = max(moved, float(np.abs(off[near]).max(initial=0.0)))
            wanted[members] = self.mean[members] + self.variance[members] * change[family]
        self.theta += change
        self.mean = wanted
        above = np.where(self.top, 0.0, change[self.over])
        self.drift = np.where(self.stale, 0.0, self.drift) + above
        far = np.abs(self.drift) * np.sqrt(self.variance[self.owner]) > _NEAR
        self.stale = (change != 0.0) | far
        return moved
