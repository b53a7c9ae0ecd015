"""Laws of the counts of a tree whose nodes split by Dirichlet-multinomial laws, given measurements.

A node's count z is split among its children with probability in proportion to the product of
``Gamma(z_c + alpha_c) / (Gamma(alpha_c) z_c!)`` over ``Gamma(z + A) / (Gamma(A) z!)``, where A sums
the children's alpha (Mosimann 1962). A factor ``p^z_c`` of all children cancels with ``p^z`` of
their parent, so p of a family is free: it is chosen such that messages lie where the counts do.
Children of a family with odds o > 0 are empty besides: a count of 0 has 1 + o times the weight
above, and the family's sum the weight ``sum over j of C(k, j) o^(k - j) Gamma(z + j alpha) /
(Gamma(j alpha) z!)``, where j of its k children, alike, are not empty for another reason.

Messages of a family are merged in pairs and truncated `nats` below their largest weight;
`downward` estimates the probability beyond the truncations. Only messages of inner nodes are kept;
those of leaves and of merged children are computed again. The benchmark row is `posterior`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from congenial.kernels.network.marginals import held, rise
from congenial.kernels.network.split_families import (
    ABOVE,
    ALPHA,
    BEGIN,
    BELOW,
    FIRST,
    KIND,
    LEAST,
    LEFT,
    LOG,
    MERGED,
    PLACE,
    POWER,
    RIGHT,
    SHARED,
    SINGLE,
    SIZE,
    STOP,
    WHOLE,
    FamilyMessages,
    cut_off,
    leaf_message,
    merge_family,
    own_weights,
    place_family,
    rate_of,
    room,
    room_of_items,
    tilt_family,
    weights_of_sum,
)
from congenial.kernels.network.workspace import grown
from congenial.kernels.numerics import elementary
from congenial.kernels.numerics.compiling import njit
from congenial.kernels.numerics.convolution import correlate
from congenial.kernels.numerics.laws import FLAT

# Values at the ends of a law that are less likely than this are not returned.
_LEAST_KEPT = 1e-11
# Estimate of a law's tail beyond its last value, as a multiple of that value's weight.
_TAIL = 32.0


class Summarised(NamedTuple):
    """Means and laws of the nodes, which `downward` fills."""

    mean: np.ndarray
    # ndarray of float64, shape (n, 2): Mean derivative of the log weight of a node's count by the
    # node's alpha, and of the log weight of its children's sum by the alpha of one child.
    rises: np.ndarray
    # ndarray of int64, shape (n,): First value of each law without its unlikely ends, its size, and
    # where it begins; leaves that are alike share one.
    first: np.ndarray
    size: np.ndarray
    place: np.ndarray


@njit()
def upward(parents, measured, splits, nats, beyond, first, size, offset, logs):
    """Fill the messages of inner nodes; return their table.

    A root's message has `beyond` entries more on each side than the truncation leaves.
    `logs` (n,), zeros on entry, is filled for inner nodes with the log of the number that a family
    was divided by; a root adds the log of its summed message. The sum is the log of all weights.
    An entry is -inf if no counts satisfy the bounds.
    """
    messages = FamilyMessages(first, size, offset, np.empty(1024))
    table, used = np.empty(1024), 0
    parts, own, work = np.empty(64), np.empty(64), np.empty((4, 64))
    items, real = room_of_items(splits)
    for v in splits.bottom_up:
        if splits.starts[v] == splits.starts[v + 1]:
            continue
        messages = FamilyMessages(first, size, offset, table)
        tilted, below = 0.0, splits.children[splits.starts[v]]
        if splits.center[v] >= 0.0:
            if splits.starts[below] < splits.starts[below + 1]:
                tilted = tilt_family(v, splits, messages, nats)
            else:
                parts = place_family(v, measured, splits, messages, nats, items, real, parts)
        made = merge_family(v, measured, splits, messages, nats, True, items, real, parts, work)
        parts, work, count = made
        logs[v] = -np.inf
        if count == 0:
            return table
        u = parents[v]
        last = items[count - 1]
        begins, width, place = last[FIRST], last[SIZE], last[PLACE]
        low = np.int64(max(measured.lo[v] - begins, 0.0))
        high = np.int64(min(measured.hi[v] - begins + 1.0, float(width)))
        own = own_weights(v, measured, splits, u, begins, width, own)
        top = -np.inf
        for i in range(low, high):
            x = parts[place + i]
            own[i] = own[i] + elementary.log(x) if x > LEAST else -np.inf
            top = max(top, own[i])
        if top == -np.inf:
            return table
        for i in range(low, high):
            own[i] = elementary.exp(own[i] - top)
        share = splits.slack[u] * splits.alpha[v] / splits.total[u] if u >= 0 else beyond
        more = np.int64(share) + 2
        begin, stop, _ = cut_off(own, low, high, nats, more, low, high)
        table = grown(table, used + stop - begin)
        for i in range(begin, stop):
            table[used + i - begin] = own[i]
        first[v], size[v], offset[v] = begins + begin, stop - begin, used
        used += stop - begin
        logs[v] = real[count - 1, LOG] + tilted + top
        if u < 0:
            logs[v] += elementary.log(own[begin:stop].sum())
    return table


@njit()
def downward(parents, measured, splits, messages, nats, outside, keep, summarised):
    """Fill the means, rises and, if `keep`, laws of all nodes; overwrite the messages' table.

    The tree of a part has one root, whose message includes `outside`: log weights for its values
    that come from the other parts. Of other trees, `outside` is empty.
    Returns the laws, and an estimate of the probability that truncation removed, summed over laws.
    """
    laws, used, lost, cut = np.empty(1024), 0, 0.0, elementary.exp(-nats)
    parts, outer, own, work = np.empty(64), np.empty(64), np.empty(64), np.empty((4, 64))
    items, real = room_of_items(splits)
    table = messages.table
    for pos in range(splits.bottom_up.size - 1, -1, -1):
        v = splits.bottom_up[pos]
        if splits.starts[v] == splits.starts[v + 1]:
            continue
        first, size, place = messages.first[v], messages.size[v], messages.offset[v]
        if parents[v] < 0:
            of = measured, splits, keep, summarised, laws, used
            laws, used, gone = _record(v, table[place : place + size], first, *of)
            lost += gone
            own = own_weights(v, measured, splits, -1, first, size, own)
            for i in range(outside.size):
                own[i] += outside[i]
            _exponentials(own, size, table, place)
        made = merge_family(v, measured, splits, messages, nats, True, items, real, parts, work)
        parts, work, count = made
        last = items[count - 1]
        # `outer` has the weights outside each item, at the place of its message in `parts`
        outer = grown(outer, last[PLACE] + last[SIZE])
        for i in range(last[SIZE]):
            k = last[FIRST] + i - first
            outer[last[PLACE] + i] = table[place + k] if 0 <= k < size else 0.0
        for n in range(count - 1, -1, -1):
            item = items[n]
            at, width, kind = item[PLACE], item[SIZE], item[KIND]
            if kind == POWER:
                continue
            if kind == SINGLE:
                c = splits.children[item[BEGIN]]
                own = grown(own, width)
                for i in range(width):
                    own[i] = outer[at + i] * parts[at + i]
                of = measured, splits, keep, summarised, laws, used
                laws, used, gone = _record(c, own[:width], item[FIRST], *of)
                lost += gone * (item[STOP] - item[BEGIN])
                for j in range(item[BEGIN] + 1, item[STOP]):
                    _copy(summarised, c, splits.children[j])
                if splits.starts[c] < splits.starts[c + 1]:
                    own = own_weights(c, measured, splits, v, item[FIRST], width, own)
                    for i in range(width):
                        own[i] += elementary.log(max(outer[at + i], 1e-300))
                    _exponentials(own, width, table, messages.offset[c])
                continue
            # outside weights matter only where the item's own law has probability
            low, high = held(outer[at : at + width], parts[at : at + width], cut)
            lost += 2.0 * cut
            if n < count - 1:
                lost += _at_ends(outer, parts, at, width, item[BELOW], item[ABOVE])
            around, lowest = outer[at + low : at + high], item[FIRST] + low
            if kind == SHARED:
                of = measured, splits, keep, summarised, laws, used
                laws, used = _members(v, item, real[n, ALPHA], around, lowest, parts, *of)
            else:
                left, right = items[item[LEFT]], items[item[RIGHT]]
                work = _around(around, lowest, left, right, parts, outer, work)
                if kind == MERGED:
                    work = _around(around, lowest, right, left, parts, outer, work)
    return laws[:used], lost


@njit(inner=True)
def _exponentials(logs, size, out, at):
    """Write exp(logs) to out[at], ..., the largest scaled to 1 and none less than exp(-700)."""
    top = -np.inf
    for i in range(size):
        top = max(top, logs[i])
    for i in range(size):
        out[at + i] = elementary.exp(max(logs[i] - top, -700.0))


@njit(inner=True)
def _around(around, first, one, other, parts, outer, work):
    """Write the weights outside one of the two items of a merge; return `work`."""
    work = room(work, one[SIZE] + other[SIZE] + 16)
    at, size = one[PLACE], one[SIZE]
    out = outer[at : at + size]
    rest = parts[other[PLACE] : other[PLACE] + other[SIZE]]
    correlate(around, first, rest, other[FIRST], out, one[FIRST], work)
    top = 0.0
    for i in range(size):
        top = max(top, out[i])
    for i in range(size):
        out[i] /= top
    return work


@njit(inner=True)
def _members(v, item, whole, around, first, parts, measured, splits, keep, summarised, laws, used):
    """Record leaves that have one negative binomial sum, whose alpha is `whole`."""
    begin, stop, size = item[BEGIN], item[STOP], around.size
    own = np.empty(size)
    mean = total = 0.0
    for i in range(size):
        own[i] = around[i] * parts[item[PLACE] + first - item[FIRST] + i]
        total += own[i]
        mean += own[i] * (first + i)
    mean /= total
    # all have the slope of their sum (Fisher's identity)
    slope = rise(own, float(first), whole)
    end = first + size
    member, rest, work = np.empty(64), np.empty(64), np.empty((4, 64))
    last = -1
    for j in range(begin, stop):
        c = splits.children[j]
        alpha = splits.alpha[c]
        if last >= 0 and alpha == splits.alpha[last]:
            _copy(summarised, last, c)
            continue
        last = c
        if keep:
            q = rate_of(c, measured, splits.p[v])
            law = FLAT, 0.0, 0.0, 0.0, end - 1.0
            member, low, width, _ = leaf_message(*law, alpha, 0.0, q, WHOLE, 0, member)
            if stop - begin == 1:
                own = grown(own, width)
                for i in range(width):
                    k = low + i - first
                    own[i] = around[k] if 0 <= k < size else 0.0
            else:
                others = whole - alpha
                rest, lowest, much, _ = leaf_message(*law, others, 0.0, q, WHOLE, 0, rest)
                own, work = grown(own, width), room(work, width + much + 16)
                correlate(around, first, rest[:much], lowest, own[:width], low, work)
            for i in range(width):
                own[i] *= member[i]
            laws, used = _keep(c, own[:width], low, summarised, laws, used)
        summarised.mean[c] = mean * alpha / whole
        summarised.rises[c, 0], summarised.rises[c, 1] = slope, 0.0
    return laws, used


@njit(inner=True)
def _copy(summarised, c, d):
    """Copy the results of node c to node d."""
    summarised.mean[d] = summarised.mean[c]
    summarised.rises[d, 0], summarised.rises[d, 1] = summarised.rises[c, 0], summarised.rises[c, 1]
    summarised.first[d], summarised.size[d] = summarised.first[c], summarised.size[c]
    summarised.place[d] = summarised.place[c]


@njit(inner=True)
def _record(v, law, first, measured, splits, keep, summarised, laws, used):
    """Record one law; return `laws`, their size, and the estimated probability that is lost."""
    rises, size = summarised.rises, law.size
    total = mean = 0.0
    for i in range(size):
        total += law[i]
        mean += law[i] * i
    summarised.mean[v] = first + mean / total
    rises[v, 0] = rise(law, float(first), splits.alpha[v])
    rises[v, 1] = 0.0
    if splits.odds[v] > 0.0:
        sums, slopes = np.empty(size), np.empty(size)
        weights_of_sum(v, splits, first, sums, slopes)
        for i in range(size):
            rises[v, 1] += law[i] * slopes[i] / total
    elif splits.total[v] > 0.0:
        rises[v, 1] = rise(law, float(first), splits.total[v])
    if keep:
        laws, used = _keep(v, law, first, summarised, laws, used)
    below, above = first > measured.lo[v], first + size - 1 < measured.hi[v]
    return laws, used, _TAIL * (below * law[0] + above * law[-1]) / total


@njit(inner=True)
def _at_ends(outer, parts, at, size, below, above):
    """Estimate the probability of an item's law beyond the ends of its window."""
    total = 0.0
    for i in range(at, at + size):
        total += outer[i] * parts[i]
    last = at + size - 1
    return _TAIL * (below * outer[at] * parts[at] + above * outer[last] * parts[last]) / total


