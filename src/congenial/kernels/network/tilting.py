"""Exponential tilts of a sum forest, by Newton steps of two passes of Gaussian messages.

Every unary weight is multiplied by exp(t * u), where t is the multiplier of the constraint above
minus the multipliers of the constraints below. The conditional law stays the same, and the bulk of
every message moves to where the constraints need it. Nothing here affects correctness: tilts and
moments only place the windows, which are verified afterwards.
"""

from __future__ import annotations

import math

import numpy as np

from congenial.kernels.network.leaves import leaf_pole, moments_of_leaf
from congenial.kernels.network.moments import poles, unary_moments
from congenial.kernels.numerics.compiling import njit
from congenial.kernels.numerics.laws import FLAT

# Largest error of a multiplier: the larger of this many standard deviations of the sum that it
# tilts, and this multiple of the sum's mean.
_TOLERANCE = 0.1
# Nats below the mode at which the tails of leaves with a prior are cut.
_ROUGH = 20.0
# Variance of a variable pressed to its bound, so that its sum follows the owner's mean: small
# relative to a count, large relative to rounding errors.
_PRESSED = 1e-6
# Entries of the cache of moments, a power of two.
_SLOTS = 1 << 15


@njit(inner=True)
def _row(code, tilt):
    """Return the row of the cache for (code, tilt); rows of one tilt are close together."""
    key = np.uint64(np.float64(tilt).view(np.int64)) * np.uint64(0x9E3779B97F4A7C15)
    return (np.int64(key >> np.uint64(40)) + code) & (_SLOTS - 1)


@njit(inner=True)
def _moments(c, kind, scale, center, lo, hi, prior, tilt):
    """Return mean and variance of a tilted weight."""
    law = kind[c], scale[c], center[c], lo[c], hi[c]
    if c < len(prior) and prior[c, 0] >= 0.0:
        own = prior[c, 0], prior[c, 1], prior[c, 2], prior[c, 3]
        found = moments_of_leaf(*law, *own, tilt, _ROUGH)
        return found[0], found[1]
    return unary_moments(*law, tilt)


@njit(inline="always", inner=True)
def _add_leaves(code, above, inner, theta, step, weights, prior, memory, leaves):
    """Sum the leaves of every constraint that moved again.

    Columns of `leaves` (m, 3): mean and variance of their sum, and the largest variance. Columns
    of `memory`: code, tilt, mean and variance.
    """
    kind, scale, center, lo, hi = weights
    for k in range(theta.size):
        if step[k] != 0.0:
            leaves[k, 0] = leaves[k, 1] = leaves[k, 2] = 0.0
    last, same, mean, var = np.int32(-1), -1, 0.0, 0.0
    for v in range(above.size):
        k = above[v]
        if k < 0 or step[k] == 0.0 or inner[v] >= 0:
            continue
        c = code[v]
        if k != last or c != same:
            last, same, tilt = k, c, theta[k]
            row = _row(c, tilt)
            if memory[row, 0] != c or memory[row, 1] != tilt:
                memory[row, 0], memory[row, 1] = c, tilt
                found = _moments(c, kind, scale, center, lo, hi, prior, tilt)
                memory[row, 2], memory[row, 3] = found
            mean, var = memory[row, 2], memory[row, 3]
        leaves[k, 0] += mean
        leaves[k, 1] += var
        leaves[k, 2] = max(leaves[k, 2], var)


@njit(inner=True)
def _room(tilt, least, most, var):
    """Return how far down and up a tilt may move in one step.

    It may move half of the way to where the weight cannot be normalised, and only as far as the
    variance keeps its order of magnitude: the third cumulant of a log-concave law is below twice
    the cube of its standard deviation, and on a lattice the variance is added.
    """
    steady = 2.0 / (2.0 * math.sqrt(var) + 1.0)
    return min(0.5 * (tilt - least), steady), min(0.5 * (most - tilt), steady)


@njit(inner=True)
def _below(x):
    """Return the largest power of two at or below `x`, at most 1/2."""
    _, exponent = math.frexp(x)
    return math.ldexp(0.5, min(0, exponent))


@njit(inner=True)
def _simplest(x, tolerance):
    """Return the number with the fewest binary digits within `tolerance` of `x`."""
    grid = 1.0
    while abs(np.rint(x / grid) * grid - x) > tolerance:
        grid *= 0.5
    return np.rint(x / grid) * grid + 0.0


@njit(inner=True)
def _keeps_off(tilt, exact, least, most):
    """Return whether `tilt` is at least half as far between the ends as `exact` is."""
    return 0.5 * (exact - least) <= tilt - least and 0.5 * (most - exact) <= most - tilt


