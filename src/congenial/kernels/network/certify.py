"""A proved bound on the truncation error of the windows of a sum network.

Each class has a computed message m and an upper bound U = m + L of its true message. `lost` is L
inside the window, and a geometric tail ``edge * ratio^k`` bounds the true message k steps beyond
each end. True messages are log-concave (convolutions and products of log-concave weights), so a
ratio between two points of U and m bounds every later ratio. A merge adds to L the losses of its
parts and the contributions of their tails, summed by one recursion. At the top, L / U is the
probability that a draw leaves some window: the total variation of the truncation.
"""

from __future__ import annotations

import numpy as np

from congenial.kernels.network.messages import MERGE, PRODUCT, widest
from congenial.kernels.numerics import elementary
from congenial.kernels.numerics.compiling import njit
from congenial.kernels.numerics.convolution import add_eight

# Bound on entries that underflow, relative to the largest entry of a table.
TINY = 1e-290
# With unsigned indices numba does not check for negative ones, so loops vectorise. As an unsigned
# index, -1 is the largest one.
_U0, _U1, _U2, _U3 = np.uint64(0), np.uint64(1), np.uint64(2), np.uint64(3)
_U4, _U5, _U6, _U7 = np.uint64(4), np.uint64(5), np.uint64(6), np.uint64(7)
# Below 4 times the negligible loss, one number bounds the loss of all entries of a class.
_EVEN = 4.0
# Largest charge to an entry for neglected losses, as a multiple of its own.
_SHARED = 16.0
# Part of the negligible loss below which a tail is neglected: a merge has four tails.
_FAINT = 0.125
# Zeros at both ends of the arrays that are convolved, so that every group of eight is complete.
_PAD = np.uint64(8)


@njit(inner=True)
def _tail(table, at, lost, place, n, step):
    """Return (edge, ratio) of the geometric bound beyond the last of n entries, going by `step`.

    Entries begin at `at` in `table`, their losses at `place` in `lost`.
    """
    end = n - 1 if step > 0 else 0
    edge = max(table[at + end] + lost[place + end], TINY)
    rate = -np.inf
    back = 1
    while back < n:
        inner = table[at + end - step * back]
        if inner <= 0.0 or (edge <= TINY and inner <= edge):  # underflow: no information
            back *= 2
            continue
        slope = elementary.log(inner / edge) / back
        # slopes of a log-concave function only fall from here to its mode
        if slope < rate:
            break
        rate = max(rate, slope)
        back *= 2
    # a narrow peak far inside a wide window may lie between the points visited, all of which are
    # below the loss of the last entry
    mode = end
    if rate <= 0.0:
        mode = 0
        for k in range(1, n):
            mode = k if table[at + k] > table[at + mode] else mode
    if mode != end and table[at + mode] > 0.0:
        rate = max(rate, elementary.log(table[at + mode] / edge) / abs(end - mode))
    return edge, elementary.exp(-rate) * (1.0 + 1e-12)


@njit(inner=True)
def add_tail(out, place, m, first, down, edge, ratio, body, n, low_edge, low_ratio, small):
    """Add to out[place + i] the sum over k >= 1 of edge ratio^k Y(first + i - k), for i below m.

    Y is `body` on 0 .. n - 1, which begins at its entry _PAD, with the geometric tail (low_edge,
    low_ratio) before it and nothing after it. If `down`, both are read from their ends. Entries
    whose sum is at most `small` may stay unchanged; returns the largest sum left out so.
    """
    if edge <= 0.0:
        return 0.0
    last = first + m - 1
    joint = ratio * low_ratio if low_edge > 0.0 else 0.0
    if not (joint < 1.0) or not (ratio < np.inf):
        for i in range(m):
            out[place + i] = np.inf
        return 0.0
    t = edge * (low_edge * joint / (1.0 - joint) if low_edge > 0.0 else 0.0)
    # positions of the first entry of Y and of the corresponding entry of `out`
    way = ~_U0 if down else _U1
    x = _PAD + np.uint64(n - 1 if down else 0)
    y = np.uint64(place + (m - 1 if down else 0)) - way * np.uint64(first)
    r = ratio
    stop = min(last + 1, n)
    j, left = 0, 0.0
    if t <= small and r <= 1.0 and (low_edge <= 0.0 or low_ratio <= 1.0):
        # every sum is at most t plus the sum of the terms up to it
        low = x - np.uint64(7) if down else x
        while j + 8 <= stop:
            more = t + edge * _eight(body, low)
            if more > small:
                break
            t, low, j = more, low + way * np.uint64(8), j + 8
        left = t
        x, y = x + way * np.uint64(j), y + way * np.uint64(j)
    else:
        z, before = y, t
        for i in range(-1, first - 1, -1):
            before *= low_ratio
            z -= way
            if i <= last:
                out[z] += before
    while j <= last:
        if j >= n and t <= small and r <= 1.0:
            return max(left, t)
        if j >= first:
            out[y] += t
        t *= r
        if j < n:
            t += r * edge * body[x]
        x, y, j = x + way, y + way, j + 1
    return left