@njit(inner=True)
def _keep(v, law, first, summarised, laws, used):
    """Append a law without its unlikely ends to `laws`; return these and their size."""
    total = law.sum()
    low, high, least = 0, law.size, _LEAST_KEPT * total
    while low < high - 1 and law[low] < least:
        low += 1
    while high > low + 1 and law[high - 1] < least:
        high -= 1
    laws = grown(laws, used + high - low)
    for i in range(low, high):
        laws[used + i - low] = law[i] / total
    summarised.first[v], summarised.size[v], summarised.place[v] = first + low, high - low, used
    return laws, used + high - low


@njit()
def draw(parents, measured, splits, messages, nats, column, words, out):
    """Fill `out` (r, c), r draws of the counts, from `words` (r, w) of 64 bits in the same order.

    Each root takes one word, and each child but the first of its family. If `bottom_up` lists some
    families only, all families above them included, no others are drawn. ``column`` (n,) is the
    place in `out` of each node that is drawn.
    """
    parts, own, work = np.empty(64), np.empty(64), np.empty((4, 64))
    items, real = room_of_items(splits)
    word = 0
    for pos in range(splits.bottom_up.size - 1, -1, -1):
        v = splits.bottom_up[pos]
        begin, count = splits.starts[v], splits.starts[v + 1] - splits.starts[v]
        if count == 0:
            continue
        if parents[v] < 0:
            place = messages.offset[v]
            law = messages.table[place : place + messages.size[v]]
            for r in range(out.shape[0]):
                out[r, column[v]] = messages.first[v] + _chosen(law, words[r, word])
            word += 1
        made = merge_family(v, measured, splits, messages, nats, False, items, real, parts, work)
        parts, work, _ = made
        for r in range(out.shape[0]):
            left = out[r, column[v]]
            for row in range(count - 1, 0, -1):
                c, child = splits.children[begin + row], items[row]
                # the sum of the children before it
                before = items[count + row - 2 if row > 1 else 0]
                size = child[SIZE]
                own = grown(own, size)
                for i in range(size):
                    k = left - (child[FIRST] + i) - before[FIRST]
                    own[i] = 0.0
                    if 0 <= k < before[SIZE]:
                        own[i] = parts[child[PLACE] + i] * parts[before[PLACE] + k]
                drawn = child[FIRST] + _chosen(own[:size], words[r, word + row - 1])
                out[r, column[c]] = drawn
                left -= drawn
            out[r, column[splits.children[begin]]] = left
        word += count - 1


@njit(inner=True)
def _chosen(weights, word):
    """Return an index with probability proportional to `weights`, by a uniform word."""
    left = (float(word >> np.uint64(11)) + 0.5) * 2.0**-53 * weights.sum()
    last = 0
    for i in range(weights.size):
        if weights[i] > 0.0:
            last = i
            left -= weights[i]
            if left < 0.0:
                break
    return last
