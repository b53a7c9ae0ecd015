"""Draws of the members of families, given their sums, by rejection.

Members with tables: all but one are drawn from their tables, independently. The last one gets the
rest of the sum, and is accepted with its own weight over its table's largest entry. About
sqrt(members) attempts are needed.

Leaves (`family_sums`): their lifts are drawn independently, and accepted with the negative binomial
weight of the rest over the largest such weight. Two attempts do, nearly always. A uniform
composition then splits the rest among all leaves (`compositions`).

An attempt reads a number of words that does not depend on the words. Where fewer are left, the
caller goes on with other words, so that the law does not depend on how many it brings.
"""

from __future__ import annotations

import math

import numpy as np

from congenial.kernels.network.family_sums import fill_powers
from congenial.kernels.numerics.compiling import njit
from congenial.kernels.numerics.doubled import doubled_exp, two_product, two_sum
from congenial.kernels.numerics.tape import scaled

# Sum of the weights of the longest lift.
_WHOLE = 2.0**62
# Largest exponent of a tilt of proposals, and most tilts that are tried for one sum.
MOST_NATS, _TURNS = 32.0, 6


@njit(inner=True)
def _passed(rows, begin, size, target):
    """Return the number of ascending entries rows[begin : begin + size] that are at most target."""
    base, left = begin, size
    while left > 1:
        half = left >> 1
        if rows[base + half - 1] <= target:
            base += half
        left -= half
    return base - begin + np.int64(rows[base] <= target)


@njit(inner=True)
def _accepts(ratio, word):
    """Accept with probability `ratio`, by a uniform word."""
    if ratio >= 1.0:
        return True
    return word < np.uint64(ratio * 2.0**64)


@njit(inner=True)
def _cumulate(tables, u, rows, at):
    """Write the running sums of the table of variable u to rows[at], ..."""
    place, _, size, table = tables
    total = np.int64(0)
    for i in range(size[u]):
        total += table[place[u] + i]
        rows[at + i] = total


@njit(inner=True)
def _lay_out(tables, member, begin, stop, tilt, rows, scratch):
    """Write the tables of members to `rows`, tilted, and add up all but the widest one.

    The widest table is that whose largest entry is the least share of its sum. Returns (where it is
    among the members, its largest entry, mean and variance of the sum).
    """
    place, low, size, table = tables
    best, least, most, at = begin, 2.0, np.int64(0), 0
    mean = variance = 0.0
    for j in range(begin, stop):
        zero, width = place[member[j]], size[member[j]]
        if tilt != 0.0:
            middle, total = 0, 0.0
            for i in range(width):
                middle = i if table[zero + i] > table[zero + middle] else middle
            for i in range(width):
                scratch[i] = float(table[zero + i]) * math.exp(tilt * (i - middle))
                total += scratch[i]
            scale = (_WHOLE - 2.0 * width) / total
        top, whole, first, second = np.int64(0), np.int64(0), 0.0, 0.0
        for i in range(width):
            entry = table[zero + i] if tilt == 0.0 else np.int64(scratch[i] * scale) + 1
            rows[at + i] = entry
            top, whole = max(top, entry), whole + entry
            first += float(entry) * i
            second += float(entry) * i * i
        first, second = first / float(whole), second / float(whole)
        mean += low[member[j]] + first
        variance += second - first * first
        if float(top) < least * float(whole):
            best, least, most = j, float(top) / float(whole), top
        at += width
    at = 0
    for j in range(begin, stop):
        width = size[member[j]]
        if j != best:
            for i in range(at + 1, at + width):
                rows[i] += rows[i - 1]
        at += width
    return best, most, mean, variance


