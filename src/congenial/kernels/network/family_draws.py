"""Draws of the members of families, given their sums, by rejection.

Members with tables: all but one are drawn from their tables, independently. The last one gets the
rest of the sum, and is accepted with its own weight over its table's largest entry. About
sqrt(members) attempts are needed.

Leaves (`family_sums`): their lifts are drawn independently, and accepted with the negative binomial
weight of the rest over the largest such weight. Two attempts do, nearly always; after many, another
tilt brings proposals near the sum. A uniform composition then splits the rest among all leaves
(`compositions`).

An attempt reads a number of words that does not depend on the words. Where fewer are left, the
caller goes on with other words, so that the law does not depend on how many it brings. Proposals
are drawn by integers, exactly. An attempt is accepted with a probability that doubles know up to
their rounding. Where a word lies within that of the probability, and where a proposal may lie
beyond a table, the caller decides by exact arithmetic (`proofs/family-draws.md`).
"""

from __future__ import annotations

import math

import numpy as np

from congenial.kernels.network.family_sums import LARGEST_TAIL, moments_of_family
from congenial.kernels.numerics import elementary
from congenial.kernels.numerics.compiling import njit
from congenial.kernels.numerics.tape import scaled

# State of a draw, state[2], is what it waits for: nothing; a doubt of more than 1/2, which the
# caller settles; words, or nothing more, after a doubt that is settled or counted; whether an
# attempt is accepted, and the answers; a root's value that may lie beyond its table, and the
# answer.
CLEAR, DOUBTFUL, COUNTED, UNDECIDED, ACCEPTED, REFUSED, ROOT, CHOSEN = range(8)
# Bits of a word that choose an entry of a table, whose entries add up to at most 2^62.
_SPARE = np.uint64(2)
# Parts of the numbers below 2^62, and their bits, for each of which a table knows its first entry.
PARTS, _OF_PART = 16, 58
# Sum of the tilted weights of a member, which leaves a share of 2^-29 for roundings and tails, and
# of the weights of the longest lift. What no weight has is drawn again.
_WHOLE, _WHOLE_LIFTS = 2.0**62 * (1.0 - 2.0**-29), 2.0**40
# Largest exponent of a weight beyond a table, and a relative error that a bound on it has room for.
_FAR, _WELL = 700.0, 1e-6
# Squared distance of a sum from the mean of proposals, in variances, from which on they are tilted.
# Nearer, a few more failed attempts take less time than to lay out tilted weights.
_NEAR = 4.0
# Largest exponent of a tilt of proposals, and most tilts that are tried for one sum.
_MOST_NATS, _TURNS = 4096.0, 40
_LOG_2 = 0.6931471805599453
# Failed attempts of a family of leaves after which its proposals are tilted towards the sum; steps
# in which that tilt is found, and how far below the family's own it may lie, in nats a value.
FAILED, _STEPS, _FARTHEST = 64, 60, 64.0
# The largest probability with which an attempt of leaves is accepted, see `_try_leaves`.
_UNIT, BELOW_ONE = 2.0**-53, 1.0 - 2.0**-40


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
def _decided(probability, off, word):
    """Return 1 if a uniform number is below `probability`, 0 if not, -1 if it may be either.

    `word` has the first 64 bits of the number; `off` bounds the relative error of `probability`.
    """
    middle, at = probability * 2.0**64, float(word)
    room = 2.0 + middle * off + at * 2.0**-52
    if at + room < middle:
        return 1
    return 0 if at > middle + room else -1


@njit(inner=True)
def _found(running, begin, size, guide, t, target):
    """Return the same as `_passed` for table t, whose `guide` tells where to look."""
    part = target >> _OF_PART
    low = guide[t, part]
    high = guide[t, part + 1] if part + 1 < PARTS else size
    return low if low == high else low + _passed(running, begin + low, high - low, target)


