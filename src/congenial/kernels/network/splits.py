"""Laws of the counts of a tree whose nodes split by Dirichlet-multinomial laws, given measurements.

A node's count z is split among its children with probability in proportion to the product of
``Gamma(z_c + alpha_c) / (Gamma(alpha_c) z_c!)`` over ``Gamma(z + A) / (Gamma(A) z!)``, where A sums
the children's alpha (Mosimann 1962). A factor ``p^z_c`` of all children cancels with ``p^z`` of
their parent, so p of a family is free: it is chosen such that messages lie where the counts do.
Children of a family with odds o > 0 are empty besides: a count of 0 has 1 + o times the weight
above, and the family's sum the weight ``sum over j of C(k, j) o^(k - j) Gamma(z + j alpha) /
(Gamma(j alpha) z!)``, where j of its k children, alike, are not empty for another reason.

Messages of families are merged child by child and cut off where they have lost `nats`; `downward`
finds how much of each law lies at such ends. Messages of leaves and of merged children are made
anew where they are needed, so that the messages of inner nodes alone are kept. The benchmark row
"posterior" needs them.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from congenial.kernels.network.marginals import VARIANCE, digamma, summarise
from congenial.kernels.numerics.compiling import njit
from congenial.kernels.numerics.convolution import convolve_plainly, correlate
from congenial.kernels.numerics.laws import FLAT, GAUSSIAN

# Nats beyond those of a message over which the weights of a leaf are followed.
_BEYOND = 20.0
# Weights that a product of a message and a node's own weight keeps at least, of its largest.
_LEAST = 1e-280
# Where weights are made smaller.
_LARGE = 1e200
# Share of a law at each of its ends that is not returned.
_LEAST_KEPT = 1e-11
# A law's tail beyond an end, in weights of the last value.
_TAIL = 32.0


class Measured(NamedTuple):
    """Law of each measurement, its inverse scale, its value, and the ends of counts; shapes (n,).

    The ends of inner nodes are no wider than their children's allow, and none is below 0.
    """

    kind: np.ndarray
    inverse: np.ndarray
    y: np.ndarray
    lo: np.ndarray
    hi: np.ndarray


class Splits(NamedTuple):
    """Children, alpha of each node in its parent's split, and of each inner one A, odds and more.

    Children of v are ``children[starts[v]:starts[v + 1]]``, and `bottom_up` lists children before
    parents. `slack` (n,) is how far a parent's count may be from where p puts it.
    """

    starts: np.ndarray
    children: np.ndarray
    bottom_up: np.ndarray
    alpha: np.ndarray
    total: np.ndarray
    odds: np.ndarray
    p: np.ndarray
    slack: np.ndarray


class FamilyMessages(NamedTuple):
    """Messages of inner nodes: first value, size and place in `table`; int64, shapes (n,)."""

    first: np.ndarray
    size: np.ndarray
    offset: np.ndarray
    table: np.ndarray


class Summarised(NamedTuple):
    """Summaries and laws of the nodes, which `downward` fills."""

    # ndarray of bool, shape (n,): Nodes whose laws are returned, without ends of less than 1e-11
    # each.
    kept: np.ndarray
    # ndarray of float64, shape (n, c): The first c columns of `marginals.summarise`; none is made
    # for c = 0.
    found: np.ndarray
    # ndarray of float64, shape (n, 2): Means of the derivatives of the log weights of a node's
    # count under its parent, and of its children's sum, by its own alpha, and by that of one of its
    # children.
    rises: np.ndarray
    # ndarray of int64, shape (n,): First value of each law that is kept, its size, and where it
    # begins.
    first: np.ndarray
    size: np.ndarray
    place: np.ndarray


@njit(inner=True)
def _grown(array, size):
    """Return `array`, or a copy of it with room for `size` entries."""
    if array.size >= size:
        return array
    more = np.empty(max(size, 2 * array.size))
    for i in range(array.size):
        more[i] = array[i]
    return more


@njit(inner=True)
def _room(work, size):
    """Return four lines for work, at least `size` long."""
    return work if work.shape[1] >= size else np.empty((4, 2 * size))


@njit(inner=True)
def _law_step(kind, inverse, y, k):
    """Return the log ratio of the measurement's weight at k + 1 to that at k."""
    if kind == FLAT:
        return 0.0
    if kind == GAUSSIAN:
        return -inverse * (2.0 * (k - y) + 1.0)
    return -inverse if k >= y else inverse


