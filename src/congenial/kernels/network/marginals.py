"""Summaries of the marginal law of every node of a tree, from one pass down its messages."""

from __future__ import annotations

import numpy as np

from congenial.kernels.network.descend import LINK, ROOT
from congenial.kernels.network.lacking import extent, lacking
from congenial.kernels.network.messages import largest
from congenial.kernels.network.workspace import grown
from congenial.kernels.numerics import elementary
from congenial.kernels.numerics.compiling import njit
from congenial.kernels.numerics.convolution import correlate

# Columns of the summaries.
MEAN, VARIANCE, MEDIAN, LOW, HIGH, REACH, RISE, EMPTY, EDGE, LOST = range(10)
SUMMARIES = 10
# Probability of a sum that may be ignored at either end when its parts are summarised.
CUT = 1e-12
# Largest probability that rounding may move.
_SLACK = 1e-12
# Difference below which two probabilities count as equal, so that rounding and the order of sums do
# not change which of two equally likely intervals is found.
TIE = 1e-9


@njit(inner=True)
def _size_of(width):
    size = 0
    while (1 << size) < width:
        size += 1
    return size


@njit(inner=True, reordered=True)
def _joint(outside, own):
    total = 0.0
    for k in range(own.size):
        total += outside[k] * own[k]
    return total


@njit(inner=True, reordered=True)
def _squares(p, mean):
    """Return the sum of the weights times squared distances from `mean`."""
    total = 0.0
    for i in range(p.size):
        total += p[i] * (i - mean) * (i - mean)
    return total


@njit(inner=True)
def held(outside, own, cut):
    """Return the slice of a law that contains all but a share of 2 `cut`.

    A `cut` of 0 gives the whole range: another law with the same `outside` may be positive where
    this law is 0.
    """
    if cut == 0.0:
        return 0, own.size
    most, begin, stop = cut * _joint(outside, own), 0, own.size
    below = above = 0.0
    while begin < stop - 1 and below + outside[begin] * own[begin] <= most:
        below += outside[begin] * own[begin]
        begin += 1
    while stop - 1 > begin and above + outside[stop - 1] * own[stop - 1] <= most:
        above += outside[stop - 1] * own[stop - 1]
        stop -= 1
    return begin, stop


@njit(inner=True)
def _farthest(own, hi, cut):
    """Return the least m such that -m .. m has all but a share `cut` of an even table."""
    total, beyond = 0.0, 0.0
    for k in range(own.size):
        total += own[k]
    m = hi
    while m > 0 and beyond + 2.0 * own[hi + m] <= cut * total:
        beyond += 2.0 * own[hi + m]
        m -= 1
    return m


@njit()
def is_even(windows, table, apart):
    """Whether each table is the same read from its other end, up to a share `apart` of entries."""
    lo, hi, offset = windows
    for c in range(lo.size):
        if lo[c] > hi[c]:
            continue
        if lo[c] != -hi[c]:
            return False
        middle = offset[c] + hi[c]
        for k in range(1, hi[c] + 1):
            one, other = table[middle - k], table[middle + k]
            if not abs(one - other) <= apart * max(one, other):
                return False
    return True


@njit(inner=True)
def digamma(x):
    """Derivative of log Gamma at x > 0 (DLMF 5.5.2 up to 10, then 5.11.2)."""
    below = 0.0
    while x < 10.0:
        below += 1.0 / x
        x += 1.0
    s = 1.0 / (x * x)
    tail = s * (1 / 12 - s * (1 / 120 - s * (1 / 252 - s * (1 / 240 - s * (1 / 132)))))
    return elementary.log(x) - 0.5 / x - tail - below


@njit()
def rise(p, lo, dispersion):
    """Return the mean of digamma(k + dispersion) - digamma(dispersion) under weights p at k >= 0.

    Weights begin at k = `lo`; those below 0 must be 0.
    """
    at = digamma(lo + dispersion) - digamma(dispersion) if lo > 0.0 else 0.0
    total = found = 0.0
    for i in range(p.size):
        if lo + i > 0.0 and i > 0:
            at += 1.0 / (lo + i - 1.0 + dispersion)
        total += p[i]
        found += p[i] * at
    return found / total