@njit()
def cumulate(place, size, table, largest, total, guide):
    """Turn the entries of tables into their running sums.

    Fills `largest` and `total` with the largest entry of each table and the sum of all, and `guide`
    (tables, PARTS) with the numbers of running sums of at most j 2^58.
    """
    for t in range(place.size):
        whole, top, part = np.int64(0), np.int64(0), 0
        for i in range(size[t]):
            entry = table[place[t] + i]
            top, whole = max(top, entry), whole + entry
            table[place[t] + i] = whole
            while part < PARTS and whole > np.int64(part) << _OF_PART:
                guide[t, part] = i
                part += 1
        guide[t, part:] = size[t]
        largest[t], total[t] = top, whole


@njit(inner=True)
def _tilt(running, begin, width, tilt, rows, shares):
    """Fill the rows of one member as `lay_out` does, with their running sums, and its shares.

    Returns (middle, scale, largest weight, sum of weights, mean and variance of the places).
    """
    middle, most, before = 0, -np.inf, np.int64(0)
    for i in range(width):
        rows[i] = running[begin + i] - before
        before = running[begin + i]
        # about the logarithm of the tilted weight, so that none is far above that of the middle
        share, power = math.frexp(float(rows[i]))
        log = (power + 2.0 * share) * _LOG_2 + tilt * i
        if log > most:
            middle, most = i, log
    total = 0.0
    for i in range(width):
        shares[i] = float(rows[i]) * elementary.exp(tilt * (i - middle))
        total += shares[i]
    scale = (_WHOLE - 2.0 * width) / total
    # more than the rounding errors of the exponents and the exponentials
    above = 1.0 + (abs(tilt) * width + 16.0) * _UNIT
    top, whole, first, second = np.int64(0), np.int64(0), 0.0, 0.0
    for i in range(width):
        own = shares[i] * scale
        entry = np.int64(own * above) + 1
        shares[i] = own / float(entry)
        top, whole = max(top, entry), whole + entry
        first += float(entry) * i
        second += float(entry) * i * i
        rows[i] = whole
    first /= float(whole)
    return middle, scale, top, whole, first, second / float(whole) - first * first


@njit()
def lay_out(tables, member, begin, stop, tilt, rows, shares, laid):
    """Lay out the weights that propose the values of members, tilted.

    Weights are integers. Each is at least entry * exp(tilt * (i - middle)) * scale, for the entry
    at place i of the member's table. Their running sums are written to `rows`, one member after
    another, and what each weight lacks, as a share, to `shares`. Without a tilt, weights are the
    entries, and nothing is written. `laid` (members, 2) has the middle and the scale of each. All
    members but the widest one are drawn. That is the one whose largest weight is the least share of
    their sum. Returns (where it is among the members, its largest weight; a bound on its weights
    beyond its table, as a share of that; mean and variance of the sum; whether the weights beyond
    all tables are small enough to be drawn).
    """
    of, place, low, size, running, tails, largest, total, moments, _ = tables
    best, least, most, at, edge, fits = begin, 2.0, np.int64(0), 0, 0.0, True
    mean = variance = 0.0
    for j in range(begin, stop):
        t = of[member[j]]
        width, middle, scale, top = size[t], 0, 1.0, largest[t]
        whole, first, spread = total[t], moments[0, t], moments[1, t]
        if tilt != 0.0:
            own = rows[at : at + width], shares[at : at + width]
            middle, scale, top, whole, first, spread = _tilt(running, place[t], width, tilt, *own)
        laid[j - begin, 0], laid[j - begin, 1] = middle, scale
        mean += low[t] + first
        variance += spread
        mine = 0.0
        for side in range(2):
            bound, fall = tails[2 * side, t], tails[2 * side + 1, t]
            if bound > 0.0:
                fall += tilt if side == 0 else -tilt
                away = float(-1 - middle if side == 0 else width - middle)
                weight = bound * scale * elementary.exp(min(tilt * away, _FAR))
                fits &= fall > 0.0 and weight < LARGEST_TAIL * -elementary.expm1(-fall)
                mine = max(mine, weight)
        if float(top) < least * float(whole):
            best, least, most, edge = j, float(top) / float(whole), top, mine / float(top)
        at += width
    return best, most, edge, mean, variance, fits


