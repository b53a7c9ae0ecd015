"""Tilts of the sums of families such that tables are accurate where draws will lie.

The tilts of a network match the means of the weights taken one by one. Noise that is wide beside
its bounds needs the means of the messages. Here the sum of a family is taken as normal, with its own
mean and variance, and passed up through the weight of its owner; then the means that the top
imposes are passed down. A few rounds settle the tilts. Only the time of draws depends on them.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from congenial.kernels.network import family_sums as kernels
from congenial.kernels.network import moments as unary_laws
from congenial.types import BoolArray, FloatArray, IntArray

# Most rounds, and the move of a sum, in deviations, below which they stop.
_ROUNDS, _STILL = 12, 0.1
# Largest move of a sum in one round, in deviations.
_STEP = 1.0
# Points on each side of a mode at which a law is evaluated, and how far they reach in deviations.
_POINTS, _REACH = 24, 7.0


class Shape(NamedTuple):
    """A tree of families as arrays: m families, n variables."""

    members: IntArray  # Members of all families, one family after another, and their families.
    family: IntArray
    owner: IntArray  # shape (m,): -1 for a sum that is fixed at 0.
    depth: IntArray  # shape (m,)
    of_leaves: BoolArray  # shape (m,)
    owned: BoolArray  # shape (n,): Whether a variable owns a family.
    size: IntArray  # shape (m,)


def settle(
    shape: Shape,
    leaves: tuple[IntArray, IntArray, IntArray, IntArray, FloatArray],
    unary: tuple[IntArray, FloatArray, FloatArray, FloatArray, FloatArray],
    theta: FloatArray,
) -> FloatArray:
    """Return better tilts of all sums than `theta`, shape (m,).

    Parameters
    ----------
    shape : Shape
    leaves : tuple of ndarray
        Where the distinct gaps of each family begin, gaps, their numbers, least sums, and inverse
        scales, see `kernels.network.family_sums`.
    unary : tuple of ndarray
        Kind, scale, inverse scale (0 where flat) and ends of the weight of each variable.
    theta : ndarray of float64, shape (m,)
    """
    begins, gaps, counts, base, inverse = leaves
    kind, scale, decay, lo, hi = unary
    theta, m, n = theta.copy(), theta.size, kind.size
    mean, variance = np.zeros(n), np.zeros(n)
    placed = np.empty((m, 6))
    alone = shape.members[~shape.owned[shape.members]]
    alone_in = shape.family[~shape.owned[shape.members]]
    apart = ~shape.of_leaves[alone_in]  # leaves among inner nodes
    alone, alone_in = alone[apart], alone_in[apart]
    owner = np.maximum(shape.owner, 0)
    top = np.ones(m, dtype=np.bool_)
    above = np.full(n, -1)
    above[shape.members] = shape.family
    top = (shape.owner < 0) | (above[owner] < 0)
    levels = [np.flatnonzero(shape.depth == d) for d in range(int(shape.depth.max()) + 1)]
    for _ in range(_ROUNDS):
        kernels.place_leaves(begins, gaps, counts, shape.size, inverse, theta, placed)
        if alone.size:
            law = kind[alone], scale[alone], np.zeros(alone.size), lo[alone], hi[alone]
            found = np.empty((2, alone.size))
            unary_laws.moments(*law, theta[alone_in], *found)
            mean[alone], variance[alone] = found
        own_mean, own_variance = np.zeros(m), np.zeros(m)
        for of in reversed(levels):
            leafy = of[shape.of_leaves[of]]
            own_mean[leafy] = placed[leafy, 0] + base[leafy]
            own_variance[leafy] = placed[leafy, 1]
            v = owner[of]
            tilt = np.where(top[of], 0.0, theta[above[v]]) - theta[of]
            fixed = np.where(shape.owner[of] < 0, 0.0, np.where(lo[v] == hi[v], lo[v], np.nan))
            law = decay[v], tilt, lo[v], hi[v]
            found = _moments(own_mean[of], np.maximum(own_variance[of], 1e-3), *law)
            known = ~np.isnan(fixed)
            found = np.where(known, fixed, found[0]), np.where(known, 0.0, found[1])
            held = shape.owner[of] >= 0
            mean[v[held]], variance[v[held]] = found[0][held], found[1][held]
            if of is not levels[0]:
                up = levels[int(shape.depth[of[0]]) - 1]
                inner = up[~shape.of_leaves[up]]
                at = np.isin(shape.family, inner)
                summed = shape.family[at], shape.members[at]
                own_mean[inner] = np.bincount(summed[0], mean[summed[1]], m)[inner]
                own_variance[inner] = np.bincount(summed[0], variance[summed[1]], m)[inner]
        wanted, moved = mean.copy(), 0.0
        for of in levels:
            v = owner[of]
            goal = np.where(shape.owner[of] < 0, 0.0, wanted[v])
            spread = np.sqrt(np.maximum(own_variance[of], 1e-3))
            off = (goal - own_mean[of]) / spread
            step = np.clip(off, -_STEP, _STEP) / spread
            leafy = shape.of_leaves[of]
            step = np.where(leafy, np.minimum(step, 0.5 * (inverse[of] - theta[of])), step)
            moved = max(moved, float(np.abs(off).max(initial=0.0)))
            change = np.zeros(m)
            change[of] = step
            theta[of] += step
            at = change[shape.family] != 0.0
            u = shape.members[at]
            wanted[u] = mean[u] + variance[u] * change[shape.family[at]]
        if moved < _STILL or not math.isfinite(moved):
            break
    return theta


def _moments(
    mean: FloatArray,
    variance: FloatArray,
    decay: FloatArray,
    tilt: FloatArray,
    lo: FloatArray,
    hi: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Return mean and variance of normal laws times exp(tilt x - decay abs(x)) within bounds."""
    right, left = mean + variance * (tilt - decay), mean + variance * (tilt + decay)
    mode = np.where(right > 0.0, right, np.where(left < 0.0, left, 0.0))
    mode = np.clip(mode, lo, hi)
    deviation = np.sqrt(variance)
    least = 0.05 * np.minimum(deviation, 1.0 / np.maximum(decay, 1e-9))
    ratio = np.linspace(0.0, 1.0, _POINTS)
    away = least[:, None] * (_REACH * deviation / least)[:, None] ** ratio
    x = np.concatenate((-away[:, ::-1], np.zeros((mean.size, 1)), away), axis=1) + mode[:, None]
    log = tilt[:, None] * x - decay[:, None] * np.abs(x)
    log -= 0.5 * (x - mean[:, None]) ** 2 / variance[:, None]
    log[(x < lo[:, None]) | (x > hi[:, None])] = -np.inf
    weight = np.exp(log - log.max(axis=1, keepdims=True))
    width = np.gradient(x, axis=1)
    weight *= width
    weight /= weight.sum(axis=1, keepdims=True)
    found = (weight * x).sum(axis=1)
    return found, (weight * (x - found[:, None]) ** 2).sum(axis=1)