@njit()
def summarise(p, lo, alpha, out):
    """Fill `out` with the mean, variance, median, shortest interval and reach of weights `p`.

    The interval has probability at least 1 - alpha, up to `TIE`. Among the shortest intervals, it
    is the most likely; among those equally likely up to `TIE`, the lowest. -reach .. reach has at
    least 1 - alpha + `TIE`. The median has half of the law below it, up to `TIE`. Returns the sum
    of the weights.
    """
    total = first = 0.0
    for i in range(p.size):
        total += p[i]
        first += p[i] * i
    mean = first / total
    out[MEAN], out[VARIANCE] = lo + mean, _squares(p, mean) / total
    need = (1.0 - alpha) * total
    enough, half = need - TIE * total, (0.5 - TIE) * total
    # each interval ends as soon as it has the probability
    below = inside = 0.0
    begin, median = 0, -1
    shortest, most, low, high = p.size + 1, 0.0, 0, p.size - 1
    for i in range(p.size):
        below += p[i]
        inside += p[i]
        if median < 0 and below >= half:
            median = i
        if not inside >= enough:
            continue
        while inside - p[begin] >= enough and begin < i:
            inside -= p[begin]
            begin += 1
        length = i - begin + 1
        if length < shortest or (length == shortest and inside > most + TIE * total):
            shortest, most, low, high = length, inside, begin, i
        # the remaining mass is too little for a later interval as short as this
        if median >= 0 and inside - p[begin] + (total - below) < enough - _SLACK * total:
            break
    out[MEDIAN] = lo + max(median, 0)
    out[LOW], out[HIGH] = lo + low, lo + high
    zero = np.int64(-lo)
    inside, reach = 0.0, max(abs(zero), abs(p.size - 1 - zero))
    nearest = max(-zero, zero - p.size + 1, 0)
    for r in range(nearest, reach + 1):
        if 0 <= zero + r < p.size:
            inside += p[zero + r]
        if r > 0 and 0 <= zero - r < p.size:
            inside += p[zero - r]
        if inside >= need + TIE * total:
            reach = r
            break
    out[REACH] = reach
    return total


@njit()
def one_sided(p, total, lo, tails, below, above):
    """Fill the one-sided bounds of weights `p` with sum `total`, for each of ``tails`` (t,).

    The probability below `below`, and above `above`, is at most the tail. A value with exactly the
    tail's probability beyond it is passed over.
    """
    for t in range(tails.size):
        tail = (tails[t] - TIE) * total
        low, high, under, over = 0, p.size - 1, 0.0, 0.0
        while low < high and under + p[low] <= tail:
            under += p[low]
            low += 1
        while high > 0 and over + p[high] <= tail:
            over += p[high]
            high -= 1
        below[t], above[t] = lo + low, lo + high