@njit()
def draw(
    order,
    families,
    tables,
    leaves,
    binomials,
    tilts,
    doubt,
    state,
    turned,
    words,
    values,
    doubts,
):
    """Draw the members of families `order`, from the top down; return the number of words read.

    `values` (n + m, draws) has the variables and, for families of leaves, the rest that is to be
    composed; fixed sums are 0. `doubts` (draws,) gains the doubts of all sums that were drawn; a
    draw whose doubt is infinite is left as it is.

    `state` is updated: [0] families that are done, [1] draws that are done in the next one, [2]
    what the next draw waits for, see above, [3] families whose owners, in no sum, have been drawn,
    [4] failed attempts of leaves in the next draw.
    turned[0] is the tilt of proposals. If an attempt or a root is undecided, its words are the next
    ones.
    """
    start, member, owner, root, of_leaves, lone, gap, least = families
    of_table, place, first, size, running, tails, _, _, _, _ = tables
    factor, rounding, slope, decay, center, log_top, _ = doubt
    base_tilt, retilt = tilts
    of_binomial, _, length, _ = binomials
    begins, gaps, counts, base, _, own_tilt = leaves
    columns, used = values.shape[1], 0
    rows, shares, laid = np.empty(1024, dtype=np.int64), np.empty(1024), np.empty((64, 2))
    lifts = np.empty(64), np.empty(64, dtype=np.int64), np.empty(64)
    for at in range(state[0], order.size):
        f = order[at]
        v, begin, stop = owner[f], start[f], start[f + 1]
        if root[f] and state[3] <= at:
            if words.size - used < columns - state[1]:
                return used
            t = of_table[v]
            for r in range(state[1], columns):
                target = np.int64(words[used] >> _SPARE)
                if target < running[place[t] + size[t] - 1]:
                    values[v, r] = first[t] + _passed(running, place[t], size[t], target)
                elif state[2] != CHOSEN:
                    state[1], state[2] = r, ROOT
                    return used
                state[2] = CLEAR
                used += 1
            state[1], state[3] = 0, at + 1
        law = 1.0, True, 0.0, 0, 0, np.int64(0), 0.0
        last, most, need, tilt = -1, np.int64(0), 0, 0.0
        edge = mean = variance = 0.0
        widest = lifted = 0
        # least sum of places, and whether nothing may lie below any table
        floor, ends = np.int64(0), True
        lowest = end = highest = np.int64(0)
        # leaves whose modes are all at their bounds have no lifts
        plain = of_leaves[f] and begins[f + 1] - begins[f] == 1 and gaps[begins[f]] == 0
        if plain:
            turned[0], lowest = own_tilt[f], base[f]
            end = lowest + (length[of_binomial[f]] if v >= 0 else 0)
        elif of_leaves[f]:
            need, widest, highest = _lifted(begins[f], begins[f + 1], gaps, counts)
            if lifts[0].size < widest + 2:
                room = 2 * widest + 2
                lifts = np.empty(room), np.empty(room, dtype=np.int64), np.empty(room)
            if state[4] < FAILED:
                turned[0] = own_tilt[f]
            number = stop - begin, need, widest, highest
            law = _tilted_leaves(f, number, leaves, lifts, turned[0])
        else:
            room = 0
            for j in range(begin, stop):
                t = of_table[member[j]]
                floor += first[t]
                ends &= tails[0, t] == 0.0
                width = size[t]
                room, widest = room + width, max(widest, width)
                lifted += lone[member[j]]
            if rows.size < room:
                rows, shares = np.empty(2 * room, dtype=np.int64), np.empty(2 * room)
            if laid.shape[0] < stop - begin:
                laid = np.empty((2 * (stop - begin), 2))
            need = stop - begin
            if state[1] == 0 and state[2] == CLEAR:
                turned[0] = 0.0
            tilt = turned[0]
            laid_out = lay_out(tables, member, begin, stop, tilt, rows, shares, laid)
            last, most, edge, mean, variance, _ = laid_out
        for r in range(state[1], columns):
            state[1] = r
            answer, state[2] = state[2], CLEAR
            if doubts[r] == np.inf:
                continue
            if v >= 0 and answer == CLEAR:
                x, t = values[v, r], of_table[v]
                own_law = factor[t], rounding[t], slope[t], decay[t], center[t], log_top[t]
                own = _doubt_at(x - first[t], place[t], size[t], running, float(x), own_law)
                if own > 0.5:
                    state[2] = DOUBTFUL
                    return used
                doubts[r] += own
            if last >= 0 and need > 1 and answer < UNDECIDED:
                # proposals near the sum are accepted more often; any tilt leaves the law as it is
                whole = float(values[v, r]) if v >= 0 else 0.0
                # the tilt of the family's sum may lie farther away
                upper = max(_MOST_NATS / widest, abs(retilt[f]))
                lower = -upper
                for turn in range(_TURNS):
                    off = whole - mean
                    if off * off <= (_NEAR if turn == 0 else 1.0) * variance:
                        break
                    before = tilt
                    if off > 0.0:
                        lower = max(lower, tilt)
                    else:
                        upper = min(upper, tilt)
                    if turn == 0 and tilt == 0.0 and retilt[f] != 0.0:
                        tilt = retilt[f]
                    else:
                        tilt += off / max(variance, abs(off) * math.sqrt(variance))
                        # the mean leaps where entries that are rounded up to 1 begin to count
                        if not lower < tilt < upper:
                            tilt = 0.5 * (lower + upper)
                    laid_out = lay_out(tables, member, begin, stop, tilt, rows, shares, laid)
                    if not laid_out[-1]:
                        tilt = before
                        laid_out = lay_out(tables, member, begin, stop, tilt, rows, shares, laid)
                    last, most, edge, mean, variance, _ = laid_out
                    if tilt == before:
                        break
                turned[0] = tilt
            while True:
                if words.size - used < need:
                    # the doubt is counted once
                    state[2] = COUNTED
                    return used
                done = 1
                if answer in (ACCEPTED, REFUSED):
                    done = 1 if answer == ACCEPTED else 0
                elif plain and lowest <= values[v, r] < end:
                    for j in range(begin, stop):
                        values[member[j], r] = least[member[j]]
                    values[gap.size + f, r] = values[v, r] - lowest
                elif of_leaves[f]:
                    # a tuple of arrays more would have its references counted
                    done, used, state[4] = _try_leaves(
                        f,
                        families,
                        leaves,
                        binomials,
                        base_tilt[f],
                        law,
                        lifts,
                        words,
                        used,
                        values,
                        r,
                        state[4],
                    )
                else:
                    off = (4.0 * abs(tilt) * widest + 128.0) * need * _UNIT
                    proposal = last, most, edge, floor, ends, tilt != 0.0, rows, shares, off
                    done, used = _try_tables(f, families, tables, proposal, words, used, values, r)
                if done < 0:
                    state[2] = UNDECIDED
                    return used
                used += need
                answer = CLEAR
                if done:
                    break
                state[4] += of_leaves[f]
                if state[4] == FAILED and of_leaves[f]:
                    whole = float((values[v, r] if v >= 0 else np.int64(0)) - base[f])
                    turned[0] = _towards(f, stop - begin, leaves, whole)
                    law = _tilted_leaves(f, number, leaves, lifts, turned[0])
            if state[4] >= FAILED:
                turned[0] = own_tilt[f]
                law = _tilted_leaves(f, number, leaves, lifts, turned[0])
            state[4] = 0
            if lifted:
                for j in range(begin, stop):
                    if lone[member[j]]:
                        doubts[r] += doubt_of(member[j], values[member[j], r], doubt, tables)
        state[0], state[1] = at + 1, 0
    return used


