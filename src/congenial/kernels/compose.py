"""Uniform compositions: a total split into n parts, all splits equally likely, in integers alone.

A composition of `total` into n parts is a choice of n - 1 bars among total + n - 1 places
(stars and bars). Floyd's method draws a uniform subset with one word an element; a bitmap, a
short sorted list or a hash table holds it, whichever fits.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from congenial.kernels.tape import scaled


@njit(cache=True)
def below(total, words, at, spare):
    """Return a uniform integer below `total` from words[at] (Lemire 2019).

    The few words that would favour some outcomes are replaced by spare ones: ``spare[0]`` is the
    index of the next. With none left the outcome is kept; that takes as many rare events.
    """
    high, low = scaled(words[at], total)
    t = np.uint64(total)
    if low < t:
        least = (~t + np.uint64(1)) % t
        while low < least and spare[0] < words.size:
            high, low = scaled(words[spare[0]], total)
            spare[0] += 1
    return high


@njit(cache=True)
def add_composition(total, n, sign, words, at, spare, row, members, start):
    """Add sign times a uniform composition of `total` to row[members[start : start + n]].

    Uses words[at : at + n - 1]; with fewer stars than bars, the places of the stars are drawn.
    """
    if total == 0:
        return
    if n == 1:
        row[members[start]] += sign * total
        return
    places = total + n - 1
    size = min(n - 1, total)
    if places <= 64 * size + 4096:
        marks = np.zeros(places // 64 + 1, dtype=np.uint64)
        for r in range(size):
            j = places - size + r
            t = below(j + 1, words, at + r, spare)
            if (marks[t >> 6] >> np.uint64(t & 63)) & np.uint64(1):
                t = j
            marks[t >> 6] |= np.uint64(1) << np.uint64(t & 63)
        _add_marked(marks, places, size == total, n, sign, row, members, start)
        return
    chosen = np.empty(size, dtype=np.int64)
    if size <= 64:
        _choose_few(places, size, words, at, spare, chosen)
    else:
        _choose_many(places, size, words, at, spare, chosen)
    if size == total:
        # as many bars precede a star as places that are not stars
        for r in range(size):
            row[members[start + chosen[r] - r]] += sign
        return
    last = -1
    for r in range(size):
        row[members[start + r]] += sign * (chosen[r] - last - 1)
        last = chosen[r]
    row[members[start + n - 1]] += sign * (places - 1 - last)


@njit(cache=True)
def _add_marked(marks, places, stars, n, sign, row, members, start):
    """Add the composition whose stars (or bars) are marked."""
    if stars:
        # as many bars precede a star as places that are not stars
        seen = 0
        for w in range(marks.size):
            word = marks[w]
            while word != np.uint64(0):
                lowest = word & (~word + np.uint64(1))
                p = w * 64 + _position(lowest)
                row[members[start + p - seen]] += sign
                seen += 1
                word ^= lowest
        return
    part, last = 0, -1
    for w in range(marks.size):
        word = marks[w]
        while word != np.uint64(0):
            lowest = word & (~word + np.uint64(1))
            p = w * 64 + _position(lowest)
            count = p - last - 1
            if count:
                row[members[start + part]] += sign * count
            part += 1
            last = p
            word ^= lowest
    row[members[start + n - 1]] += sign * (places - 1 - last)


@njit(cache=True)
def _position(bit):
    """Return the index of the only bit set."""
    p = 0
    if bit >> np.uint64(32):
        p += 32
        bit >>= np.uint64(32)
    if bit >> np.uint64(16):
        p += 16
        bit >>= np.uint64(16)
    if bit >> np.uint64(8):
        p += 8
        bit >>= np.uint64(8)
    if bit >> np.uint64(4):
        p += 4
        bit >>= np.uint64(4)
    if bit >> np.uint64(2):
        p += 2
        bit >>= np.uint64(2)
    return p + np.int64(bit >> np.uint64(1))


@njit(cache=True)
def _choose_few(places, size, words, at, spare, chosen):
    """Fill `chosen` with a sorted uniform subset, by insertion."""
    for r in range(size):
        j = places - size + r
        t = below(j + 1, words, at + r, spare)
        i = r
        while i > 0 and chosen[i - 1] > t:
            i -= 1
        if i > 0 and chosen[i - 1] == t:
            chosen[r] = j
            continue
        for k in range(r, i, -1):
            chosen[k] = chosen[k - 1]
        chosen[i] = t


@njit(cache=True)
def _choose_many(places, size, words, at, spare, chosen):
    """Fill `chosen` with a sorted uniform subset, by a hash table and a radix sort."""
    bits = 1
    while (1 << bits) < 2 * size:
        bits += 1
    mask = (1 << bits) - 1
    held = np.full(1 << bits, -1, dtype=np.int64)
    for r in range(size):
        j = places - size + r
        t = below(j + 1, words, at + r, spare)
        slot = _find(held, mask, t)
        if held[slot] == t:
            t = j
            slot = _find(held, mask, t)
        held[slot] = t
        chosen[r] = t
    other = np.empty_like(chosen)
    counts = np.empty(2049, dtype=np.int64)
    shift = 0
    while (places >> shift) > 0:
        counts[:] = 0
        for r in range(size):
            counts[((chosen[r] >> shift) & 2047) + 1] += 1
        for d in range(2048):
            counts[d + 1] += counts[d]
        for r in range(size):
            d = (chosen[r] >> shift) & 2047
            other[counts[d]] = chosen[r]
            counts[d] += 1
        chosen[:] = other
        shift += 11


@njit(cache=True)
def _find(held, mask, value):
    """Return the slot of a value in a hash table, or the free slot where it belongs."""
    hashed = np.uint64(value) * np.uint64(0x9E3779B97F4A7C15)
    slot = np.int64(hashed >> np.uint64(20)) & mask
    while held[slot] >= 0 and held[slot] != value:
        slot = (slot + 1) & mask
    return slot
