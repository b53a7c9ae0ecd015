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
# Unsigned indices are never counted from the end, so that the compiler uses vectors; counted with
# them, -1 is the largest one.
_U0, _U1, _U2, _U3 = np.uint64(0), np.uint64(1), np.uint64(2), np.uint64(3)
_U4, _U5, _U6, _U7 = np.uint64(4), np.uint64(5), np.uint64(6), np.uint64(7)


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
def _add_tail(out, first, down, edge, ratio, body, low_edge, low_ratio):
    """Add to out[i] the sum over k >= 1 of edge ratio^k Y(first + i - k).

    Y is `body` on 0 .. n - 1, with the geometric tail (low_edge, low_ratio) before it and nothing
    after it. If `down`, `out` and `body` are read from their ends.
    """
    if edge <= 0.0:
        return
    n = body.size
    last = first + out.size - 1
    joint = ratio * low_ratio if low_edge > 0.0 else 0.0
    if not (joint < 1.0) or not (ratio < np.inf):
        for i in range(out.size):
            out[i] = np.inf
        return
    t = edge * (low_edge * joint / (1.0 - joint) if low_edge > 0.0 else 0.0)
    # places of body[0] and of what belongs to it in `out`
    way = ~_U0 if down else _U1
    x = np.uint64(n - 1 if down else 0)
    y = np.uint64(out.size - 1 if down else 0) - way * np.uint64(first)
    z, before = y, t
    for j in range(-1, first - 1, -1):
        before *= low_ratio
        z -= way
        if j <= last:
            out[z] += before
    r = ratio
    r2 = r * r
    r3, r4 = r2 * r, r2 * r2
    stop = min(last + 1, n)
    j = 0
    while j < min(first, stop):
        t = r * (t + edge * body[x])
        x, y, j = x + way, y + way, j + 1
    # four steps at a time: the next four values need the last one only
    while j + 4 <= stop:
        x1, y1 = x + way, y + way
        x2, y2 = x1 + way, y1 + way
        x3, y3 = x2 + way, y2 + way
        a, b, c, d = edge * body[x], edge * body[x1], edge * body[x2], edge * body[x3]
        out[y] += t
        out[y1] += r * (t + a)
        out[y2] += r2 * (t + a) + r * b
        out[y3] += r3 * (t + a) + (r2 * b + r * c)
        t = r4 * t + ((r4 * a + r3 * b) + (r2 * c + r * d))
        x, y, j = x3 + way, y3 + way, j + 4
    while j <= last:
        if j >= first:
            out[y] += t
        t *= r
        if j < n:
            t += r * edge * body[x]
        x, y, j = x + way, y + way, j + 1


@njit(inline="always", inner=True)
def _lost_in_merge(a, b, lost_a, lost_b, tails_a, tails_b, first, small, inside, out, work):
    """Add a bound on what a merge's window misses; (a * b)[first + i] belongs to out[i].

    Returns how much more is to be added to every entry. What the parts lost within their windows
    is left out unless `inside`. `work` has four lines, as `certify` makes them.
    """
    whole_a, whole_b = work[0, : a.size], work[1, : b.size]
    _add(a, lost_a, whole_a)
    _add(b, lost_b, whole_b)
    rest = 0.0
    if inside:
        # no table's entries are above 1, but for a little rounding
        top = 1.0 + 1e-9
        whole, left = _cross(lost_b, a, small, first, out, work[2], work[3])
        rest += top * left
        top += whole
        whole, left = _cross(lost_a, whole_b, small, first, out, work[2], work[3])
        rest += top * left
    # upper ends against the other part read upwards, then the mirror images
    back = a.size + b.size - 2 - (first + out.size - 1)
    for side in range(2):
        down = side == 1
        begin, i, k = (back, 0, 2) if down else (first, 2, 0)
        edge_a, ratio_a, low_a, fall_a = tails_a[i], tails_a[i + 1], tails_a[k], tails_a[k + 1]
        edge_b, ratio_b, low_b, fall_b = tails_b[i], tails_b[i + 1], tails_b[k], tails_b[k + 1]
        _add_tail(out, begin - a.size + 1, down, edge_a, ratio_a, whole_b, low_b, fall_b)
        _add_tail(out, begin - b.size + 1, down, edge_b, ratio_b, whole_a, low_a, fall_a)
    return rest


@njit(inner=True)
def _add(x, y, out):
    for k in range(out.size):
        out[k] = x[k] + y[k]


@njit(inner=True)
def _total(x, begin, stop):
    """Return the sum of x[begin : stop]."""
    out = 0.0
    for k in range(begin, stop):
        out += x[k]
    return out


@njit(inner=True, fused=True)
def _cross(lost, other, small, first, out, wide, row):
    """Add (lost * other)[first + i] to out[i], but for losses of which eight are at most `small`.

    Returns the sums of all losses and of those left out. `wide` and `row` are for work.
    """
    n, m = other.size, out.size
    rows = (lost.size + 7) // 8 * 8
    for k in range(lost.size):
        row[k] = lost[k]
    for k in range(lost.size, rows):
        row[k] = 0.0
    # other[t - rows + first] at t, zero outside
    for k in range(m + rows):
        wide[k] = 0.0
    to, of = np.uint64(max(0, rows - first)), np.uint64(max(0, first - rows))
    for k in range(np.uint64(max(0, min(n + rows - first, m + rows) - max(0, rows - first)))):
        wide[to + k] = other[of + k]
    whole = rest = 0.0
    for i in range(0, rows, 8):
        a0, a1, a2, a3 = row[i], row[i + 1], row[i + 2], row[i + 3]
        a4, a5, a6, a7 = row[i + 4], row[i + 5], row[i + 6], row[i + 7]
        here = ((a0 + a1) + (a2 + a3)) + ((a4 + a5) + (a6 + a7))
        whole += here
        if here <= small:
            rest += here
            continue
        begin, stop = max(0, i - first), min(m, i + 7 + n - first)
        at = np.uint64(rows - i - 7)
        for k in range(np.uint64(begin), np.uint64(max(begin, stop))):
            j = at + k
            t = (a0 * wide[j + _U7] + a1 * wide[j + _U6]) + (
                a2 * wide[j + _U5] + a3 * wide[j + _U4]
            )
            u = (a4 * wide[j + _U3] + a5 * wide[j + _U2]) + (a6 * wide[j + _U1] + a7 * wide[j])
            out[k] += t + u
    return whole, rest


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
    most = 0
    for c in range(begin, end):
        most = max(most, hi[c] - lo[c] + 1)
        if left[c] >= 0:
            a, b = left[c], right[c]
            most = max(most, hi[a] - lo[a] + 1, hi[b] - lo[b] + 1)
    work = np.empty((4, 2 * most + 8))
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
                out[i] = (p * (y + q) + x * q) / factor[c] + TINY
        elif ctype[c] == MERGE:
            wa, wb = hi[a] - lo[a] + 1, hi[b] - lo[b] + 1
            if not crossed[c]:
                for i in range(width):
                    out[i] = 0.0
            rest = _lost_in_merge(
                table[offset[a] : offset[a] + wa],
                table[offset[b] : offset[b] + wb],
                lost[place[a] : place[a] + wa],
                lost[place[b] : place[b] + wb],
                tails[a],
                tails[b],
                lo[c] - lo[a] - lo[b],
                small,
                not crossed[c],
                out,
                work,
            )
            scale = 1.0 / factor[c]
            for i in range(width):
                out[i] = (out[i] + rest) * scale + TINY
        else:
            for i in range(width):
                out[i] = TINY
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