@njit(inner=True)
def _lifted(begin, stop, gaps, counts):
    """Return (words of an attempt, largest gap, largest sum of the lifts)."""
    lifted = widest = highest = 0
    for i in range(begin, stop):
        if gaps[i] > 0:
            lifted += counts[i]
            widest = max(widest, gaps[i])
            highest += counts[i] * gaps[i]
    return lifted + 1 if lifted else 0, widest, highest


@njit(inner=True)
def _tilted_leaves(f, number, leaves, lifts, tilt):
    """Fill the lifts of a family with a tilt; return what `_try_leaves` takes as its law.

    `number` has those of its leaves and of an attempt's words, the largest gap and sum of lifts.
    """
    size, need, widest, highest = number
    if need == 0:
        return 1.0, True, 0.0, need, highest, np.int64(0), tilt
    unit, top, off = cumulate_lifts(leaves[4][f], tilt, widest, *lifts)
    return unit, top, off, need, highest, mode_of(size, leaves[4][f], tilt), tilt


@njit(inner=True)
def _towards(f, size, leaves, whole):
    """Return a tilt at which the mean of a family's sum above its least value is about `whole`."""
    begins, gaps, counts, _, inverse, own = leaves
    law = gaps, counts, begins[f], begins[f + 1], size, inverse[f]
    low, high = own[f] - _FARTHEST, inverse[f]
    for _ in range(_STEPS):
        tilt = 0.5 * (low + high)
        if moments_of_family(*law, tilt)[0] < whole:
            low = tilt
        else:
            high = tilt
    return low


