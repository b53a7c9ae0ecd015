"""Messages of the families of a tree whose nodes split by Dirichlet-multinomial laws.

A family is merged in pairs of items: a child, leaves that are alike, or leaves whose counts all lie
above their measurement. Leaves of the last kind have negative binomial weights, and so has their
sum. Sums of leaves that are alike are powers, by repeated squaring. The benchmark
row is `posterior`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from congenial.kernels.network.marginals import digamma
from congenial.kernels.network.workspace import grown
from congenial.kernels.numerics import elementary
from congenial.kernels.numerics.compiling import njit
from congenial.kernels.numerics.convolution import convolve_plainly
from congenial.kernels.numerics.laws import FLAT, GAUSSIAN, log_ratio

# Nats below the truncation of a message to which the weights of a leaf are computed.
_BEYOND = 20.0
# Entries of a message below this are 0, so that their logarithms are finite.
LEAST = 1e-280
# Weights above this are scaled down, so that they do not overflow.
_LARGE = 1e200
# Steps of the search for a family's p, for leaves, whose messages are computed again in each, and
# for inner nodes; and the longest step, in nats.
_STEPS, _MANY_STEPS, _LONGEST = 8, 40, 0.2
# Nats to which leaves of one negative binomial sum are computed: their truncation is not estimated.
WHOLE = 150.0
# Columns of a family's items: first value, size and place of a message, its kind, the items that it
# is merged from, its range of children, and whether it is truncated below and above.
FIRST, SIZE, PLACE, KIND, LEFT, RIGHT, BEGIN, STOP, BELOW, ABOVE = range(10)
# The kind of a leaf that stands for a part of the tree, besides the kinds of `numerics.laws`: the
# log weights of its counts are given.
PART = 3
# Kinds of items: one child, or several that are alike; leaves with one negative binomial sum; two
# items merged; the sum of several leaves that are alike; the sum of all of them.
SINGLE, SHARED, MERGED, POWER, ALIKE = range(5)
# Columns of an item's numbers: summed alpha, ends of the counts, log of its divisor.
ALPHA, _LEAST_SUM, _MOST_SUM, LOG = range(4)


class Measured(NamedTuple):
    """Law of each measurement, its inverse scale, its value, and the ends of counts; shapes (n,).

    The ends of inner nodes are no wider than their children's allow, and none is below 0. Leaves
    that are `one_sided` have no ends but 0, and a weight that is geometric in their counts. A leaf
    of kind PART has the log weights ``logs[place], ...`` of its counts from `lo` to `hi`.
    """

    kind: np.ndarray
    inverse: np.ndarray
    y: np.ndarray
    lo: np.ndarray
    hi: np.ndarray
    one_sided: np.ndarray
    place: np.ndarray
    logs: np.ndarray


class Splits(NamedTuple):
    """The tree, alpha of each node in its parent's split, and A, odds and p of each inner node.

    Children of v are ``children[starts[v]:starts[v + 1]]``, like ones next to each other, and
    `bottom_up` lists children before parents. `slack` (n,) is the largest distance of a node's
    count from the count that p was chosen for.
    """

    starts: np.ndarray
    children: np.ndarray
    bottom_up: np.ndarray
    alpha: np.ndarray
    total: np.ndarray
    odds: np.ndarray
    p: np.ndarray
    slack: np.ndarray
    # float64, shape (n,): The count to which p is moved, for families of inner nodes and families
    # whose leaves' measurements add up to another count; -1 for all others.
    center: np.ndarray


class FamilyMessages(NamedTuple):
    """Messages of inner nodes: first value, size and place in `table`; int64, shapes (n,)."""

    first: np.ndarray
    size: np.ndarray
    offset: np.ndarray
    table: np.ndarray


@njit(inner=True)
def room(work, size):
    """Return work lines for `convolution`, at least `size` long."""
    return work if work.shape[1] >= size else np.empty((4, 2 * size))


@njit(inner=True)
def _log_law(kind, inverse, y, k):
    """Return the log weight of a measurement, 0 where it equals the count."""
    if kind == FLAT:
        return 0.0
    return -inverse * (k - y) ** 2 if kind == GAUSSIAN else -inverse * abs(k - y)


@njit(inner=True)
def cut_off(values, begin, stop, nats, more, lowest, highest):
    """Return (begin, stop) of a message truncated at `nats`, and its largest weight.

    `more` entries beyond the truncation are kept, but none outside `lowest`..`highest`.
    """
    begin, stop = max(begin, lowest), min(stop, highest)
    top = 0.0
    for i in range(begin, stop):
        top = max(top, values[i])
    low, high, least = begin, stop, top * elementary.exp(-nats)
    while low < high and values[low] < least:
        low += 1
    while high > low and values[high - 1] < least:
        high -= 1
    return max(begin, low - more), min(stop, high + more), top


@njit(inner=True)
def _log_leaf(kind, inverse, y, alpha, p, k):
    """Return the log weight of a leaf's count."""
    log = (
        elementary.log_gamma(k + alpha)
        - elementary.log_gamma(alpha)
        - elementary.log_gamma(k + 1.0)
        + k * elementary.log(p)
    )
    return log + _log_law(kind, inverse, y, k)


