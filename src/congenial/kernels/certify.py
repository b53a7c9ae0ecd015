"""A proven bound on what the windows of a sum network cut off.

For each class, ``loss_up[c, g]`` bounds the probability, given that the class takes the value at
grid point g, that some variable below lies beyond the upper end of its window; ``loss_down`` is
the same for lower ends. All messages are log-concave, so parts given their sum increase with the
sum (Efron 1965): the losses are monotone, and a few grid points bound every value between. True
messages exceed the computed ones by at most ``1 / (1 - loss)``, and beyond the last point where the
loss is below one half they are bounded by a geometric series, again by log-concavity.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from congenial.kernels.messages import MERGE, PRODUCT

GRID = 9
_HALF = np.array([0.0, 0.3, 0.5, 0.65, 0.75, 0.83, 0.9, 0.95, 1.0])


@njit(cache=True)
def _point(lo, hi, mid, g, upper):
    if upper:
        return mid + int(np.ceil(_HALF[g] * (hi - mid)))
    return mid - int(np.ceil(_HALF[g] * (mid - lo)))


@njit(cache=True)
def _spread_losses(lo, hi, mid, up, down, out_up, out_down):
    """Write the losses of every value lo..hi from those at the grid points."""
    g = 0
    for i in range(hi - lo + 1):
        value = lo + i
        while g < GRID - 1 and _point(lo, hi, mid, g, True) < value:
            g += 1
        out_up[i] = up[g]
    g = 0
    for i in range(hi - lo, -1, -1):
        value = lo + i
        while g < GRID - 1 and _point(lo, hi, mid, g, False) > value:
            g += 1
        out_down[i] = down[g]


@njit(cache=True)
def _losses(c, lo, hi, mid, up, down):
    width = hi[c] - lo[c] + 1
    a, b = np.empty(width), np.empty(width)
    _spread_losses(lo[c], hi[c], mid[c], up[c], down[c], a, b)
    return a, b


@njit(cache=True)
def _reliable(up, down):
    """First and last index where both losses are at most a half; (1, 0) if there is none."""
    first, last = 0, up.size - 1
    while first <= last and up[first] + down[first] > 0.5:
        first += 1
    while last >= first and up[last] + down[last] > 0.5:
        last -= 1
    return first, last


@njit(cache=True)
def _beyond(weights, losses, edge, step):
    """Bound the sum of a log-concave sequence beyond index `edge`, going by `step`."""
    at = weights[edge] / (1.0 - losses[edge])
    if at <= 0.0:
        return 0.0
    best = np.inf
    back = 1
    while True:
        i = edge - step * back
        if i < 0 or i >= weights.size:
            break
        if weights[i] > 0.0 and at < weights[i]:
            ratio = (at / weights[i]) ** (1.0 / back)
            if ratio < 1.0:
                best = min(best, at * ratio / (1.0 - ratio))
        back *= 2
    return best


@njit(cache=True)
def _merge_loss(s, a, b, ta, tb, lo_a, lo_b, ends, fin, loss_a, loss_b, total_a, total_b, upper, share):
    """Loss of a merge at sum s on one side.

    `ends` holds the reliable index ranges of both parts (4,), `fin` whether the true support ends
    with the window (4,): lower and upper end of each part. `share` receives the bounds for the two
    parts' own tails.
    """
    first = max(lo_a + ends[0], s - lo_b - ends[3])
    last = min(lo_a + ends[1], s - lo_b - ends[2])
    share[0] = share[1] = 0.0
    if last < first:
        share[0] = share[1] = 1.0
        return 1.0
    n = last - first + 1
    weights, losses = np.empty(n), np.empty(n)
    mass = 0.0
    inner = 0.0
    for k in range(n):
        i, j = first + k - lo_a, s - first - k - lo_b
        w = ta[i] * tb[j]
        keep = (1.0 - total_a[i]) * (1.0 - total_b[j])
        weights[k] = w
        losses[k] = 1.0 - keep
        mass += w
        inner += w / keep * (loss_a[i] + loss_b[j])
    if mass <= 0.0:
        share[0] = share[1] = 1.0
        return 1.0
    at_upper_a = last == lo_a + ends[1]
    at_lower_b = last == s - lo_b - ends[2]
    at_lower_a = first == lo_a + ends[0]
    at_upper_b = first == s - lo_b - ends[3]
    right_open = not ((at_upper_a and fin[1]) or (at_lower_b and fin[2]))
    left_open = not ((at_lower_a and fin[0]) or (at_upper_b and fin[3]))
    # beyond the last l: part a too large, or part b too small; before the first: the reverse
    if right_open and ((upper and at_upper_a) or (not upper and at_lower_b)):
        share[0 if upper else 1] += _beyond(weights, losses, n - 1, 1) / mass
    if left_open and ((upper and at_upper_b) or (not upper and at_lower_a)):
        share[1 if upper else 0] += _beyond(weights, losses, 0, -1) / mass
    return min(1.0, inner / mass + share[0] + share[1])


@njit(cache=True)
def certify(ctype, left, right, sign, lo, hi, mid, support_lo, support_hi, offset, table, loss_up, loss_down, tail):
    """Fill the losses of every class, and `tail` (per class) with the worst tail of its own.

    ``tail[c]`` is the largest share that a split at the middle of a merge loses beyond the window
    of its part c: where the total loss is too large, the windows of the worst classes must grow.
    """
    share = np.zeros(2)
    for c in range(ctype.size):
        if lo[c] > hi[c]:
            continue
        if ctype[c] == PRODUCT:
            a, b = left[c], right[c]
            up_a, down_a = _losses(a, lo, hi, mid, loss_up, loss_down)
            up_b, down_b = _losses(b, lo, hi, mid, loss_up, loss_down)
            for g in range(GRID):
                for upper in (True, False):
                    u = _point(lo[c], hi[c], mid[c], g, upper)
                    own, below = u - lo[a], sign[c] * u - lo[b]
                    if upper:
                        loss = up_a[own] + (up_b[below] if sign[c] > 0 else down_b[below])
                        loss_up[c, g] = min(1.0, loss)
                    else:
                        loss = down_a[own] + (down_b[below] if sign[c] > 0 else up_b[below])
                        loss_down[c, g] = min(1.0, loss)
        elif ctype[c] == MERGE:
            a, b = left[c], right[c]
            ta = table[offset[a] : offset[a] + hi[a] - lo[a] + 1]
            tb = table[offset[b] : offset[b] + hi[b] - lo[b] + 1]
            up_a, down_a = _losses(a, lo, hi, mid, loss_up, loss_down)
            up_b, down_b = _losses(b, lo, hi, mid, loss_up, loss_down)
            first_a, last_a = _reliable(up_a, down_a)
            first_b, last_b = _reliable(up_b, down_b)
            ends = (first_a, last_a, first_b, last_b)
            fin = (
                lo[a] + first_a <= support_lo[a],
                lo[a] + last_a >= support_hi[a],
                lo[b] + first_b <= support_lo[b],
                lo[b] + last_b >= support_hi[b],
            )
            both_a, both_b = up_a + down_a, up_b + down_b
            for g in range(GRID):
                s = _point(lo[c], hi[c], mid[c], g, True)
                loss_up[c, g] = _merge_loss(
                    s, a, b, ta, tb, lo[a], lo[b], ends, fin, up_a, up_b, both_a, both_b, True, share
                )
                if g == 1:
                    tail[a], tail[b] = max(tail[a], share[0]), max(tail[b], share[1])
                s = _point(lo[c], hi[c], mid[c], g, False)
                loss_down[c, g] = _merge_loss(
                    s, a, b, ta, tb, lo[a], lo[b], ends, fin, down_a, down_b, both_a, both_b, False, share
                )
                if g == 1:
                    tail[a], tail[b] = max(tail[a], share[0]), max(tail[b], share[1])


@njit(cache=True)
def root_loss(c, lo, hi, mid, support_lo, support_hi, offset, table, loss_up, loss_down):
    """Loss at a variable with no sum above it: its own tails and the losses below it."""
    up, down = _losses(c, lo, hi, mid, loss_up, loss_down)
    first, last = _reliable(up, down)
    if last < first:
        return 1.0
    t = table[offset[c] : offset[c] + hi[c] - lo[c] + 1][first : last + 1]
    losses = (up + down)[first : last + 1]
    mass = t.sum()
    if mass <= 0.0:
        return 1.0
    total = (t / (1.0 - losses) * losses).sum()
    if lo[c] + last < support_hi[c]:
        total += _beyond(t, losses, t.size - 1, 1)
    if lo[c] + first > support_lo[c]:
        total += _beyond(t, losses, 0, -1)
    return min(1.0, total / mass)


@njit(cache=True)
def loss_at(value, c, lo, hi, mid, loss_up, loss_down):
    """Loss of class c at one value inside its window."""
    up, down = _losses(c, lo, hi, mid, loss_up, loss_down)
    return min(1.0, up[value - lo[c]] + down[value - lo[c]])