@njit(inner=True)
def _simplify(path, inner, above, owner, sign, sums, held, ends, leaf_ends, width, tilt, theta):
    """Round multipliers within half a standard deviation, so that like families share them.

    If a tilt would come too close to where its weight cannot be normalised, its multipliers are
    rounded less.
    """
    n, m, count = above.size, theta.size, tilt.size
    exact, was = np.empty(m), np.empty(count)
    left = np.empty(count, dtype=np.int64)
    for k in range(m):
        exact[k] = theta[k]
        width[k] = 0.5 / math.sqrt(max(width[k], 1e-6))
    for j in range(count):
        was[j] = tilt[j]
    for _ in range(12):
        for j in range(count):
            left[j] = sums[j]
        for at in range(path.size - 1, -1, -1):
            i = path[at]
            if i < n:
                tilt[inner[i]] = theta[above[i]] if above[i] >= 0 else 0.0
                continue
            k = i - n
            theta[k] = _simplest(exact[k], width[k])
            if owner[k] >= 0:
                j = inner[owner[k]]
                left[j] -= 1
                if held[j] != 0 and left[j] == 0:
                    theta[k] = sign[k] * tilt[j]
                tilt[j] -= sign[k] * theta[k]
        fits = True
        for i in path:
            v = i if i < n else owner[i - n]
            k = above[i] if i < n else i - n
            keeps = True
            if v >= 0:
                j = inner[v]
                keeps = _keeps_off(tilt[j], was[j], ends[j, 0], ends[j, 1])
            if i >= n:
                keeps &= _keeps_off(theta[k], exact[k], leaf_ends[k, 0], leaf_ends[k, 1])
            fits &= keeps
            if k >= 0 and not keeps:
                width[k] *= 0.25
        if fits:
            return
    for k in range(m):
        theta[k] = exact[k]