@njit()
def draw(order, families, tables, leaves, binomials, tilts, doubt, state, words, values, doubts):
    """Draw the members of families `order`, from the top down; return the number of words read.

    `values` (n + m, draws) has the variables and, for families of leaves, the rest that is to be
    composed; fixed sums are 0. `doubts` (draws,) gains the doubts of all sums that were drawn; a
    draw whose doubt is infinite is left as it is.

    `state` is updated: [0] families that are done, [1] draws that are done in the next one, [2] 1
    if that draw's sum has a doubt of more than 1/2, which the caller settles and sets to 2, [3]
    families whose owners, in no sum, have been drawn.
    """
    start, member, owner, root, of_leaves, _, _ = families
    _, first, size, _ = tables
    base_tilt, retilt = tilts
    columns, used = values.shape[1], 0
    rows, scratch = np.empty(1024, dtype=np.int64), np.empty(1024)
    lifts = np.empty(64), np.empty(64, dtype=np.int64)
    for at in range(state[0], order.size):
        f = order[at]
        v, begin, stop = owner[f], start[f], start[f + 1]
        if root[f] and state[3] <= at:
            if words.size - used < columns:
                return used
            if rows.size < size[v]:
                rows = np.empty(2 * size[v], dtype=np.int64)
            _cumulate(tables, v, rows, 0)
            for r in range(columns):
                target, _ = scaled(words[used], rows[size[v] - 1])
                used += 1
                values[v, r] = first[v] + _passed(rows, 0, size[v], target)
            state[3] = at + 1
        law = 1.0, True, 0, 0, np.int64(0)
        of_all = tables, member, begin, stop
        last, most, need, widest, tilt = -1, np.int64(0), 0, 0, 0.0
        mean = variance = 0.0
        if of_leaves[f]:
            need, widest, highest = _lifted(f, leaves)
            if lifts[0].size < widest + 2:
                lifts = np.empty(2 * widest + 2), np.empty(2 * widest + 2, dtype=np.int64)
            unit, top = 1.0, True
            if need > 1:
                unit, top = _cumulate_lifts(leaves[4][f], leaves[5][f], widest, *lifts)
            mode = _mode(stop - begin, leaves[4][f], leaves[5][f])
            law = unit, top, need, highest, mode
        else:
            room = 0
            for j in range(begin, stop):
                room += size[member[j]]
                widest = max(widest, size[member[j]])
            if rows.size < room:
                rows = np.empty(2 * room, dtype=np.int64)
            if scratch.size < widest:
                scratch = np.empty(2 * widest)
            need, tilt = stop - begin, retilt[f]
            last, most, mean, variance = _lay_out(*of_all, tilt, rows, scratch)
        for r in range(state[1], columns):
            state[1] = r
            if doubts[r] == np.inf:
                state[2] = 0
                continue
            if v >= 0 and state[2] == 0:
                own = doubt_of(v, values[v, r], doubt, tables)
                if own > 0.5:
                    state[2] = 1
                    return used
                doubts[r] += own
            state[2] = 0
            if last >= 0 and need > 1:
                # proposals near the sum are accepted more often; any tilt leaves the law as it is
                whole = float(values[v, r]) if v >= 0 else 0.0
                for _ in range(_TURNS):
                    off = whole - mean
                    if off * off <= variance:
                        break
                    step = off / max(variance, abs(off) * math.sqrt(variance))
                    if abs(tilt + step) * widest > MOST_NATS:
                        break
                    tilt += step
                    last, most, mean, variance = _lay_out(*of_all, tilt, rows, scratch)
            while True:
                if words.size - used < need:
                    # the doubt is counted once
                    state[2] = 2
                    return used
                if of_leaves[f]:
                    done = _try_leaves(
                        f,
                        families,
                        leaves,
                        binomials,
                        base_tilt,
                        law,
                        lifts,
                        words,
                        used,
                        values,
                        r,
                    )
                else:
                    done = _try_tables(
                        f, families, tables, last, most, rows, words, used, values, r
                    )
                used += need
                if done:
                    break
        state[0], state[1] = at + 1, 0
    return used


