"""A proven bound on what the windows of a sum network cut off.

Beside the computed message m of each class runs an upper bound U = m + L of the true one: `lost`
holds L inside the window, and a geometric tail ``edge * ratio^k`` bounds the true message k steps
beyond each end. True messages are log-concave (sums and products of log-concave weights), so a
ratio between two points of U and m bounds every later one. A merge adds to L what its parts lost
and all that their tails bring in; the tails are summed by one recursion a step. At the top, L / U
is the probability that a draw leaves some window: the total variation that cutting costs.
"""

from __future__ import annotations

import math

import numpy as np

from congenial.kernels.compiling import njit
from congenial.kernels.messages import MERGE, PRODUCT

# Stands for all that underflows, relative to the largest entry of a table.
TINY = 1e-290


@njit(inner=True)
def _tail(table, lost, step):
    """Return (edge, ratio) of the geometric bound beyond the last entry, going by `step`."""
    n = table.size
    end = n - 1 if step > 0 else 0
    edge = max(table[end] + lost[end], TINY)
    rate = -np.inf
    back = 1
    while back < n:
        inner = table[end - step * back]
        if inner <= 0.0:
            back *= 2
            continue
        slope = math.log(inner / edge) / back
        # slopes of a log-concave function only fall from here to its mode
        if slope < rate:
            break
        rate = max(rate, slope)
        back *= 2
    mode = end
    if rate == -np.inf:
        mode = 0
        for k in range(1, n):
            mode = k if table[k] > table[mode] else mode
    if mode != end and table[mode] > 0.0:
        rate = math.log(table[mode] / edge) / abs(end - mode)
    return edge, math.exp(-rate) * (1.0 + 1e-12)


@njit(inner=True)
def _add_tail(out, first, edge, ratio, body, low_edge, low_ratio):
    """Add to out[i] the sum over k >= 1 of edge ratio^k Y(first + i - k).

    Y is `body` on 0 .. n - 1, with the geometric tail (low_edge, low_ratio) before it and nothing
    after it.
    """
    if edge <= 0.0:
        return
    n = body.size
    last = first + out.size - 1
    joint = ratio * low_ratio if low_edge > 0.0 else 0.0
    if not (joint < 1.0) or not (ratio < np.inf):
        out[:] = np.inf
        return
    t = edge * (low_edge * joint / (1.0 - joint) if low_edge > 0.0 else 0.0)
    before = t
    for j in range(-1, first - 1, -1):
        before *= low_ratio
        if j <= last:
            out[j - first] += before
    # four steps at a time: the next four values need the last one only
    r, r2, r3, r4 = ratio, ratio**2, ratio**3, ratio**4
    stop = min(last, n)
    j = 0
    while j + 4 <= min(first, stop + 1):
        a, b, c, d = edge * body[j], edge * body[j + 1], edge * body[j + 2], edge * body[j + 3]
        t = r4 * t + ((r4 * a + r3 * b) + (r2 * c + r * d))
        j += 4
    while j < min(first, stop + 1):
        t = r * (t + edge * body[j])
        j += 1
    while j + 4 <= min(stop + 1, n):
        at = j - first
        a, b, c, d = edge * body[j], edge * body[j + 1], edge * body[j + 2], edge * body[j + 3]
        out[at] += t
        out[at + 1] += r * (t + a)
        out[at + 2] += r2 * (t + a) + r * b
        out[at + 3] += r3 * (t + a) + (r2 * b + r * c)
        t = r4 * t + ((r4 * a + r3 * b) + (r2 * c + r * d))
        j += 4
    while j <= last:
        if j >= first:
            out[j - first] += t
        t *= r
        if j < n:
            t += r * edge * body[j]
        j += 1


@njit(inline="always", inner=True)
def _lost_in_merge(a, b, lost_a, lost_b, tails_a, tails_b, first, small, crossed, out):
    """Add the bound on what a merge's window misses; (a * b)[first + i] belongs to out[i]."""
    whole_a, down_a = _both_ways(a, lost_a)
    whole_b, down_b = _both_ways(b, lost_b)
    if not crossed:
        _cross(lost_a, whole_b, small, first, out)
        _cross(lost_b, a, small, first, out)
    # a's upper end against b read upwards, then the mirror images
    back = a.size + b.size - 2 - (first + out.size - 1)
    low_a, ratio_a, high_a, rise_a = tails_a[0], tails_a[1], tails_a[2], tails_a[3]
    low_b, ratio_b, high_b, rise_b = tails_b[0], tails_b[1], tails_b[2], tails_b[3]
    _add_tail(out, first - a.size + 1, high_a, rise_a, whole_b, low_b, ratio_b)
    _add_tail(out, first - b.size + 1, high_b, rise_b, whole_a, low_a, ratio_a)
    n = out.size
    down = np.empty(n)
    for k in range(n):
        down[k] = out[n - 1 - k]
    _add_tail(down, back - a.size + 1, low_a, ratio_a, down_b, high_b, rise_b)
    _add_tail(down, back - b.size + 1, low_b, ratio_b, down_a, high_a, rise_a)
    for k in range(n):
        out[k] = down[n - 1 - k]