@njit(inner=True)
def _log_law(kind, inverse, y, k):
    """Return the log weight of a measurement, 0 where it equals the count."""
    if kind == FLAT:
        return 0.0
    return -inverse * (k - y) ** 2 if kind == GAUSSIAN else -inverse * abs(k - y)


@njit(inner=True)
def _kept(values, begin, stop, nats, more, lowest, highest):
    """Return the ends, as of slices, of what is kept of a message, and its largest weight.

    `more` entries beyond the cut are kept, and none outside `lowest`..`highest`.
    """
    begin, stop = max(begin, lowest), min(stop, highest)
    top = 0.0
    for i in range(begin, stop):
        top = max(top, values[i])
    low, high, least = begin, stop, top * math.exp(-nats)
    while low < high and values[low] < least:
        low += 1
    while high > low and values[high - 1] < least:
        high -= 1
    return max(begin, low - more), min(stop, high + more), top


@njit(inner=True)
def _log_leaf(v, measured, alpha, p, k):
    """Return the log weight of a leaf's count."""
    log = math.lgamma(k + alpha) - math.lgamma(alpha) - math.lgamma(k + 1.0) + k * math.log(p)
    return log + _log_law(measured.kind[v], measured.inverse[v], measured.y[v], k)


@njit(inner=True)
def _leaf(v, measured, alpha, odds, p, nats, more, out):
    """Write a leaf's message to `out`; return that, its first value, its size and log scale."""
    kind, inverse, y = measured.kind[v], measured.inverse[v], measured.y[v]
    lowest, highest = measured.lo[v], measured.hi[v]
    mean = alpha * p / (1.0 - p)
    middle = mean if kind == FLAT else y
    far = nats + _BEYOND
    if kind == FLAT:
        reach = far / -math.log(p) + mean
    else:
        reach = math.sqrt(far / inverse) if kind == GAUSSIAN else far / inverse
    lo = max(lowest, math.floor(min(middle, mean) - reach))
    hi = max(min(highest, math.ceil(max(middle, mean, lo) + reach)), lo)
    size = np.int64(hi - lo) + 1
    out = _grown(out, size)
    start = np.int64(min(max(math.floor(middle), lo), hi) - lo)
    out[start] = best = 1.0
    smaller = 0.0
    rises, falls, least = math.exp(inverse), math.exp(-inverse), math.exp(-far)
    last = start
    for way in (1, -1):
        i, w, ends = start, out[start], False
        while 0 <= i + way < size:
            k = lo + float(i if way == 1 else i - 1)
            ratio = (alpha + k) / (k + 1.0) * p
            if kind == GAUSSIAN:
                ratio *= math.exp(_law_step(kind, inverse, y, k))
            elif kind != FLAT:
                ratio *= falls if k >= y else rises
            if way == -1:
                ratio = 1.0 / ratio
            w *= ratio
            i += way
            out[i] = w
            best = max(best, w)
            if w > _LARGE:
                # all that is filled so far is made smaller
                for below in range(min(i, start), i + 1 if way == 1 else last + 1):
                    out[below] /= _LARGE
                w, best = w / _LARGE, best / _LARGE
                smaller += math.log(_LARGE)
            if ratio < 1.0 and w < least * best and not ends:
                # below a mode, weights may rise again towards the end: a count of 0 for alpha < 1
                end = _log_leaf(v, measured, alpha, p, lo) + math.log1p(odds)
                end -= _log_leaf(v, measured, alpha, p, lo + float(start)) + smaller
                ends = way == -1 and alpha < 1.0 and end > math.log(best) - far
                if not ends:
                    break
        if way == 1:
            last = i
    begin = i
    if begin == 0 and lo == 0.0:
        out[0] *= 1.0 + odds
    begin, stop, top = _kept(out, begin, last + 1, nats, more, begin, last + 1)
    for at in range(begin, stop):
        out[at - begin] = out[at] / top
    # weights are relative to that where the walk began, without the odds
    log = _log_leaf(v, measured, alpha, p, lo + float(start)) + math.log(top) + smaller
    return out, np.int64(lo) + begin, stop - begin, log