@njit()
def mode_of(size, inverse, tilt):
    """Return the mode of a sum of geometric variables, or a value beside it."""
    return np.int64(
        (size - 1.0) * elementary.exp(tilt - inverse) / -elementary.expm1(tilt - inverse)
    )


@njit(inner=True)
def _try_leaves(
    f, families, leaves, binomials, base_tilt, law, lifts, words, used, values, r, failed
):
    """Draw the lifts of a family until they are not refused, or words end.

    Returns whether the last attempt is accepted, -1 if the caller decides, where its words begin,
    and the number of failed attempts before it. The `FAILED`-th failed attempt is the last one,
    since the caller then changes the tilt. The probability is a bit less than the true ratio, which
    may exceed 1 by rounding of the mode. All attempts are made here, since each call counts
    references to all arrays.
    """
    start, member, owner, _, _, _, gap, least = families
    of, offset, length, binomial = binomials
    unit, top, off, need, highest, mode, tilt = law
    powers, sums, shares = lifts
    v = owner[f]
    whole = (values[v, r] if v >= 0 else np.int64(0)) - leaves[3][f]
    if whole >= length[of[f]]:
        return -1, used, failed
    best, at = best_rest(mode, whole, highest), offset[of[f]]
    while True:
        left, ratio, word, done = whole, BELOW_ONE, used, 1
        for j in range(start[f], start[f + 1]):
            u = member[j]
            c = gap[u]
            lift = np.int64(0)
            if c > 0:
                own = (powers[c] if top else 1.0) * unit
                end = np.int64(own * (1.0 + off)) + 1
                total = sums[c] + end
                target, low = scaled(words[word], total)
                word += 1
                # Lemire (2019): else some values would have a word more than others
                t = np.uint64(total)
                if low < t and low < (~t + np.uint64(1)) % t:
                    done = 0
                    break
                if target < sums[c]:
                    h = _passed(sums, 1, c, target)
                    lift = c - h if top else h + 1
                    ratio *= shares[h]
                else:
                    ratio *= own / float(end)
            values[u, r] = least[u] + lift
            left -= lift
        if left < 0:
            done = 0
        if done == 1:
            values[gap.size + f, r] = left
        if done == 1 and need > 0:
            # rounded twice, and so is its exponential, by about as many units as there are nats
            nats = (tilt - base_tilt) * float(left - best)
            ratio *= binomial[at + left] / binomial[at + best] * elementary.exp(nats)
            unsure = need * off + (32.0 + 4.0 * abs(nats)) * _UNIT
            done = _decided(ratio, unsure, words[word])
        if done != 0 or failed == FAILED - 1 or words.size - used < 2 * need:
            return done, used, failed
        used, failed = used + need, failed + 1


@njit()
def best_rest(mode, whole, highest):
    """Return the likeliest rest of a sum, or one beside it, after lifts of up to `highest`."""
    return min(max(mode, whole - highest, 0), whole)


