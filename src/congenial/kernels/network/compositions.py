"""Uniform compositions: a total split into n parts, all splits equally likely.

Benchmark rows: `flat`, `taxi`.

A composition of `total` into n parts is a choice of n - 1 bars among total + n - 1 places
(stars and bars). Few bars are drawn by Floyd's method in integers. Many bars are drawn in buckets
of 2^k places, in order and almost without sorting. The number of bars in a bucket is binomial. Bars
are added or removed at random until their number is right. Given its number, the bars of a bucket
are uniform. Each step treats all places alike, and each variable has exactly its law, so all
choices are exactly equally likely (`proofs/uniform-compositions.md`).

Words are read from a tape. If a tape is too short, its outcome is discarded: the caller extends the
same tape and begins again, so the law does not depend on the tape's length.
"""

from __future__ import annotations

import math

import numpy as np

from congenial.kernels.numerics import elementary
from congenial.kernels.numerics.binomial import BYTES, MORE, draw_more, fill_tables
from congenial.kernels.numerics.compiling import njit
from congenial.kernels.numerics.ordering import in_order, insert, read_marks
from congenial.kernels.numerics.tape import below_bits, below_word, word_at

# Number of bars below which tables are not worth their cost.
FEW = 128
# Most places that Floyd's method marks as bits, in all and for each bar.
_MARKS = 2048
_MARKS_A_BAR = 48
# Bound below which a uniform integer is drawn from half a word.
_HALF_WORD = 1 << 28
# Number of bars that are placed in one batch.
_CHUNK = 1024
# Most places per bar for buckets of 64 places, marked as bits of a word.
_DENSE = 16


@njit(inner=True)
def _composition_words(total, n):
    """Return the number of words that a composition usually takes; it seldom takes more."""
    size = min(n - 1, total)
    places = total + n - 1
    if size <= 0:
        return 0.0
    if size <= FEW or places <= _MARKS:
        if places <= min(_MARKS, _MARKS_A_BAR * size):
            return (size + (places * size >> 15) + 3) // 4
        # one word more, because a place is sometimes drawn twice
        return (size + 1) // 2 + 1 if places <= _HALF_WORD else size
    share = size / places
    shift = _bucket(places, size)
    # one byte for each bucket, and one word if the byte does not decide
    counted = (0.125 + (0.057 if shift == 6 else 0.029)) * (places >> shift)
    if places <= _DENSE * size:
        placed = counted - 6.05 * elementary.log1p(-share) * places / 64.0 + 120.0 * share
    else:
        placed = counted + size * (shift + 0.1) / 64.0
    fixing = (2.0 + 2.0 / (1.0 - share)) * math.sqrt(size)
    return placed + fixing + 16.0


@njit()
def count_words(first, second, cls, values, begin, end):
    """Return the number of words that `compose` reads for these arguments; it seldom reads more."""
    out = 0.0
    for i in range(first.size):
        for column in range(begin, end):
            if first[i] >= 0:
                out += _composition_words(values[first[i], column], cls[i])
            if second[i] >= 0:
                out += _composition_words(-values[second[i], column], cls[i])
    return np.int64(1.01 * out + 4.0 * math.sqrt(out)) + 8