@njit()
def solve(weights, prior, code, above, owner, sign, order, rounds, simple, theta):
    """Minimise the summed log-normalisers over the multipliers `theta` (m,), which it fills.

    Each round takes the Newton step of all multipliers, by one pass up and one pass down a tree of
    Gaussians. Each step is limited by the weights that it tilts (`_room`), and rounded to a grid
    well below the tolerance: few tilts then occur, so that cached moments are reused. Only leaves
    under a multiplier that moved are evaluated again.

    Returns number of rounds.
    """
    kind, scale, center, lo, hi = weights
    n, m = above.size, theta.size
    ends = np.empty((kind.size, 2))
    for d in range(kind.size):
        ends[d, 0], ends[d, 1] = poles(kind[d], scale[d], lo[d], hi[d])
        if d < len(prior) and prior[d, 0] >= 0.0:
            ends[d, 1] = leaf_pole(kind[d], scale[d], prior[d, 1], hi[d])
    # variables that own sums are numbered; `path` has them and the constraints
    inner = np.empty(n, dtype=np.int32)
    for v in range(n):
        inner[v] = -1
    sums, variable = np.empty(m, dtype=np.int64), np.empty(m, dtype=np.int64)
    for k in range(m):
        sums[k] = 0
    count = 0
    for k in range(m):
        v = owner[k]
        if v >= 0 and inner[v] < 0:
            inner[v] = count
            variable[count] = v
            count += 1
        if v >= 0:
            sums[inner[v]] += 1
    path = np.empty(count + m, dtype=np.int64)
    size = 0
    for i in order:
        if i >= n or inner[i] >= 0:
            path[size] = i
            size += 1
    leaf_ends, step = np.empty((m, 2)), np.empty(m)
    for k in range(m):
        leaf_ends[k, 0], leaf_ends[k, 1] = -np.inf, np.inf
        theta[k], step[k] = 0.0, 1.0
    for v in range(n):
        k = above[v]
        if k >= 0 and inner[v] < 0:
            leaf_ends[k, 0] = max(leaf_ends[k, 0], ends[code[v], 0])
            leaf_ends[k, 1] = min(leaf_ends[k, 1], ends[code[v], 1])
    memory = np.empty((_SLOTS, 4))
    for j in range(_SLOTS):
        memory[j, 0] = -1.0
    leaves = np.empty((m, 3))
    # constraints: mean and variance of the sum, variance that the multiplier tilts, room down and
    # up
    total, spread, width = np.empty(m), np.empty(m), np.empty(m)
    room = np.empty((m, 2))
    # inner variables: moments, tilt, whether they have no weight, precision and weighted mean with
    # everything below, conditional mean, room down and up, number of sums below not yet passed
    mean, var, tilt = np.empty(count), np.empty(count), np.empty(count)
    held, own_ends = np.empty(count, dtype=np.int64), np.empty((count, 2))
    precision, weighted, value = np.empty(count), np.empty(count), np.empty(count)
    free, left = np.empty((count, 2)), np.empty(count, dtype=np.int64)
    for j in range(count):
        d = code[variable[j]]
        tilt[j] = 0.0
        held[j] = kind[d] == FLAT and lo[d] == -np.inf and hi[d] == np.inf
        own_ends[j, 0], own_ends[j, 1] = ends[d, 0], ends[d, 1]
    done = rounds
    for it in range(rounds):
        _add_leaves(code, above, inner, theta, step, weights, prior, memory, leaves)
        for k in range(m):
            total[k], spread[k], width[k] = leaves[k, 0], leaves[k, 1], leaves[k, 1]
            room[k, 0], room[k, 1] = _room(theta[k], leaf_ends[k, 0], leaf_ends[k, 1], leaves[k, 2])
        for j in range(count):
            c = code[variable[j]]
            row = _row(c, tilt[j])
            if memory[row, 0] != c or memory[row, 1] != tilt[j]:
                memory[row, 0], memory[row, 1] = c, tilt[j]
                law = kind[c], scale[c], center[c], lo[c], hi[c]
                memory[row, 2], memory[row, 3] = unary_moments(*law, tilt[j])
            mean[j], var[j] = memory[row, 2], memory[row, 3]
            precision[j] = 1.0 / max(var[j], 1e-300)
            weighted[j] = mean[j] * precision[j]
            free[j, 0], free[j, 1] = _room(tilt[j], own_ends[j, 0], own_ends[j, 1], var[j])
            left[j] = sums[j]
        for i in path:
            if i < n:
                j, k = inner[i], above[i]
                if k < 0:
                    continue
                around = 0.0 if var[j] <= 0.0 else 1.0 / max(precision[j], 1e-300)
                spread[k] += around
                total[k] += mean[j] if var[j] <= 0.0 else weighted[j] * around
                width[k] += around if kind[code[i]] == FLAT else var[j]
                room[k, 0] = min(room[k, 0], free[j, 0])
                room[k, 1] = min(room[k, 1], free[j, 1])
            elif owner[i - n] >= 0:
                k = i - n
                j = inner[owner[k]]
                if 0.0 < spread[k] <= 1e-12:
                    spread[k] = _PRESSED
                p = 1.0 / max(spread[k], 1e-12)
                if p > 1e-200:
                    precision[j] += p
                    weighted[j] += p * sign[k] * total[k]
                # if steps below follow a step above, the variable between them keeps its tilt
                side = 0 if sign[k] > 0 else 1
                free[j, 0] += room[k, side]
                free[j, 1] += room[k, 1 - side]
                if kind[code[owner[k]]] != FLAT:
                    width[k] = max(width[k], var[j])
        moving = 0
        for at in range(path.size - 1, -1, -1):
            i = path[at]
            if i < n:
                j, k = inner[i], above[i]
                by = 0.0 if k < 0 else step[k]
                tilt[j] = 0.0 if k < 0 else theta[k]
                value[j] = mean[j]
                if var[j] > 0.0:
                    value[j] = (weighted[j] + by) / max(precision[j], 1e-300)
                free[j, 0] += by
                free[j, 1] -= by
                continue
            k = i - n
            j = inner[owner[k]] if owner[k] >= 0 else -1
            # the step in the owner's sign
            by, widest = 0.0, spread[k]
            side = 0 if sign[k] > 0 else 1
            least, most = -room[k, side], room[k, 1 - side]
            if 1e-12 < spread[k] < np.inf:
                by = ((value[j] if j >= 0 else 0.0) - sign[k] * total[k]) / spread[k]
            if j >= 0:
                least, most = max(least, most - free[j, 1]), min(most, free[j, 0] + least)
                if var[j] < np.inf:
                    widest = max(widest, var[j])
            by = min(max(by, least), most)
            finest = 1.0 / max(math.sqrt(widest), widest, 1e-9)
            new = theta[k]
            if abs(by) > _TOLERANCE * finest:
                grid = max(_TOLERANCE * finest, 0.125 * abs(by))
                grid = _below(min(grid, 0.25 * (most - least)))
                new = np.rint((theta[k] + sign[k] * by) / grid) * grid
                by = min(max(sign[k] * (new - theta[k]), least), most)
                new = theta[k] + sign[k] * by
            if j >= 0:
                left[j] -= 1
                if held[j] != 0 and left[j] == 0:
                    new = sign[k] * tilt[j]
                tilt[j] -= sign[k] * new
                by = sign[k] * (new - theta[k])
                free[j, 0] += -by - room[k, side]
                free[j, 1] += by - room[k, 1 - side]
            step[k] = new - theta[k]
            theta[k] = new
            moving += step[k] != 0.0
        if moving == 0:
            done = it
            break
    if simple:
        _simplify(
            path, inner, above, owner, sign, sums, held, own_ends, leaf_ends, width, tilt, theta
        )
    return done


@njit(inner=True)
def _turned(ways, sign):
    """Return `ways`, with up and down swapped if `sign` is negative."""
    return ways if sign > 0 else (ways & 1) << 1 | ways >> 1


@njit()
def improper(above, owner, sign, order, own, summed):
    """Return where unbounded weights cannot be normalised: 1 inside a sum, 2 at a root, else 0.

    `own` (n,) marks the directions in which variables' weights do not decrease: 1 upwards, 2
    downwards. It is overwritten, and so is `summed` (m,), zeros on entry; both int64.
    """
    n = above.size
    inside = at_root = 0
    for i in order:
        if i >= n:
            k = i - n
            if owner[k] >= 0:
                own[owner[k]] &= _turned(summed[k], sign[k])
        elif above[i] < 0:
            at_root |= own[i]
        else:
            k = above[i]
            inside |= summed[k] & _turned(own[i], -1)
            summed[k] |= own[i]
    return min(inside, 1) + 2 * min(at_root, 1)