@njit(inner=True)
def _try_tables(f, families, tables, proposal, words, used, values, r):
    """Draw members by their tables until an attempt is not refused, or words end.

    Returns whether the last attempt is accepted, -1 if the caller decides, and where its words
    begin. All attempts are made here, since each call counts references to all arrays.
    """
    start, member, owner, _, _, _, _, _ = families
    of, place, first, size, running, _, _, _, _, guide = tables
    last, most, edge, floor, ends, tilted, rows, shares, off = proposal
    begin, stop = start[f], start[f + 1]
    whole = (values[owner[f], r] if owner[f] >= 0 else np.int64(0)) - floor
    need, sums, end = stop - begin, rows if tilted else running, of[member[last]]
    while True:
        left, at, own, word, ratio, done = whole, 0, 0, used, 1.0, 1
        for j in range(begin, stop):
            u = member[j]
            t = of[u]
            base, width = at if tilted else place[t], size[t]
            at += width
            if j == last:
                own = base
                continue
            target = np.int64(words[word] >> _SPARE)
            word += 1
            if tilted:
                i = _passed(sums, base, width, target)
            else:
                i = _found(sums, base, width, guide, t, target)
            if i == width:
                done = -1
                break
            values[u, r] = first[t] + i
            left -= i
            if left < 0 and ends:
                done = 0
                break
            if tilted:
                ratio *= shares[base + i]
        if done == 1:
            values[member[last], r] = first[end] + left
        if done == 1 and need > 1:
            if left < 0 or left >= size[end]:
                done = 0 if _decided(edge, _WELL, words[word]) == 0 else -1
            else:
                entry = sums[own + left] - (sums[own + left - 1] if left > 0 else np.int64(0))
                if tilted:
                    ratio *= shares[own + left]
                done = _decided(ratio * (float(entry) / float(most)), off, words[word])
        if done != 0 or words.size - used < 2 * need:
            return done, used
        used += need


@njit()
def doubt_of(v, x, doubt, tables):
    """Return by which share the entry of x may be too large, 1 beyond the table (`Doubt`)."""
    factor, rounding, slope, decay, center, log_top, _ = doubt
    of, place, first, size, running, _, _, _, _, _ = tables
    t = of[v]
    law = factor[t], rounding[t], slope[t], decay[t], center[t], log_top[t]
    return _doubt_at(x - first[t], place[t], size[t], running, float(x), law)


@njit(inner=True)
def _doubt_at(i, place, size, running, x, law):
    """Return the doubt of entry i of a table, that of value x."""
    factor, rounding, slope, decay, center, log_top = law
    if i < 0 or i >= size:
        return 1.0
    if rounding == 0.0:
        return 0.0
    entry = float(running[place + i] - (running[place + i - 1] if i > 0 else np.int64(0)))
    more = 1.0
    if factor > 0.0:
        more += factor * elementary.exp(slope * x - decay * abs(x - center) - log_top)
    return more / entry + rounding


@njit()
def cumulate_lifts(inverse, tilt, widest, powers, sums, shares):
    """Fill the powers and running weights of lifts of gaps up to `widest`; return (unit, top, off).

    Powers fall from the likelier end on, which is the top, or neither end, if `top`. `off` bounds
    their relative errors. A weight is an integer, and is at least unit * (1 - exp(-2 inverse))
    times a power. `shares` has the latter over the former.
    """
    rate, most, total = abs(tilt + inverse), -elementary.expm1(-2.0 * inverse), 1.0
    ratio, power = elementary.exp(-rate), 1.0
    for h in range(widest + 1):
        powers[h] = power
        total += most * power
        power *= ratio
    # a power has one rounding for each factor, which has those of the rate and the exponential
    off = (16.0 + widest * (4.0 + 2.0 * rate)) * _UNIT
    unit = (_WHOLE_LIFTS - 2.0 * widest - 4.0) / total
    first, sums[0] = 0 if tilt + inverse >= 0.0 else 1, 0
    for h in range(widest):
        own = most * powers[h + first] * unit
        weight = np.int64(own * (1.0 + off)) + 1
        shares[h] = own / float(weight)
        sums[h + 1] = sums[h] + weight
    return unit, first == 0, off