@njit()
def compose(first, second, third, cls, members, words, values, begin, end):
    """Compose totals in columns begin..end-1 of `values` (slots, draws); return the words read.

    Composition i has `cls[i]` parts: those of the total ``values[first[i]]`` less those of the
    total ``-values[second[i]]``; a total is zero if its slot is -1. The parts are added to the
    slots members[third[i]], ..., which are zero on entry. If more than ``words.size`` words were
    read, the result must be discarded.
    """
    chosen = np.empty(2 * _CHUNK, dtype=np.int64)
    marks = np.empty(_MARKS // 64, dtype=np.uint64)
    table, edges = np.empty(BYTES, dtype=np.uint8), np.empty(65, dtype=np.uint64)
    for w in range(marks.size):
        marks[w] = 0
    at = zero = np.int64(0)
    for i in range(first.size):
        n, start = cls[i], third[i]
        for column in range(begin, end):
            up = values[first[i], column] if first[i] >= 0 else np.int64(0)
            down = -values[second[i], column] if second[i] >= 0 else np.int64(0)
            for total, sign in ((up, 1), (down, -1)):
                if n == 1:
                    values[members[start], column] += sign * total
                if total == 0 or n == 1:
                    continue
                # with fewer stars than bars, the places of the stars are drawn
                size = min(n - 1, total)
                places = total + n - 1
                stars = size == total
                last = np.int64(-1)
                if size <= FEW or places <= _MARKS:
                    at = _choose_few(places, size, words, at, chosen, marks)
                    _, last = _add(
                        chosen, size, stars, zero, last, sign, values, column, members, start
                    )
                elif words.size < at + 2:
                    at = words.size + 1
                else:
                    shift = _bucket(places, size)
                    held = np.empty(((places - 1) >> shift) + 1, dtype=np.int32)
                    mean = size - 2.0 * math.sqrt(size)
                    odds = mean / (places - mean)
                    at, most = _count_all(places, size, shift, odds, words, at, table, edges, held)
                    if most > chosen.size - _CHUNK:
                        chosen = np.empty(_CHUNK + most, dtype=np.int64)
                    last, at = _add_many(
                        places,
                        size,
                        stars,
                        sign,
                        words,
                        at,
                        held,
                        values,
                        column,
                        members,
                        start,
                        chosen,
                    )
                if not stars:
                    values[members[start + n - 1], column] += sign * (places - 1 - last)
    return at


@njit(inner=True)
def _add(chosen, count, stars, rank, last, sign, values, column, members, start):
    """Add the parts given by `count` sorted places; the first has rank `rank` among all places."""
    if stars:
        # as many bars precede a star as places that are not stars
        for r in range(count):
            values[members[start + chosen[r] - rank - r], column] += sign
    else:
        for r in range(count):
            values[members[start + rank + r], column] += sign * (chosen[r] - last - 1)
            last = chosen[r]
    return rank + count, last


@njit(inner=True)
def _choose_few(places, size, words, at, chosen, marks):
    """Fill `chosen` with a sorted uniform subset; `marks` are zero on entry."""
    if places > min(_MARKS, _MARKS_A_BAR * size):
        return _choose_apart(places, size, words, at, chosen)
    # Floyd's method, without branches that depend on the draws
    pool, left = np.uint64(0), np.int64(0)
    one, r = np.uint64(1), np.uint64(0)
    if places <= 64:
        held = np.uint64(0)
        for j in range(places - size, places):
            t, at, pool, left = below_bits(j + 1, words, at, pool, left, 16)
            lone, last = one << np.uint64(t), one << np.uint64(j)
            held |= last if held & lone else lone
        read_marks(held, np.int64(0), chosen, r)
        return at
    for j in range(places - size, places):
        t, at, pool, left = below_bits(j + 1, words, at, pool, left, 16)
        u = np.uint64(t)
        taken = (marks[u >> np.uint64(6)] >> (u & np.uint64(63))) & one
        u = np.uint64(j) if taken else u
        marks[u >> np.uint64(6)] |= one << (u & np.uint64(63))
    for w in range((places + 63) >> 6):
        r = read_marks(marks[w], w << 6, chosen, r)
        marks[w] = 0
    return at


@njit(inline="always", inner=True)
def _choose_apart(places, size, words, at, chosen):
    """Fill `chosen` with a sorted uniform subset of places, if few of them are drawn twice."""
    pool, left = np.uint64(0), np.int64(0)
    n = np.uint64(size)
    drawn = chosen[chosen.size // 2 :]
    for i in range(n):
        if places <= _HALF_WORD:
            drawn[i], at, pool, left = below_bits(places, words, at, pool, left, 32)
        else:
            drawn[i], at = below_word(places, words, at)
    same = np.int64(0)
    for i in range(n):
        rank = np.int64(0)
        mine = drawn[i]
        for k in range(n):
            rank += np.int64(drawn[k] < mine)
            same += np.int64(drawn[k] == mine)
        chosen[rank] = mine
    if same == size:
        return at
    # places drawn before stay, new ones are inserted
    zero, r = np.int64(0), np.int64(0)
    for i in range(size):
        r += np.int64(insert(drawn[i], chosen, zero, r))
    while r < size:
        t, at = below_word(places, words, at)
        r += np.int64(insert(t, chosen, zero, r))
    return at


@njit(inner=True)
def _bucket(places, size):
    """Return k for buckets of 2^k places: 64 places or, if bars are rare, 1.5 to 3 bars each."""
    if places <= _DENSE * size:
        return 6
    shift = 2
    while 3 * (places >> shift) > 2 * size:
        shift += 1
    return shift


@njit(inline="always", inner=True)
def _add_many(places, size, stars, sign, words, at, held, values, column, members, start, chosen):
    """Draw `held` bars (or stars) in every bucket and add them; return (last, at)."""
    dense = places <= _DENSE * size
    shift = _bucket(places, size)
    count = held.size
    rest = places - ((count - 1) << shift)
    zero = np.int64(0)
    rank, last, b = zero, zero - 1, zero
    bit = 64 * at
    while b < count - 1:
        if dense:
            b, r, bit = _place_marks(held, b, words, bit, chosen)
        else:
            b, r, bit = _place(held, b, shift, words, bit, chosen)
        rank, last = _add(chosen, r, stars, rank, last, sign, values, column, members, start)
    # one word more than the bits need, because bits are read two words at a time
    at = (bit + 127) >> 6
    size = np.int64(held[b])
    for i in range(size):
        while True:
            t, at = below_word(rest, words, at)
            if insert((b << shift) + t, chosen, zero, i):
                break
    _, last = _add(chosen, size, stars, rank, last, sign, values, column, members, start)
    return last, at


@njit(inner=True)
def _peek(words, bit):
    """Return the 64 bits from `bit` on, or anything beyond the last word but one."""
    at, by = bit >> np.uint64(6), bit & np.uint64(63)
    last = np.uint64(words.size - 1)
    if at >= last:
        return word_at(words, words.size + np.int64(bit))
    return (words[at] >> by) | ((words[at + np.uint64(1)] << np.uint64(1)) << (np.uint64(63) - by))


@njit(inner=True)
def _place_marks(held, b, words, bit, chosen):
    """Fill `chosen` from buckets of 64 places, from `b` on; return (b, size, bit).

    The last bucket is left out. Bits are read from `bit` on.
    """
    r = np.uint64(0)
    pool, left = np.uint64(0), 0
    while r < _CHUNK and b < held.size - 1:
        # in a crowded bucket, the free places are drawn
        flip = np.uint64(0) - np.uint64(held[b] > 32)
        missing = 64 - np.int64(held[b]) if flip else np.int64(held[b])
        marks = np.uint64(0)
        while missing > 0:
            if left == 0:
                pool, left = _peek(words, np.uint64(bit)), 10
                bit += 60
            lone = np.uint64(1) << (pool & np.uint64(63))
            pool >>= np.uint64(6)
            left -= 1
            missing -= np.int64((marks & lone) == np.uint64(0))
            marks |= lone
        r = read_marks(marks ^ flip, b << 6, chosen, r)
        b += 1
    return b, np.int64(r), bit


@njit(inner=True)
def _place(held, b, shift, words, bit, chosen):
    """Fill `chosen` from buckets of 2^shift places, as `_place_marks` does."""
    # of 128 bits: two places are read from the first 64 and three from the others
    fit = 64 // shift
    few = np.uint64(5 if fit > 2 else (4 if fit > 1 else 1))
    by, one, two = np.uint64(shift), np.uint64(1), np.uint64(2)
    three, four, five = np.uint64(3), np.uint64(4), np.uint64(5)
    mask = (one << by) - one
    at, stop, r = np.uint64(b), np.uint64(held.size - 1), np.uint64(0)
    bit = np.uint64(bit)
    while r < np.uint64(_CHUNK) and at < stop:
        k = np.uint64(held[at])
        base = at << by
        at += one
        if k <= few:
            # sort five values of which k are used, so that no branch depends on them
            pool = _peek(words, bit)
            s = pool & mask
            t = ((pool >> by) & mask) | (np.uint64(k < two) << np.uint64(59))
            pool = _peek(words, bit + by + by)
            u = (pool & mask) | (np.uint64(k < three) << np.uint64(60))
            pool >>= by
            v = (pool & mask) | (np.uint64(k < four) << np.uint64(61))
            pool >>= by
            w = (pool & mask) | (np.uint64(k < five) << np.uint64(62))
            s, t, u, v, w = in_order(s, t, u, v, w)
            chosen[r] = np.int64(base + s)
            chosen[r + one] = np.int64(base + t)
            chosen[r + two] = np.int64(base + u)
            chosen[r + three] = np.int64(base + v)
            chosen[r + four] = np.int64(base + w)
            bit += k * by
            if (s != t) & (t != u) & (u != v) & (v != w):
                r += k
                continue
        for i in range(r, r + k):
            while True:
                value = np.int64(base + (_peek(words, bit) & mask))
                bit += by
                if insert(value, chosen, np.int64(r), np.int64(i)):
                    break
        r += k
    return np.int64(at), np.int64(r), np.int64(bit)


@njit(inline="always", inner=True)
def _count_all(places, size, shift, odds, words, at, table, edges, held):
    """Fill `held`, numbers of bars in buckets of 2^shift places; return (at, the largest number).

    Bars are added or removed until there are `size`: an added bar takes a uniform free place, and
    a removed bar is uniform among the bars. `table` and `edges` are scratch.
    """
    wide = 1 << shift
    scale = fill_tables(wide, odds, table, edges)
    # places of the last bucket
    rest = places - ((held.size - 1) << shift)
    sum_held = np.int64(0)
    pool = np.uint64(0)
    for b in range(held.size):
        if b & 7 == 0:
            pool = word_at(words, at)
            at += 1
        k = np.int64(table[pool & np.uint64(255)])
        pool >>= np.uint64(8)
        if k == MORE:
            k, at = draw_more(wide, odds, scale, table, edges, words, at)
        held[b] = k
        sum_held += k
    # keep those of the last bucket's bars that are in its first `rest` places
    drawn, kept = np.int64(held[-1]), np.int64(0)
    for t in range(drawn):
        u, at = below_word(wide - t, words, at)
        kept += u < rest - kept
    held[-1] = kept
    sum_held += kept - drawn
    while sum_held < size:
        u, at = below_word(places, words, at)
        b = u >> shift
        fresh = np.int64((u & (wide - 1)) >= held[b])
        held[b] += fresh
        sum_held += fresh
    most = np.int64(0)
    for b in range(held.size):
        most = max(most, np.int64(held[b]))
    while sum_held > size:
        b, at = below_word(held.size, words, at)
        u, at = below_word(most, words, at)
        gone = np.int64(u < held[b])
        held[b] -= gone
        sum_held -= gone
    return at, most