@njit()
def marginals(program, left, windows, table, shown, lost, nodes, alpha, cut, even, tails, found):
    """Fill `out` (n, 10) with the summaries of each node's marginal law.

    ``below`` and ``above`` (n, t), int64, are filled with its one-sided bounds for ``tails`` (t,),
    see `one_sided`.

    A marginal law is the message from above times the table of `shown`, which has the layout of
    `table` and is `table` itself in most calls. A share `cut` of a sum's law, that of `table`, may
    be ignored; it must be 0 if `shown` is another table.

    `even` says that all tables are even, and decreasing on both sides of 0. So are then messages
    from above, because products and convolutions of such functions are such functions (Wintner
    1938). A law therefore has at most the share of its table beyond any m. Messages are worked out
    for values from 0 to the m beyond which that share is `cut`, and mirrored.

    A node's count is its value plus ``base`` (n,). Nodes of positive ``dispersion`` (n,) get the
    `rise` of their count, and all nodes get the probability that their count is 0.

    Entries of both tables of class c are too small by at most ``lost[c]`` (c,). If `cut` is 0, LOST
    is an upper bound of each law's share of these errors and of those of subnormal numbers.

    EDGE is the larger of the shares of the first and the last value.

    A slot whose ``twin`` (slots,) is another slot has that slot's summaries, see `kernels.twins`.

    Programs are those of trees: ROOT, LINK (the sum below a node equals it) and SPLIT. ``ends`` is
    bool (slots,): nodes with nothing below them.
    """
    op, first, second, third, _ = program
    lo, hi, offset = windows
    slot_class, twin, ends, dispersion, base = nodes
    out, below, above = found
    n = out.shape[0]
    slots = slot_class.size
    # messages from above: slices of 2^k entries, and stacks of free slices, one for each k, linked
    # through the slots that used them
    buffer, used = np.empty(64), 0
    place, under = np.empty(slots, dtype=np.int64), np.empty(slots, dtype=np.int64)
    top = np.full(64, -1)
    missed, tracked = np.zeros(slots), cut == 0.0
    # sums and least entries of the tables, of the `shown` tables, and of messages from above
    own_of, shown_of = np.ones((lo.size, 2)), np.ones((lo.size, 2))
    outer = np.ones((slots, 2))
    most = 0
    far = np.zeros(lo.size if even else 0, dtype=np.int64)
    for c in range(lo.size):
        most = max(most, hi[c] - lo[c] + 1)
        if even and lo[c] <= hi[c]:
            far[c] = _farthest(table[offset[c] : offset[c] + hi[c] - lo[c] + 1], hi[c], cut)
        if tracked and lo[c] <= hi[c]:
            begin, stop = offset[c], offset[c] + hi[c] - lo[c] + 1
            own_of[c, 0], own_of[c, 1] = extent(table[begin:stop])
            shown_of[c, 0], shown_of[c, 1] = extent(shown[begin:stop])
    law, work = np.empty(most), np.empty((4, 2 * most + 16))
    for i in range(op.size):
        split = op[i] != ROOT and op[i] != LINK
        source = np.int64(-1) if op[i] == ROOT else np.int64(first[i] if split else second[i])
        begins = stops = 0
        if source >= 0 and twin[source] != source:
            continue
        if split:
            d = slot_class[source]
            around = buffer[place[source] : place[source] + hi[d] - lo[d] + 1]
            own = offset[d]
            begins, stops = held(around, table[own : own + around.size], cut)
        for side in range(2 if split else 1):
            child = first[i]
            other = child
            if split:
                child, other = (second[i], third[i]) if side == 0 else (third[i], second[i])
            if twin[child] != child:
                continue  # its twin stands for both
            c = slot_class[child]
            width = hi[c] - lo[c] + 1
            size = _size_of(width)
            free = top[size]
            if free >= 0:
                top[size], begin = under[free], place[free]
            else:
                begin, used = used, used + (1 << size)
                buffer = grown(buffer, used)
            place[child] = begin
            outside = buffer[begin : begin + width]
            short = 0.0
            if source < 0:
                for k in range(width):
                    outside[k] = 1.0
            else:
                d = slot_class[source]
                around = buffer[place[source] : place[source] + hi[d] - lo[d] + 1]
                if op[i] == LINK:
                    own = left[d]
                    weight = table[offset[own] : offset[own] + hi[own] - lo[own] + 1]
                    if tracked:
                        terms = min(around.size, weight.size)
                        of = outer[source, 0], outer[source, 1], missed[source]
                        short = lacking(*of, own_of[own, 0], own_of[own, 1], lost[own], terms)
                    for k in range(width):
                        u = lo[c] + k
                        outside[k] = 0.0
                        if lo[d] <= u <= hi[d]:
                            outside[k] = around[u - lo[d]] * table[offset[own] + u - lo[own]]
                elif even:
                    o = slot_class[other]
                    middle, most_other, most_child = offset[o] + hi[o], far[o], far[c]
                    rest = table[middle - most_other : middle + most_other + 1]
                    kept = around[begins:stops]
                    half = outside[hi[c] : hi[c] + most_child + 1]
                    correlate(kept, lo[d] + begins, rest, -most_other, half, 0, work)
                    for k in range(hi[c] + 1):
                        if k > most_child:
                            outside[hi[c] + k] = 0.0
                        outside[hi[c] - k] = outside[hi[c] + k]
                else:
                    o = slot_class[other]
                    rest = table[offset[o] : offset[o] + hi[o] - lo[o] + 1]
                    kept = around[begins:stops]
                    if tracked:
                        terms = min(kept.size, rest.size)
                        of = outer[source, 0], outer[source, 1], missed[source]
                        short = lacking(*of, own_of[o, 0], own_of[o, 1], lost[o], terms)
                    correlate(kept, lo[d] + begins, rest, lo[o], outside, lo[c], work)
                peak = largest(outside)
                missed[child] = short / max(peak, 1e-300)
                if peak > 0.0:
                    scale = 1.0 / max(peak, 1e-300)
                    for k in range(width):
                        outside[k] *= scale
            if tracked:
                outer[child, 0], outer[child, 1] = extent(outside)
            if child < n:
                for k in range(width):
                    law[k] = outside[k] * shown[offset[c] + k]
                total = summarise(law[:width], float(lo[c]), alpha, out[child])
                one_sided(law[:width], total, lo[c], tails, below[child], above[child])
                out[child, EDGE] = max(law[0], law[width - 1]) / total
                out[child, LOST] = 0.0
                if tracked:
                    of = outer[child, 0], outer[child, 1], missed[child]
                    short = lacking(*of, shown_of[c, 0], shown_of[c, 1], lost[c], width)
                    out[child, LOST] = short / total if total > 0.0 else np.inf
                r = dispersion[child]
                out[child, RISE] = rise(law[:width], lo[c] + base[child], r) if r > 0.0 else 0.0
                empty = -base[child] - lo[c]
                out[child, EMPTY] = law[empty] / total if 0 <= empty < width else 0.0
                if ends[child]:
                    under[child], top[size] = top[size], child
        if source >= 0:
            size = _size_of(hi[slot_class[source]] - lo[slot_class[source]] + 1)
            under[source], top[size] = top[size], source
    for v in range(n):
        if twin[v] != v:
            out[v], below[v], above[v] = out[twin[v]], below[twin[v]], above[twin[v]]
