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
from congenial.kernels.numerics import laws
from congenial.sum_network import Unary
from congenial.types import BoolArray, FloatArray, IntArray

# Most rounds, and the move of a sum, in deviations, below which they stop.
_ROUNDS, _STILL = 40, 0.3
# Least variance of a sum.
_LEAST = 1e-3
# Largest move of a sum in one round, in deviations.
_STEP = 3.0


class Leaves(NamedTuple):
    """Families of leaves by number; see `kernels.network.family_sums`."""

    begins: IntArray  # shape (m + 1,): Where the distinct gaps of each family begin.
    gaps: IntArray  # Distances of the modes from the lower bounds, and how often each occurs.
    counts: IntArray
    base: IntArray  # shape (m,): Least sum.
    inverse: FloatArray
    tilt: FloatArray


class Shape(NamedTuple):
    """A tree of families as arrays: m families, n variables."""

    members: IntArray  # Members of families that are not of leaves alone, and their families.
    family: IntArray
    above: IntArray  # shape (n,): Family of each variable, -1 for none.
    owner: IntArray  # shape (m,): -1 for a sum that is fixed at 0.
    depth: IntArray  # shape (m,)
    of_leaves: BoolArray  # shape (m,)
    owned: BoolArray  # shape (n,): Whether a variable owns a family.
    size: IntArray  # shape (m,)


def settle(shape: Shape, leaves: Leaves, unary: Unary, theta: FloatArray) -> FloatArray:
    """Return better tilts of all sums than `theta`, shape (m,); `unary` has every variable's."""
    begins, gaps, counts, base, inverse, _ = leaves
    kind, lo, hi = unary.kind, unary.lo, unary.hi
    scale = np.where(np.isfinite(unary.scale), unary.scale, 1.0)
    decay = np.where(kind == laws.LAPLACE, unary.inverse, 0.0)
    theta, m, n = theta.copy(), theta.size, kind.size
    mean, variance = np.zeros(n), np.zeros(n)
    own_mean, own_variance = np.zeros(m), np.zeros(m)
    leafy = np.flatnonzero(shape.of_leaves)
    law_of = leafy, begins, gaps, counts, shape.size, inverse
    lone = ~shape.owned[shape.members]  # leaves among inner nodes
    alone, alone_in = shape.members[lone], shape.family[lone]
    held, v = shape.owner >= 0, np.maximum(shape.owner, 0)
    top = ~held | (shape.above[v] < 0)
    over = np.where(top, 0, shape.above[v])
    fixed = ~held | (lo[v] == hi[v])
    point = np.where(held, np.where(fixed, lo[v], 0.0), 0.0)
    levels = [np.flatnonzero(shape.depth == d) for d in range(int(shape.depth.max()) + 1)]
    pairs = [shape.depth[shape.family] == d for d in range(len(levels))]
    below = [(shape.family[at], shape.members[at]) for at in pairs]
    for _ in range(_ROUNDS):
        kernels.moments_of_leaves(*law_of, theta, own_mean, own_variance)
        own_mean[leafy] += base[leafy]
        if alone.size:
            law = kind[alone], scale[alone], np.zeros(alone.size), lo[alone], hi[alone]
            found = np.empty((2, alone.size))
            unary_laws.moments(*law, theta[alone_in], *found)
            mean[alone], variance[alone] = found
        for of, (family, members) in zip(reversed(levels), reversed(below), strict=True):
            inner = of[~shape.of_leaves[of]]
            own_mean[inner] = np.bincount(family, mean[members], m)[inner]
            summed = np.bincount(family, variance[members], m)
            own_variance[inner] = np.maximum(summed[inner], _LEAST)
            tilt = np.where(top[of], 0.0, theta[over[of]]) - theta[of]
            found = np.empty((2, of.size))
            weight = decay[v[of]], tilt, lo[v[of]], hi[v[of]]
            kernels.weigh_normal(own_mean[of], own_variance[of], *weight, found)
            found[:, fixed[of]] = point[of[fixed[of]]], np.zeros(int(fixed[of].sum()))
            at = held[of]
            mean[v[of[at]]], variance[v[of[at]]] = found[:, at]
        wanted, moved = mean.copy(), 0.0
        for of, (family, members) in zip(levels, below, strict=True):
            spread = np.sqrt(own_variance[of])
            off = (np.where(held[of], wanted[v[of]], 0.0) - own_mean[of]) / spread
            step = np.clip(off, -_STEP, _STEP) / spread
            room = np.where(shape.of_leaves[of], 0.5 * (inverse[of] - theta[of]), np.inf)
            theta[of] += np.minimum(step, room)
            moved = max(moved, float(np.abs(off).max(initial=0.0)))
            change = np.zeros(m)
            change[of] = step
            wanted[members] = mean[members] + variance[members] * change[family]
        if moved < _STILL or not math.isfinite(moved):
            break
    return theta