@njit(inner=True)
def _of_sum(v, splits, first, log, slope):
    """Write the log weights of a family's sum from `first` on, and their slopes by one alpha."""
    count = splits.starts[v + 1] - splits.starts[v]
    alpha, odds = splits.total[v] / count, math.log(splits.odds[v])
    term, rise, scale = np.empty(count + 1), np.zeros(count + 1), -np.inf
    k = float(first)
    for j in range(count + 1):
        term[j] = math.lgamma(count + 1.0) - math.lgamma(j + 1.0) - math.lgamma(count - j + 1.0)
        term[j] += (count - j) * odds
        if j > 0:
            a = j * alpha
            term[j] += math.lgamma(k + a) - math.lgamma(a) - math.lgamma(k + 1.0)
            rise[j] = digamma(k + a) - digamma(a) if first > 0 else 0.0
        elif first > 0:
            term[j] = -np.inf
        scale = max(scale, term[j])
    for j in range(count + 1):
        term[j] = math.exp(term[j] - scale)
    for i in range(log.size):
        total = by = 0.0
        for j in range(count + 1):
            total += term[j]
            by += term[j] * rise[j] * j
        log[i], slope[i] = scale + math.log(total), by / (total * count)
        if k == 0.0:
            term[0] = 0.0
        for j in range(1, count + 1):
            term[j] *= (k + j * alpha) / ((k + 1.0) * total)
            rise[j] += 1.0 / (k + j * alpha)
        scale += math.log(total)
        k += 1.0


@njit(inner=True)
def _own(v, measured, splits, u, first, size, out):
    """Write the log of an inner node's own weight to `out`, from `first` on; return `out`.

    `u` is its parent, and -1 for a root.
    """
    alpha, total = splits.alpha[v], splits.total[v]
    out = _grown(out, size)
    k = float(first)
    log = math.lgamma(total) + math.lgamma(k + 1.0) - math.lgamma(k + total)
    slope = -math.log(splits.p[v])
    sums = np.empty(0)
    if splits.odds[v] > 0.0:
        sums = np.empty(size)
        _of_sum(v, splits, first, sums, np.empty(size))
        log = 0.0
    if u >= 0:
        log += math.lgamma(k + alpha) - math.lgamma(alpha) - math.lgamma(k + 1.0)
        slope += math.log(splits.p[u])
    log += k * slope + _log_law(measured.kind[v], measured.inverse[v], measured.y[v], k)
    for i in range(size):
        out[i] = log
        ratio = (alpha + k) / (k + 1.0) if u >= 0 else 1.0
        if sums.size > 0:
            out[i] -= sums[i]
        else:
            ratio *= (k + 1.0) / (total + k)
        log += slope + math.log(ratio)
        log += _law_step(measured.kind[v], measured.inverse[v], measured.y[v], k)
        k += 1.0
    if u >= 0 and first == 0:
        out[0] += math.log1p(splits.odds[u])
    return out


