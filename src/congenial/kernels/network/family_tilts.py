"""Rounds that move the tilts of the sums of families to the means which the top imposes.

The sum of a family is taken as normal, with its own mean and variance, and passed up through the
weight of its owner. Then the wanted means are passed down (`sum_network.families.family_tilts`).
Only families that have moved are worked out again.

Benchmark row: `bounded`.
"""

from __future__ import annotations

import math

import numpy as np

from congenial.kernels.network.family_sums import moments_of_family, weigh_one
from congenial.kernels.network.moments import unary_moments
from congenial.kernels.numerics.compiling import njit
from congenial.kernels.numerics.laws import LAPLACE

# Rounds stop once all sums are within `_STILL` deviations of their wanted means. After `_FEW`
# rounds they also stop once none has come nearer for `_STUCK` of them. 600,000 cells need 50.
_FEW, _STUCK, _STILL = 40, 5, 0.7
# Least variance of a sum.
LEAST = 1e-3
# Largest step in one round: its product with the deviation of a member, which limits by how much
# the variance changes. Factor by which a step that had to be shortened grows again.
_STEP, _GROW = 3.0, 1.5
# Moves below which a family keeps its tilt and its moments, in deviations. With 0.2, tables of
# 200,000 bounded counts at epsilon 0.1 exceed their limit of rounding (benchmark row `trying`).
_NEAR = 0.1


@njit()
def fill_poles(order, tree, leaves, weights, owners, pole):
    """Fill `pole` (m,) with the tilts from which on what is below each sum has no law."""
    begins, members, _, _, _, child, of_leaves, _, _ = tree
    code, kind, scale, _, _, most = weights
    decay, _, hi, _, _, _ = owners
    for f in order:
        pole[f] = leaves.inverse[f] if of_leaves[f] else np.inf
        for i in range(begins[f], begins[f + 1]):
            v = members[i]
            c, d = code[v], child[v]
            if d < 0 and kind[c] == LAPLACE and most[c] == np.inf:
                pole[f] = min(pole[f], 1.0 / scale[c])
            elif d >= 0 and hi[d] == np.inf:
                pole[f] = min(pole[f], pole[d] + decay[d])


@njit(inner=True)
def _pass_up(order, tree, leaves, weights, owners, moments, of_sums, stale):
    """Find the moments of all sums and of their owners that are out of date."""
    begins, members, times, owner, over, child, of_leaves, _, size = tree
    code, kind, scale, center, lo, hi = weights
    decay, own_lo, own_hi, own_center, _, _ = owners
    mean, variance, missed, spread = moments
    theta, own_mean, own_variance, _, _, _ = of_sums
    first_gap, gaps, counts, base, inverse, _ = leaves
    for f in order:
        if not stale[f]:
            continue
        if over[f] >= 0:
            stale[over[f]] = True
        if of_leaves[f]:
            # arrays in a tuple of their own would have their references counted
            a, b = first_gap[f], first_gap[f + 1]
            found = moments_of_family(gaps, counts, a, b, size[f], inverse[f], theta[f])
            own_mean[f], own_variance[f] = base[f] + found[0], found[1]
        else:
            first = second = 0.0
            for i in range(begins[f], begins[f + 1]):
                v = members[i]
                if child[v] < 0:
                    c = code[v]
                    law_of = kind[c], scale[c], center[c], lo[c], hi[c]
                    mean[v], variance[v] = unary_moments(*law_of, theta[f])
                first += times[i] * mean[v]
                second += times[i] * variance[v]
            own_mean[f], own_variance[f] = first, max(second, LEAST)
        v = owner[f]
        if v < 0:
            continue
        if own_lo[f] == own_hi[f]:
            found = own_lo[f], 0.0
        else:
            tilt = (theta[over[f]] if over[f] >= 0 else 0.0) - theta[f]
            c = own_center[f]
            weight = decay[f], tilt, own_lo[f] - c, own_hi[f] - c
            found = weigh_one(own_mean[f] - c, own_variance[f], *weight)
            found = found[0] + c, found[1]
        mean[v], variance[v] = found[0] + missed[v], found[1] * spread[v]


@njit()
def settle(order, tree, leaves, weights, owners, pole, moments, of_sums, stale, kept, rounds):
    """Move the tilts until they settle, in at most `rounds` rounds; none only finds moments.

    `order` has the m families from the bottom up. `tree` has their members: begins (m + 1,),
    members, and times that each occurs; owners (m,), the families above these, the families below
    variables (n,), -1 for none; whether a family is of leaves, whether its steps need no limit, and
    sizes, (m,). `leaves` are `families.family_tilts.Leaves`. `weights` has the code (n,) of each
    variable and the columns of the weights; `owners` (m,) the decay, ends and modes of owners'
    weights, and by how much a tilt may lie below and above that of the sum above. `kept` families
    keep their tilts. These are updated: `moments` (n,), means and variances of variables, what
    normal laws miss of the means, factors of variances; `of_sums` (m,), tilts, means, variances,
    the last distance of each sum from its wanted mean, the share of its steps, and moves of the
    tilt above since moments were found; `stale`, whose moments are out of date.
    """
    begins, members, _, owner, over, _, _, free, size = tree
    _, _, _, _, least, most = owners
    mean, variance, _, _ = moments
    theta, own_mean, own_variance, last, damp, drift = of_sums
    change = np.zeros(theta.size)
    nearest, since = np.inf, 0
    _pass_up(order, tree, leaves, weights, owners, moments, of_sums, stale)
    for done in range(rounds):
        moved = 0.0
        for at in range(order.size - 1, -1, -1):
            f = order[at]
            by = change[over[f]] if over[f] >= 0 else 0.0
            change[f] = 0.0
            if not stale[f] and by == 0.0:
                continue
            v, spread = owner[f], math.sqrt(own_variance[f])
            off = ((mean[v] if v >= 0 else 0.0) - own_mean[f]) / spread
            if not abs(off) < np.inf:
                return
            # steps that go back and forth are shortened
            damp[f] = 0.5 * damp[f] if off * last[f] < 0.0 else min(_GROW * damp[f], 1.0)
            last[f] = off
            step = 0.0
            if abs(off) >= _NEAR:
                room = np.inf if free[f] else _STEP * math.sqrt(size[f])
                step = damp[f] * min(max(off, -room), room) / spread
            old = theta[f]
            if not kept[f]:
                wish = old + min(step, 0.5 * (pole[f] - old))
                # no weight may rise outwards faster than without noise
                above = theta[over[f]] if over[f] >= 0 else 0.0
                theta[f] = min(max(wish, above - least[f]), above + most[f])
                if theta[f] == wish or theta[f] != old:
                    moved = max(moved, abs(off))
            change[f] = theta[f] - old
            if change[f] != 0.0:
                for i in range(begins[f], begins[f + 1]):
                    mean[members[i]] += variance[members[i]] * change[f]
            drift[f] = (0.0 if stale[f] else drift[f]) + by
            moves = v >= 0 and abs(drift[f]) * math.sqrt(variance[v]) > _NEAR
            stale[f] = change[f] != 0.0 or moves
        since = 0 if moved < nearest else since + 1
        nearest = min(nearest, moved)
        if moved < _STILL or (done >= _FEW and since >= _STUCK):
            return
        _pass_up(order, tree, leaves, weights, owners, moments, of_sums, stale)