@njit(inner=True)
def _lifted(f, leaves):
    """Return (words of an attempt, largest gap, largest sum of the lifts)."""
    begins, gaps, counts, _, _, _ = leaves
    lifted = widest = highest = 0
    for i in range(begins[f], begins[f + 1]):
        if gaps[i] > 0:
            lifted += counts[i]
            widest = max(widest, gaps[i])
            highest += counts[i] * gaps[i]
    return lifted + 1 if lifted else 0, widest, highest


@njit(inner=True)
def _mode(size, inverse, tilt):
    """Return the mode of a sum of geometric variables."""
    return np.int64((size - 1.0) * math.exp(tilt - inverse) / -math.expm1(tilt - inverse))


@njit(inner=True)
def _try_leaves(f, families, leaves, binomials, base_tilt, law, lifts, words, used, values, r):
    """Draw the lifts of a family; return whether they are accepted."""
    start, member, owner, _, _, gap, least = families
    _, _, _, base, _, tilt = leaves
    of, offset, binomial = binomials
    unit, top, need, highest, mode = law
    powers, sums = lifts
    v = owner[f]
    whole = (values[v, r] if v >= 0 else np.int64(0)) - base[f]
    left = whole
    for j in range(start[f], start[f + 1]):
        u = member[j]
        c = gap[u]
        lift = np.int64(0)
        if c > 0:
            end = np.int64((powers[c] if top else 1.0) * unit)
            target, _ = scaled(words[used], sums[c] + end)
            used += 1
            if target < sums[c]:
                h = _passed(sums, 1, c, target)
                lift = c - h if top else h + 1
        values[u, r] = least[u] + lift
        left -= lift
    if left < 0:
        return False
    values[gap.size + f, r] = left
    if need == 0:
        return True
    best, at = min(max(mode, whole - highest, 0), whole), offset[of[f]]
    by, by_low = two_sum(tilt[f], -base_tilt[f])
    away = float(left - best)
    h, low = two_product(by, away)
    h, low = doubled_exp(h, low + by_low * away)
    return _accepts(binomial[at + left] / binomial[at + best] * (h + low), words[used])


@njit(inner=True)
def _try_tables(f, families, tables, last, most, rows, words, used, values, r):
    """Draw the members of a family from their tables; return whether they are accepted."""
    start, member, owner, _, _, _, _ = families
    _, first, size, _ = tables
    left, begun, own = (values[owner[f], r] if owner[f] >= 0 else np.int64(0)), 0, 0
    for j in range(start[f], start[f + 1]):
        u = member[j]
        if j == last:
            own = begun
        else:
            target, _ = scaled(words[used], rows[begun + size[u] - 1])
            used += 1
            values[u, r] = first[u] + _passed(rows, begun, size[u], target)
            left -= values[u, r]
        begun += size[u]
    u = member[last]
    i = left - first[u]
    if i < 0 or i >= size[u]:
        return False
    values[u, r] = left
    target, _ = scaled(words[used], most)
    return target < rows[own + i] or start[f + 1] - start[f] == 1


@njit()
def doubt_of(v, x, doubt, tables):
    """Return by which share the entry of x may be too large (`sum_network.families`)."""
    factor, slope, decay, log_top, _ = doubt
    place, first, _, table = tables
    if factor[v] == 0.0:
        return 0.0
    entry = float(table[place[v] + x - first[v]])
    return factor[v] * math.exp(slope[v] * x - decay[v] * abs(x) - log_top[v]) / entry


@njit(inner=True)
def _cumulate_lifts(inverse, tilt, widest, powers, sums):
    """Fill the powers and running weights of lifts of gaps up to `widest`; return (unit, top)."""
    top = fill_powers(inverse, tilt, powers[: widest + 1])
    most, total = -math.expm1(-2.0 * inverse), 1.0
    for h in range(widest + 1):
        total += most * powers[h]
    unit = (_WHOLE - 2.0 * widest - 4.0) / total
    sums[0] = 0
    for h in range(widest):
        sums[h + 1] = sums[h] + np.int64(most * powers[h if top else h + 1] * unit)
    return unit, top