@njit(inner=True)
def _family(v, measured, splits, messages, nats, parts, merged, work, at):
    """Merge a family child by child; what is merged last is the message before its own weight.

    Rows of `at` (k, 8): first value, size and place of each child's message in `parts`, and of what
    is merged up to it in `merged`, and whether that was cut off below and above. Returns the
    arrays, which may have grown, and the log scale.
    """
    begin, stop = splits.starts[v], splits.starts[v + 1]
    used = filled = 0
    log = shared = least = most = 0.0
    buffer = np.empty(64)
    for j in range(begin, stop):
        c, row = splits.children[j], j - begin
        shared += splits.alpha[c]
        least += measured.lo[c]
        most = min(most + measured.hi[c], measured.hi[v])
        if splits.starts[c] == splits.starts[c + 1]:
            more = np.int64(splits.slack[v] * splits.alpha[c] / splits.total[v]) + 2
            alpha, p = splits.alpha[c], splits.p[v]
            odds = splits.odds[v]
            buffer, first, size, lost = _leaf(c, measured, alpha, odds, p, nats, more, buffer)
            log += lost
            parts = _grown(parts, used + size)
            for i in range(size):
                parts[used + i] = buffer[i]
        else:
            first, size = messages.first[c], messages.size[c]
            parts = _grown(parts, used + size)
            for i in range(size):
                parts[used + i] = messages.table[messages.offset[c] + i]
        at[row, 0], at[row, 1], at[row, 2] = first, size, used
        used += size
        if row == 0:
            merged = _grown(merged, size)
            for i in range(size):
                merged[i] = parts[at[0, 2] + i]
            at[0, 3], at[0, 4], at[0, 5] = first, size, 0
            at[0, 6] = at[0, 7] = 0
            filled = size
            continue
        before = at[row - 1]
        whole = before[4] + size - 1
        merged = _grown(merged, filled + whole)
        work = _room(work, 2 * max(before[4], size) + whole + 32)
        convolve_plainly(
            merged, before[5], before[4], parts, at[row, 2], size, 0, merged, filled, whole, work
        )
        low = before[3] + first
        # counts are not negative: no part is more than the whole
        highest = np.int64(max(min(measured.hi[v] - low + 1.0, float(whole)), 0.0))
        more = np.int64(splits.slack[v] * shared / splits.total[v]) + 2
        ends = _kept(merged, filled, filled + whole, nats, more, filled, filled + highest)
        if not ends[1] > ends[0] or not ends[2] > 0.0:
            at[row, 4] = 0
            return parts, merged, work, -np.inf
        for i in range(ends[0], ends[1]):
            merged[filled + i - ends[0]] = merged[i] / ends[2]
        at[row, 3], at[row, 4], at[row, 5] = low + ends[0] - filled, ends[1] - ends[0], filled
        at[row, 6] = at[row, 3] > least
        at[row, 7] = at[row, 3] + at[row, 4] - 1 < most
        log += math.log(ends[2])
        filled += at[row, 4]
    return parts, merged, work, log


@njit(inner=True)
def _most_children(splits):
    most = 1
    for v in range(splits.alpha.size):
        most = max(most, splits.starts[v + 1] - splits.starts[v])
    return most


@njit()
def upward(parents, measured, splits, nats, first, size, offset, logs):
    """Fill the messages of inner nodes; return their table.

    `logs` (n,) comes in as zeros and is filled with the log of what the families of each inner node
    were divided by, and for a root the log of its summed message: the log of all weights is their
    sum. It is -inf where no counts satisfy the bounds.
    """
    messages = FamilyMessages(first, size, offset, np.empty(1024))
    table, used = np.empty(1024), 0
    parts, merged, own = np.empty(64), np.empty(64), np.empty(64)
    work = np.empty((4, 64))
    at = np.empty((_most_children(splits), 8), dtype=np.int64)
    for v in splits.bottom_up:
        count = splits.starts[v + 1] - splits.starts[v]
        if count == 0:
            continue
        messages = FamilyMessages(first, size, offset, table)
        found = _family(v, measured, splits, messages, nats, parts, merged, work, at)
        parts, merged, work, logs[v] = found
        u = parents[v]
        last = at[count - 1]
        low = np.int64(max(measured.lo[v] - last[3], 0.0))
        high = np.int64(min(measured.hi[v] - last[3] + 1.0, float(last[4])))
        if logs[v] == -np.inf or high <= low:
            logs[v] = -np.inf
            return table
        own = _own(v, measured, splits, u, last[3], last[4], own)
        top = -np.inf
        for i in range(low, high):
            x = merged[last[5] + i]
            own[i] = own[i] + math.log(x) if x > _LEAST else -np.inf
            top = max(top, own[i])
        if top == -np.inf:
            logs[v] = -np.inf
            return table
        for i in range(low, high):
            own[i] = math.exp(own[i] - top)
        share = splits.slack[u] * splits.alpha[v] / splits.total[u] if u >= 0 else 0.0
        more = np.int64(share) + 2
        begin, stop, _ = _kept(own, low, high, nats, more, low, high)
        table = _grown(table, used + stop - begin)
        for i in range(begin, stop):
            table[used + i - begin] = own[i]
        first[v], size[v], offset[v] = last[3] + begin, stop - begin, used
        used += stop - begin
        logs[v] += top
        if u < 0:
            total = 0.0
            for i in range(begin, stop):
                total += own[i]
            logs[v] += math.log(total)
    return table