@njit(inner=True)
def _separate(table, at, lost, place, n, even, whole, uneven):
    """Write table + lost from _PAD on into `whole`, lost - even into `uneven`; zeros around them.

    Returns the sum of the first.
    """
    for k in range(_PAD):
        whole[k] = whole[_PAD + np.uint64(n) + k] = uneven[np.uint64(n) + k] = 0.0
    p, q = np.uint64(at), np.uint64(place)
    for k in range(np.uint64(n)):
        x = lost[q + k]
        whole[_PAD + k] = table[p + k] + x
        uneven[k] = x - even
    out = 0.0
    for k in range(_PAD, np.uint64(n) + _PAD, np.uint64(8)):
        out += _eight(whole, k)
    return out


@njit(inner=True)
def _eight(x, i):
    """Return the sum of x[i : i + 8]."""
    low = (x[i] + x[i + _U1]) + (x[i + _U2] + x[i + _U3])
    return low + ((x[i + _U4] + x[i + _U5]) + (x[i + _U6] + x[i + _U7]))


@njit(inner=True)
def _cross(lost, size, other, n, total, small, first, out, place, m, rise, fall):
    """Add (lost * other)[first + i] to out[place + i], i below m, but for parts of at most `small`.

    Eight of the `size` losses are processed at a time, with those of the n entries of `other` that
    can contribute more than `small`. The entries begin at _PAD and add up to `total`. Returns the
    sum of all losses and of those left out. `rise` and `fall` are scratch.
    """
    whole = most = 0.0
    for i in range(np.uint64(0), np.uint64(size), np.uint64(8)):
        here = _eight(lost, i)
        whole += here
        most = max(most, here)
    # each of m entries is charged for everything left out, though it has only a part of it
    few = small * min(1.0, _SHARED * total / m)
    if most <= few:
        return whole, whole
    # largest sum of eight entries up to each group of eight, and from each group on
    eights = np.uint64((n + 7) // 8)
    top = 0.0
    for q in range(eights):
        here = _eight(other, _PAD + np.uint64(8) * q)
        fall[q] = here
        top = max(top, here)
        rise[q] = top
    top = 0.0
    for q in range(eights):
        r = eights - _U1 - q
        top = max(top, fall[r])
        fall[r] = top
    rest, low, high = 0.0, 0, (n + 7) // 8
    # in total, the losses left out cost at most `small`
    little = small / (size // 8 + 1)
    for i in range(0, size, 8):
        here = _eight(lost, np.uint64(i))
        if here <= few:
            rest += here
            continue
        rest += little
        if here * top <= little:
            continue
        while low > 0 and here * rise[low - 1] > little:
            low -= 1
        while here * rise[low] <= little:
            low += 1
        while high < (n + 7) // 8 and here * fall[high] > little:
            high += 1
        while here * fall[high - 1] <= little:
            high -= 1
        begin = max(0, i + 8 * low - first)
        stop = min(m, i + 7 + min(8 * high, n) - first)
        add_eight(lost, i, other, 8 + first - i, out, np.uint64(place), begin, stop)
    return whole, rest


@njit()
def certify(
    begin, end, classes, windows, support_lo, support_hi, table, factor, small, crossed, losses
):
    """Fill `lost`, `even` and `tails` (c, 4): edge and ratio below and above each window.

    ``lost[place[c]]`` belongs to the first entry of class c, and all its losses are at least
    ``even[c]``, which costs no convolution. Losses up to `small` are added up, not followed entry
    by entry. If `crossed`, `lost` already contains the losses of a merge's parts inside their
    windows.
    """
    ctype, left, right, sign = classes
    lo, hi, offset = windows
    place, lost, even, tails = losses
    # no views of arrays below: counting their references takes longer than short sums
    room = widest(begin, end, classes, windows) + 16
    whole_a, whole_b, uneven_a = np.empty(room), np.empty(room), np.empty(room)
    uneven_b, rise, fall = np.empty(room), np.empty(room), np.empty(room)
    for c in range(begin, end):
        if lo[c] > hi[c]:
            continue
        n, at = hi[c] - lo[c] + 1, place[c]
        a, b = left[c], right[c]
        even[c] = 0.0
        if ctype[c] == PRODUCT:
            at_a = offset[a] + lo[c] - lo[a]
            lost_a = place[a] + lo[c] - lo[a]
            for i in range(n):
                below = sign[c] * (lo[c] + i) - lo[b]
                x, y = table[at_a + i], table[offset[b] + below]
                p, q = lost[lost_a + i], lost[place[b] + below]
                lost[at + i] = (p * (y + q) + x * q) / factor[c] + TINY
        elif ctype[c] == MERGE:
            wa, wb = hi[a] - lo[a] + 1, hi[b] - lo[b] + 1
            first = lo[c] - lo[a] - lo[b]
            sum_a = _separate(table, offset[a], lost, place[a], wa, even[a], whole_a, uneven_a)
            sum_b = _separate(table, offset[b], lost, place[b], wb, even[b], whole_b, uneven_b)
            rest = 0.0
            if not crossed[c]:
                for i in range(n):
                    lost[at + i] = 0.0
                # entries of tables are at most 1, up to rounding
                top = 1.0 + 1e-9
                all_b, left_b = _cross(
                    uneven_b, wb, whole_a, wa, sum_a, small, first, lost, at, n, rise, fall
                )
                all_a, left_a = _cross(
                    uneven_a, wa, whole_b, wb, sum_b, small, first, lost, at, n, rise, fall
                )
                rest = (top + all_a + even[a]) * left_b + even[b] * sum_a
                rest += (top + all_b + even[b]) * left_a + even[a] * sum_b
            # upper ends against the other part read upwards, then the mirror images
            for side in range(2):
                down = side == 1
                i, k = (0, 2) if down else (2, 0)
                begins = wa + wb - 1 - first - n if down else first
                near, far = (tails[a, i], tails[a, i + 1]), (tails[b, k], tails[b, k + 1])
                to = lost, at, n, begins - wa + 1, down
                rest += add_tail(*to, *near, whole_b, wb, *far, _FAINT * small)
                near, far = (tails[b, i], tails[b, i + 1]), (tails[a, k], tails[a, k + 1])
                to = lost, at, n, begins - wb + 1, down
                rest += add_tail(*to, *near, whole_a, wa, *far, _FAINT * small)
            scale = 1.0 / factor[c]
            # a larger even loss would make the edges, and so the tails, of wide tables too large
            even[c] = rest * scale if rest * scale <= _EVEN * small else 0.0
            for i in range(n):
                lost[at + i] = (lost[at + i] + rest) * scale + TINY
        else:
            for i in range(n):
                lost[at + i] = TINY
        tails[c, 0] = tails[c, 2] = 0.0
        if lo[c] > support_lo[c]:
            found = _tail(table, offset[c], lost, at, n, np.int64(-1))
            tails[c, 0], tails[c, 1] = found
        if hi[c] < support_hi[c]:
            found = _tail(table, offset[c], lost, at, n, np.int64(1))
            tails[c, 2], tails[c, 3] = found


@njit(inner=True)
def _total(x, begin, stop):
    """Return the sum of x[begin : stop]."""
    out = 0.0
    for k in range(begin, stop):
        out += x[k]
    return out


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
    if not out < np.inf:
        return 1.0
    return out / (_total(table, 0, table.size) + out)