@njit(inner=True)
def leaf_message(kind, inverse, y, lowest, highest, alpha, odds, p, nats, more, out):
    """Write a leaf's message to `out`; return it, its first value, its size and log scale."""
    mean = alpha * p / (1.0 - p)
    middle = mean if kind == FLAT else y
    far = nats + _BEYOND
    if kind == FLAT:
        reach = far / -elementary.log(p) + mean
    else:
        reach = math.sqrt(far / inverse) if kind == GAUSSIAN else far / inverse
    lo = max(lowest, math.floor(min(middle, mean) - reach))
    hi = max(min(highest, math.ceil(max(middle, mean, lo) + reach)), lo)
    size = np.int64(hi - lo) + 1
    out = grown(out, size)
    start = np.int64(min(max(math.floor(middle), lo), hi) - lo)
    out[start] = best = 1.0
    smaller = 0.0
    rises, falls, least = elementary.exp(inverse), elementary.exp(-inverse), elementary.exp(-far)
    last = start
    for way in (1, -1):
        i, w, ends, left = start, out[start], False, more if way == -1 else 0
        while 0 <= i + way < size:
            k = lo + float(i if way == 1 else i - 1)
            ratio = (alpha + k) / (k + 1.0) * p
            if kind == GAUSSIAN:
                ratio *= elementary.exp(log_ratio(kind, inverse, y, k))
            elif kind != FLAT:
                ratio *= falls if k >= y else rises
            if way == -1:
                ratio = 1.0 / ratio
            w *= ratio
            i += way
            out[i] = w
            best = max(best, w)
            if w > _LARGE:
                # scale down all entries filled so far
                for below in range(min(i, start), i + 1 if way == 1 else last + 1):
                    out[below] /= _LARGE
                w, best = w / _LARGE, best / _LARGE
                smaller += elementary.log(_LARGE)
            if ratio < 1.0 and w < least * best and not ends:
                # below a mode, weights may rise again towards the end: a count of 0 for alpha < 1
                end = _log_leaf(kind, inverse, y, alpha, p, lo) + elementary.log1p(odds)
                end -= _log_leaf(kind, inverse, y, alpha, p, lo + float(start)) + smaller
                ends = way == -1 and alpha < 1.0 and end > elementary.log(best) - far
                if not ends:
                    # `more` values are kept below the cut, so the walk goes on over them
                    left -= 1
                    if left < 0:
                        break
        if way == 1:
            last = i
    begin = i
    if begin == 0 and lo == 0.0:
        out[0] *= 1.0 + odds
    begin, stop, top = cut_off(out, begin, last + 1, nats, more, begin, last + 1)
    for at in range(begin, stop):
        out[at - begin] = out[at] / top
    # weights are relative to the one at `start`, without the odds
    log = _log_leaf(kind, inverse, y, alpha, p, lo + float(start)) + elementary.log(top) + smaller
    return out, np.int64(lo) + begin, stop - begin, log


@njit(inner=True)
def _part_message(c, measured, alpha, odds, p, nats, more, out):
    """Write the message of a leaf of kind PART, see `leaf_message`."""
    lo, place, top = measured.lo[c], measured.place[c], -np.inf
    size = np.int64(measured.hi[c] - lo) + 1
    out = grown(out, size)
    k = lo
    log = (
        elementary.log_gamma(k + alpha)
        - elementary.log_gamma(alpha)
        - elementary.log_gamma(k + 1.0)
        + k * elementary.log(p)
    )
    for i in range(size):
        out[i] = log + measured.logs[place + i]
        if k == 0.0:
            out[i] += elementary.log1p(odds)
        top = max(top, out[i])
        log += elementary.log((alpha + k) / (k + 1.0) * p)
        k += 1.0
    for i in range(size):
        out[i] = elementary.exp(out[i] - top)
    begin, stop, _ = cut_off(out, 0, size, nats, more, 0, size)
    for at in range(begin, stop):
        out[at - begin] = out[at]
    return out, np.int64(lo) + begin, stop - begin, top


