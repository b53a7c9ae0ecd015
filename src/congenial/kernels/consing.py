"""Equal things get equal numbers: hashing of pairs, and the pairing of the members of groups."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True)
def number_pairs(a, b, codes, first):
    """Number the distinct pairs (a[i], b[i]) by first appearance; return how many there are.

    Fills `codes` (n,) with each pair's number and `first` (n,) with where each number appears
    first.
    """
    n = a.size
    changes = 1
    for i in range(1, n):
        changes += int(a[i] != a[i - 1] or b[i] != b[i - 1])
    bits = 4
    while (1 << bits) < 2 * changes:
        bits += 1
    mask = (1 << bits) - 1
    held = np.full(1 << bits, -1, dtype=np.int64)
    count = 0
    for i in range(n):
        if i > 0 and a[i] == a[i - 1] and b[i] == b[i - 1]:
            codes[i] = codes[i - 1]
            continue
        x = np.uint64(a[i]) * np.uint64(0x9E3779B97F4A7C15)
        x ^= x >> np.uint64(32)
        x = (x + np.uint64(b[i])) * np.uint64(0xBF58476D1CE4E5B9)
        x ^= x >> np.uint64(29)
        slot = np.int64(x & np.uint64(mask))
        while held[slot] >= 0:
            j = first[held[slot]]
            if a[j] == a[i] and b[j] == b[i]:
                break
            slot = (slot + 1) & mask
        if held[slot] < 0:
            held[slot] = count
            first[count] = i
            count += 1
        codes[i] = held[slot]
    return count


@njit(cache=True)
def sort_groups(start, cls, slot):
    """Sort the members start[g] .. start[g + 1] - 1 of each group by class, stably."""
    for g in range(start.size - 1):
        begin, stop = start[g], start[g + 1]
        ordered = True
        for i in range(begin + 1, stop):
            ordered &= cls[i - 1] <= cls[i]
        if ordered:
            continue
        if stop - begin > 64:
            order = np.argsort(cls[begin:stop], kind="mergesort")
            cls[begin:stop] = cls[begin:stop][order]
            slot[begin:stop] = slot[begin:stop][order]
            continue
        for i in range(begin + 1, stop):
            c, s = cls[i], slot[i]
            j = i
            while j > begin and cls[j - 1] > c:
                cls[j], slot[j] = cls[j - 1], slot[j - 1]
                j -= 1
            cls[j], slot[j] = c, s


@njit(cache=True)
def pair_up(start, cls, slot, fresh, pairs, new_start, new_cls, new_slot):
    """Pair the members of each group; return the number of pairs.

    Row p of `pairs` (., 5) holds the classes and the slots of the two members of pair p, whose sum
    is slot ``fresh + p``, and the place in `new_cls` where the pair's class belongs; a member left
    over moves on unchanged.
    """
    p = place = 0
    for g in range(start.size - 1):
        new_start[g] = place
        i = start[g]
        while i + 1 < start[g + 1]:
            pairs[p, 0], pairs[p, 1] = cls[i], cls[i + 1]
            pairs[p, 2], pairs[p, 3] = slot[i], slot[i + 1]
            pairs[p, 4] = place
            new_slot[place] = fresh + p
            p += 1
            place += 1
            i += 2
        if i < start[g + 1]:
            new_cls[place], new_slot[place] = cls[i], slot[i]
            place += 1
    new_start[start.size - 1] = place
    return p