@njit(inner=True)
def _at_ends(values, begin, size, low_free, high_free, total):
    """Return about what a law has beyond the ends of its window, as a share."""
    lost = 0.0
    if low_free:
        lost += _TAIL * values[begin] / total
    if high_free:
        lost += _TAIL * values[begin + size - 1] / total
    return lost


@njit()
def downward(parents, measured, splits, messages, nats, alpha, summarised):
    """Fill the summaries of every node's law; overwrite the messages' table.

    Returns
    -------
    laws : ndarray of float64
    lost : float
        About the summed shares of laws that lie beyond the ends of their windows.
    """
    laws, used, lost = np.empty(1024), 0, 0.0
    parts, merged, own, wide = np.empty(64), np.empty(64), np.empty(64), np.empty(64)
    around, inside, law = np.empty(64), np.empty(64), np.empty(64)
    work = np.empty((4, 64))
    at = np.empty((_most_children(splits), 8), dtype=np.int64)
    table = messages.table
    for pos in range(splits.bottom_up.size - 1, -1, -1):
        v = splits.bottom_up[pos]
        begin, count = splits.starts[v], splits.starts[v + 1] - splits.starts[v]
        if count == 0:
            continue
        first, size, place = messages.first[v], messages.size[v], messages.offset[v]
        around = _grown(around, size)
        if parents[v] < 0:
            own = _grown(own, size)
            for i in range(size):
                own[i] = table[place + i]
            outcome = _record(v, own, size, first, measured, splits, alpha, summarised, laws, used)
            laws, used, gone = outcome
            lost += gone
            own = _own(v, measured, splits, -1, first, size, own)
            top = own[0]
            for i in range(size):
                top = max(top, own[i])
            for i in range(size):
                around[i] = math.exp(max(own[i] - top, -700.0))
        else:
            for i in range(size):
                around[i] = table[place + i]
        made = _family(v, measured, splits, messages, nats, parts, merged, work, at)
        parts, merged, work, _ = made
        lo = first
        for row in range(count - 1, -1, -1):
            c = splits.children[begin + row]
            child = at[row]
            law, own = _grown(law, child[1]), _grown(own, child[1])
            if row == 0:
                for i in range(child[1]):
                    k = child[0] + i - lo
                    law[i] = around[k] if 0 <= k < size else 0.0
            else:
                before = at[row - 1]
                wide = _grown(wide, size + child[1] + before[4] + 64)
                other = merged[before[5] : before[5] + before[4]]
                correlate(around[:size], lo, other, before[3], law[: child[1]], child[0], wide)
                inside = _grown(inside, before[4])
                other = parts[child[2] : child[2] + child[1]]
                correlate(around[:size], lo, other, child[0], inside[: before[4]], before[3], wide)
            total = top = 0.0
            for i in range(child[1]):
                own[i] = law[i] * parts[child[2] + i]
                total += own[i]
                top = max(top, law[i])
            outcome = _record(
                c, own, child[1], child[0], measured, splits, alpha, summarised, laws, used
            )
            laws, used, gone = outcome
            lost += gone
            if splits.starts[c] < splits.starts[c + 1]:
                own = _own(c, measured, splits, v, child[0], child[1], own)
                high = -np.inf
                for i in range(child[1]):
                    own[i] += math.log(max(law[i] / top, 1e-300))
                    high = max(high, own[i])
                for i in range(child[1]):
                    table[messages.offset[c] + i] = math.exp(max(own[i] - high, -700.0))
            if row > 0:
                before = at[row - 1]
                total = top = 0.0
                for i in range(before[4]):
                    total += inside[i] * merged[before[5] + i]
                    top = max(top, inside[i])
                around = _grown(around, before[4])
                lo, size = before[3], before[4]
                for i in range(size):
                    around[i] = inside[i] / top
                low = inside[0] * merged[before[5]] * before[6]
                high = inside[size - 1] * merged[before[5] + size - 1] * before[7]
                lost += _TAIL * (low + high) / total
    return laws, lost