@njit(inner=True)
def weights_of_sum(v, splits, first, log, slope):
    """Write the log weights of a family's sum from `first` on, and their slopes by one alpha."""
    count = splits.starts[v + 1] - splits.starts[v]
    alpha, odds = splits.total[v] / count, elementary.log(splits.odds[v])
    term, rise, scale = np.empty(count + 1), np.zeros(count + 1), -np.inf
    k = float(first)
    for j in range(count + 1):
        term[j] = (
            elementary.log_gamma(count + 1.0)
            - elementary.log_gamma(j + 1.0)
            - elementary.log_gamma(count - j + 1.0)
        )
        term[j] += (count - j) * odds
        if j > 0:
            a = j * alpha
            term[j] += (
                elementary.log_gamma(k + a)
                - elementary.log_gamma(a)
                - elementary.log_gamma(k + 1.0)
            )
            rise[j] = digamma(k + a) - digamma(a) if first > 0 else 0.0
        elif first > 0:
            term[j] = -np.inf
        scale = max(scale, term[j])
    for j in range(count + 1):
        term[j] = elementary.exp(term[j] - scale)
    for i in range(log.size):
        total = by = 0.0
        for j in range(count + 1):
            total += term[j]
            by += term[j] * rise[j] * j
        log[i], slope[i] = scale + elementary.log(total), by / (total * count)
        if k == 0.0:
            term[0] = 0.0
        for j in range(1, count + 1):
            term[j] *= (k + j * alpha) / ((k + 1.0) * total)
            rise[j] += 1.0 / (k + j * alpha)
        scale += elementary.log(total)
        k += 1.0


@njit(inner=True)
def own_weights(v, measured, splits, u, first, size, out):
    """Write the log of an inner node's own weight to `out`, from `first` on; return `out`.

    `u` is its parent, and -1 for a root.
    """
    alpha, total = splits.alpha[v], splits.total[v]
    out = grown(out, size)
    k = float(first)
    log = (
        elementary.log_gamma(total)
        + elementary.log_gamma(k + 1.0)
        - elementary.log_gamma(k + total)
    )
    slope = -elementary.log(splits.p[v])
    sums = np.empty(0)
    if splits.odds[v] > 0.0:
        sums = np.empty(size)
        weights_of_sum(v, splits, first, sums, np.empty(size))
        log = 0.0
    if u >= 0:
        log += (
            elementary.log_gamma(k + alpha)
            - elementary.log_gamma(alpha)
            - elementary.log_gamma(k + 1.0)
        )
        slope += elementary.log(splits.p[u])
    log += k * slope + _log_law(measured.kind[v], measured.inverse[v], measured.y[v], k)
    for i in range(size):
        out[i] = log
        ratio = (alpha + k) / (k + 1.0) if u >= 0 else 1.0
        if sums.size > 0:
            out[i] -= sums[i]
        else:
            ratio *= (k + 1.0) / (total + k)
        log += slope + elementary.log(ratio)
        log += log_ratio(measured.kind[v], measured.inverse[v], measured.y[v], k)
        k += 1.0
    if u >= 0 and first == 0:
        out[0] += elementary.log1p(splits.odds[u])
    return out


@njit(inner=True)
def _merge(v, n, measured, splits, nats, items, real, parts, used, work):
    """Fill item n, the sum of two others; return `parts`, its end, -1 if n is empty, and `work`."""
    left, right = items[n, LEFT], items[n, RIGHT]
    at, na = items[left, PLACE], items[left, SIZE]
    other, nb = items[right, PLACE], items[right, SIZE]
    low, whole = items[left, FIRST] + items[right, FIRST], na + nb - 1
    for column in (ALPHA, _LEAST_SUM, _MOST_SUM, LOG):
        real[n, column] = real[left, column] + real[right, column]
    real[n, _MOST_SUM] = min(real[n, _MOST_SUM], measured.hi[v])
    more = np.int64(splits.slack[v] * real[n, ALPHA] / splits.total[v]) + 2
    # counts are not negative: no part is more than the whole
    size = np.int64(max(min(measured.hi[v] - low + 1.0, float(whole)), 0.0))
    work = room(work, size + min(na, nb) + 16)
    parts = grown(parts, used + size)
    convolve_plainly(parts, at, na, parts, other, nb, 0, parts, used, size, work)
    kept, end, top = cut_off(parts, used, used + size, nats, more, used, used + size)
    if not end > kept or not top > 0.0:
        return parts, -1, work
    for i in range(kept, end):
        parts[used + i - kept] = parts[i] / top
    first, size = low + kept - used, end - kept
    items[n, FIRST], items[n, SIZE], items[n, PLACE] = first, size, used
    items[n, BELOW] = first > real[n, _LEAST_SUM]
    items[n, ABOVE] = first + size - 1 < real[n, _MOST_SUM]
    real[n, LOG] += elementary.log(top)
    return parts, used + size, work