@njit(inner=True)
def _both_ways(table, lost):
    """Return table + lost, and the same read downwards."""
    n = table.size
    whole, down = np.empty(n), np.empty(n)
    for k in range(n):
        whole[k] = down[n - 1 - k] = table[k] + lost[k]
    return whole, down


@njit(inner=True)
def _total(x, begin, stop):
    """Return the sum of x[begin : stop]."""
    out = 0.0
    for k in range(begin, stop):
        out += x[k]
    return out


@njit(inner=True)
def _cross(lost, other, small, first, out):
    """Add a bound on (lost * other)[first + i] to out[i].

    Losses are summed over short blocks and multiplied by the largest entry of `other` that the
    block meets; blocks are short against the width of `other`, so the bound is little larger.
    """
    n = other.size
    top = other[0]
    for k in range(1, n):
        top = max(top, other[k])
    whole = _total(lost, 0, lost.size)
    if whole <= small:
        for k in range(out.size):
            out[k] += whole * top
        return
    block = min(max(n // 24, 1), 64)
    # peak[t + block - 1] is the largest of other[t .. t + block - 1]
    peak = np.empty(n + block - 1)
    for k in range(peak.size):
        peak[k] = 0.0
    for r in range(block):
        _raise(peak[block - 1 - r : block - 1 - r + n], other)
    rest = 0.0
    for i in range(0, lost.size, block):
        w = _total(lost, i, min(i + block, lost.size))
        if w <= small:
            rest += w
            continue
        begin, stop = max(0, i - first), min(out.size, i + block - 1 + n - first)
        if stop > begin:
            at = begin + first - i
            _add_scaled(out[begin:stop], w, peak[at : at + stop - begin])
    rest *= top
    for j in range(out.size):
        out[j] += rest


@njit(inner=True)
def _raise(out, other):
    for k in range(out.size):
        out[k] = max(out[k], other[k])


@njit(inner=True)
def _add_scaled(out, w, other):
    for k in range(out.size):
        out[k] += w * other[k]


@njit()
def certify(
    begin,
    end,
    ctype,
    left,
    right,
    sign,
    lo,
    hi,
    support_lo,
    support_hi,
    offset,
    place,
    table,
    factor,
    small,
    crossed,
    lost,
    tails,
):
    """Fill `lost` and `tails` (c, 4): edge and ratio below and above each window.

    ``lost[place[c]]`` belongs to the first entry of class c. Losses up to `small` are added up
    instead of being followed entry by entry. Where `crossed`, what the parts of a merge lost
    inside their windows is there already.
    """
    for c in range(begin, end):
        if lo[c] > hi[c]:
            continue
        width = hi[c] - lo[c] + 1
        t = table[offset[c] : offset[c] + width]
        out = lost[place[c] : place[c] + width]
        a, b = left[c], right[c]
        if ctype[c] == PRODUCT:
            at_a = offset[a] + lo[c] - lo[a]
            lost_a = place[a] + lo[c] - lo[a]
            for i in range(width):
                below = sign[c] * (lo[c] + i) - lo[b]
                x, y = table[at_a + i], table[offset[b] + below]
                p, q = lost[lost_a + i], lost[place[b] + below]
                out[i] = (p * (y + q) + x * q) / factor[c]
        elif ctype[c] == MERGE:
            wa, wb = hi[a] - lo[a] + 1, hi[b] - lo[b] + 1
            if not crossed[c]:
                out[:] = 0.0
            _lost_in_merge(
                table[offset[a] : offset[a] + wa],
                table[offset[b] : offset[b] + wb],
                lost[place[a] : place[a] + wa],
                lost[place[b] : place[b] + wb],
                tails[a],
                tails[b],
                lo[c] - lo[a] - lo[b],
                small,
                crossed[c],
                out,
            )
            for i in range(width):
                out[i] /= factor[c]
        else:
            out[:] = 0.0
        for i in range(width):
            out[i] += TINY
        tails[c, 0] = tails[c, 2] = 0.0
        if lo[c] > support_lo[c]:
            tails[c, 0], tails[c, 1] = _tail(t, out, np.int64(-1))
        if hi[c] < support_hi[c]:
            tails[c, 2], tails[c, 3] = _tail(t, out, np.int64(1))


@njit()
def root_loss(table, lost, tails):
    """Loss at a variable with no sum above it: its own tails and the losses below it."""
    out = _total(lost, 0, lost.size)
    for side in (0, 2):
        if tails[side] > 0.0:
            ratio = tails[side + 1]
            if not ratio < 1.0:
                return 1.0
            out += tails[side] * ratio / (1.0 - ratio)
    return out / (_total(table, 0, table.size) + out)