@njit(inner=True)
def _record(v, law, size, first, measured, splits, alpha, summarised, laws, used):
    """Summarise one law; return the laws that are kept, how long they are, and the share lost."""
    found, rises = summarised.found, summarised.rises
    total = 0.0
    for i in range(size):
        total += law[i]
    for which in range(2):
        a = splits.alpha[v] if which == 0 else splits.total[v]
        if which == 1 and splits.odds[v] > 0.0:
            sums, slopes = np.empty(size), np.empty(size)
            _of_sum(v, splits, first, sums, slopes)
            mean = 0.0
            for i in range(size):
                mean += law[i] * slopes[i]
            rises[v, which] = mean / total
            continue
        if a <= 0.0:
            rises[v, which] = 0.0
            continue
        value = digamma(first + a) - digamma(a) if first > 0 else 0.0
        mean = 0.0
        for i in range(size):
            mean += law[i] * value
            value += 1.0 / (first + i + a)
        rises[v, which] = mean / total
    if found.shape[1] > 0:
        row = np.empty(8)
        # counted from the first value: what counts around 0 have is not asked for
        summarise(law[:size], 0, alpha, row)
        for i in range(found.shape[1]):
            found[v, i] = row[i] if i == VARIANCE else row[i] + first
    if summarised.kept[v]:
        low, high, least = 0, size, _LEAST_KEPT * total
        while low < high - 1 and law[low] < least:
            low += 1
        while high > low + 1 and law[high - 1] < least:
            high -= 1
        laws = _grown(laws, used + high - low)
        for i in range(low, high):
            laws[used + i - low] = law[i] / total
        summarised.first[v], summarised.size[v] = first + low, high - low
        summarised.place[v] = used
        used += high - low
    low_free = first > measured.lo[v]
    high_free = first + size - 1 < measured.hi[v]
    return laws, used, _at_ends(law, 0, size, low_free, high_free, total)


@njit()
def in_order(laws, place, size, offset, out):
    """Copy laws that begin at `place` to where they begin at `offset`."""
    for v in range(place.size):
        for i in range(size[v]):
            out[offset[v] + i] = laws[place[v] + i]


@njit()
def draw(parents, measured, splits, messages, nats, words, out):
    """Fill `out` (r, n), r draws of the counts, from `words` (r, w) of 64 bits in the same order.

    Each root takes one word, and each child but the first of its family.
    """
    parts, merged, own = np.empty(64), np.empty(64), np.empty(64)
    work = np.empty((4, 64))
    at = np.empty((_most_children(splits), 8), dtype=np.int64)
    word = 0
    for pos in range(splits.bottom_up.size - 1, -1, -1):
        v = splits.bottom_up[pos]
        begin, count = splits.starts[v], splits.starts[v + 1] - splits.starts[v]
        if count == 0:
            continue
        if parents[v] < 0:
            size, place = messages.size[v], messages.offset[v]
            own = _grown(own, size)
            for r in range(out.shape[0]):
                for i in range(size):
                    own[i] = messages.table[place + i]
                out[r, v] = messages.first[v] + _chosen(own, size, words[r, word])
            word += 1
        made = _family(v, measured, splits, messages, nats, parts, merged, work, at)
        parts, merged, work, _ = made
        for r in range(out.shape[0]):
            left = out[r, v]
            for row in range(count - 1, 0, -1):
                c, child, before = splits.children[begin + row], at[row], at[row - 1]
                own = _grown(own, child[1])
                for i in range(child[1]):
                    k = left - (child[0] + i) - before[3]
                    own[i] = 0.0
                    if 0 <= k < before[4]:
                        own[i] = parts[child[2] + i] * merged[before[5] + k]
                out[r, c] = child[0] + _chosen(own, child[1], words[r, word + row - 1])
                left -= out[r, c]
            out[r, splits.children[begin]] = left
        word += count - 1


@njit(inner=True)
def _chosen(weights, size, word):
    """Return the place that a uniform word falls on, in proportion to the weights."""
    total = 0.0
    for i in range(size):
        total += weights[i]
    left = (float(word >> np.uint64(11)) + 0.5) * 2.0**-53 * total
    last = 0
    for i in range(size):
        if weights[i] > 0.0:
            last = i
            left -= weights[i]
            if left < 0.0:
                break
    return last