@njit(inner=True)
def _joined(c, d, splits, measured, shared):
    """Whether leaf d, the next child, belongs to the item of leaf c."""
    kind, inverse, y, lo, hi, one_sided, _, _ = measured
    if kind[c] == PART:
        return False
    if splits.starts[d] < splits.starts[d + 1] or kind[d] != kind[c] or inverse[d] != inverse[c]:
        return False
    if one_sided[d] != one_sided[c]:
        return False
    same = lo[d] == lo[c] and hi[d] == hi[c] and y[d] == y[c]
    return shared or (same and splits.alpha[d] == splits.alpha[c])


@njit(inner=True)
def _bases(v, measured, splits, messages, nats, grouped, items, real, parts):
    """Fill the items of a family before merging; return `parts`, its end, and their number."""
    stop, j, p, odds = splits.starts[v + 1], splits.starts[v], splits.p[v], splits.odds[v]
    used = n = 0
    buffer = np.empty(64)
    while j < stop:
        c, end = splits.children[j], j + 1
        alpha, log, kind = splits.alpha[c], 0.0, SINGLE
        if splits.starts[c] < splits.starts[c + 1]:
            first, size = messages.first[c], messages.size[c]
            parts = grown(parts, used + size)
            for i in range(size):
                parts[used + i] = messages.table[messages.offset[c] + i]
        else:
            law, inverse, y, q = measured.kind[c], measured.inverse[c], measured.y[c], p
            if grouped and odds == 0.0 and measured.one_sided[c]:
                kind, log = SHARED, _log_law(law, inverse, y, 0.0)
            while grouped and end < stop:
                d = splits.children[end]
                if not _joined(c, d, splits, measured, kind == SHARED):
                    break
                if kind == SHARED:
                    alpha += splits.alpha[d]
                    log += _log_law(law, inverse, measured.y[d], 0.0)
                end += 1
            if kind == SHARED:
                q, law = rate_of(c, measured, p), FLAT
            more = np.int64(splits.slack[v] * alpha / splits.total[v]) + 2
            ends = measured.lo[c], measured.hi[c]
            if law == PART:
                made = _part_message(c, measured, alpha, odds, q, nats, more, buffer)
            else:
                made = leaf_message(law, inverse, y, *ends, alpha, odds, q, nats, more, buffer)
            buffer, first, size, lost = made
            log += lost
            parts = grown(parts, used + size)
            for i in range(size):
                parts[used + i] = buffer[i]
        items[n, FIRST], items[n, SIZE], items[n, PLACE] = first, size, used
        items[n, KIND], items[n, BEGIN], items[n, STOP] = kind, j, end
        items[n, BELOW] = first > measured.lo[c]
        items[n, ABOVE] = first + size - 1 < measured.hi[c]
        real[n, _LEAST_SUM], real[n, _MOST_SUM] = measured.lo[c], measured.hi[c]
        real[n, ALPHA], real[n, LOG] = alpha, log
        used += size
        j = end
        n += 1
    return parts, used, n


@njit(inner=True)
def rate_of(c, measured, p):
    """Return p times the ratio of a one-sided leaf's weights of a count and the count below it."""
    return p if measured.kind[c] == FLAT else p * elementary.exp(-measured.inverse[c])


@njit(inner=True)
def _pairs(bases, grouped, items):
    """Plan the merges of a family's items; return the number of all items."""
    n = bases
    queue = np.empty(2 * bases, dtype=np.int64)
    for i in range(bases):
        queue[i] = i
        alike = items[i, STOP] - items[i, BEGIN]
        if items[i, KIND] == SHARED or alike == 1:
            continue
        # the power alike - 1, by squares and products
        power, bit = i, 1
        while 2 * bit <= alike - 1:
            bit *= 2
        while bit > 1:
            bit //= 2
            items[n, LEFT], items[n, RIGHT], items[n, KIND] = power, power, POWER
            power = n
            n += 1
            if (alike - 1) & bit:
                items[n, LEFT], items[n, RIGHT], items[n, KIND] = power, i, POWER
                power = n
                n += 1
        items[n, LEFT], items[n, RIGHT], items[n, KIND] = i, power, ALIKE
        queue[i] = n
        n += 1
    for i in range(bases - 1):
        left, right = 2 * i, 2 * i + 1
        if not grouped:
            left, right = bases + i - 1 if i > 0 else 0, i + 1
        items[n, LEFT], items[n, RIGHT], items[n, KIND] = queue[left], queue[right], MERGED
        queue[bases + i] = n
        n += 1
    return n


@njit(inner=True)
def _moments(weights, at, size, tilt):
    """Return mean and variance of i under the weights weights[at + i] exp(tilt i)."""
    total = mean = square = 0.0
    for i in range(size):
        w = weights[at + i]
        if tilt != 0.0:
            w *= elementary.exp(tilt * i)
        total += w
        mean += w * i
        square += w * i * i
    mean /= total
    return mean, max(square / total - mean * mean, 0.0)


@njit(inner=True)
def place_family(v, measured, splits, messages, nats, items, real, parts):
    """Move p of a family of leaves until its messages add up to about `center`; return `parts`."""
    low, high = 0.0, 1.0
    for _ in range(_STEPS):
        parts, _, bases = _bases(v, measured, splits, messages, nats, True, items, real, parts)
        sums = variance = 0.0
        for n in range(bases):
            alike = 1 if items[n, KIND] == SHARED else items[n, STOP] - items[n, BEGIN]
            mean, spread = _moments(parts, items[n, PLACE], items[n, SIZE], 0.0)
            sums += alike * (items[n, FIRST] + mean)
            variance += alike * spread
        gap = splits.center[v] - sums
        # within a quarter of the nats of a message
        if gap * gap <= 0.5 * nats * variance:
            break
        # the sum rises with p; unmeasured leaves have a law only for p below 1
        if gap < 0.0:
            high = splits.p[v]
        else:
            low = splits.p[v]
        to = splits.p[v] * elementary.exp(max(min(gap / variance, _LONGEST), -_LONGEST))
        splits.p[v] = to if low < to < high else 0.5 * (low + high)
    return parts


@njit(inner=True)
def tilt_family(v, splits, messages, nats):
    """Move p of a family of inner nodes until its messages add up to about `center`.

    The messages contain powers of p and change with it. Returns the log of their divisor.
    """
    begin, stop, tilt, table = splits.starts[v], splits.starts[v + 1], 0.0, messages.table
    low, high = -np.inf, np.inf
    for _ in range(_MANY_STEPS):
        sums = variance = 0.0
        for j in range(begin, stop):
            c = splits.children[j]
            mean, spread = _moments(table, messages.offset[c], messages.size[c], tilt)
            sums += messages.first[c] + mean
            variance += spread
        gap = splits.center[v] - sums
        # within a quarter of the nats of a message
        if gap * gap <= 0.5 * nats * variance or variance == 0.0:
            break
        # the sum rises with the tilt, in steps where measurements have Laplace noise
        if gap < 0.0:
            high = tilt
        else:
            low = tilt
        to = tilt + max(min(gap / variance, _LONGEST), -_LONGEST)
        tilt = to if low < to < high else 0.5 * (low + high)
    if tilt == 0.0:
        return 0.0
    log = 0.0
    for j in range(begin, stop):
        c = splits.children[j]
        top = -np.inf
        for i in range(messages.size[c]):
            w = table[messages.offset[c] + i]
            top = max(top, elementary.log(w) + tilt * i if w > 0.0 else -np.inf)
        for i in range(messages.size[c]):
            table[messages.offset[c] + i] *= elementary.exp(tilt * i - top)
        log += top + tilt * messages.first[c]
    splits.p[v] *= elementary.exp(tilt)
    return log


@njit(inner=True)
def merge_family(v, measured, splits, messages, nats, grouped, items, real, parts, work):
    """Merge a family; its last item is the message before the family's own weight.

    Items are merged in pairs if `grouped`, else child by child. Returns `parts` and `work`, which
    may have grown, and the number of items, 0 if a message is empty.
    """
    made = _bases(v, measured, splits, messages, nats, grouped, items, real, parts)
    parts, used, bases = made
    count = _pairs(bases, grouped, items)
    for n in range(bases, count):
        merged = _merge(v, n, measured, splits, nats, items, real, parts, used, work)
        parts, used, work = merged
        if used < 0:
            return parts, work, 0
    return parts, work, count


@njit(inner=True)
def room_of_items(splits):
    """Return arrays for the items of the largest family, and for their numbers."""
    most = 1
    for v in range(splits.alpha.size):
        most = max(most, splits.starts[v + 1] - splits.starts[v])
    return np.empty((2 * most, 10), dtype=np.int64), np.empty((2 * most, 4))
