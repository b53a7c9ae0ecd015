"""Families of leaves by the distances of their leaves from their bounds, and which are equal."""

from __future__ import annotations

import numpy as np

from congenial.kernels.numerics.compiling import njit

# Most entries that are sorted by insertion.
_FEW = 48


@njit()
def find_leaves(start, member, owned, inverse, gap, of_leaves, rate, reach):
    """Find the families of leaves alone whose noise is Laplace of one scale.

    Family f has the members start[f] .. start[f + 1] - 1, each with an inverse scale, 0 for other
    noise, a gap, and whether it owns a family. Fills `of_leaves`, and `rate` and `reach` with the
    least inverse scale and the largest gap of each family, shapes (families,).
    """
    for f in range(of_leaves.size):
        low, high, farthest, alone = np.inf, 0.0, np.int64(0), True
        for v in member[start[f] : start[f + 1]]:
            low, high = min(low, inverse[v]), max(high, inverse[v])
            farthest = max(farthest, gap[v])
            alone &= not owned[v]
        of_leaves[f] = alone and low == high and low > 0.0
        rate[f], reach[f] = low, farthest


@njit()
def list_gaps(start, member, of_leaves, gap, least, begins, base, gaps, counts):
    """List the distinct gaps of the leaves of each family in order; return how many there are.

    Family f has the members start[f] .. start[f + 1] - 1, each with a gap and a lower bound, its
    least value. Families that are not of leaves get an empty list. Fills `begins` (families + 1,),
    `base` (families,) with the least sums, and the begin of `gaps` and of `counts`, which have room
    for all leaves: a gap, and how many leaves of the family have it.
    """
    used = 0
    for f in range(of_leaves.size):
        begins[f], base[f] = used, 0
        size = start[f + 1] - start[f]
        if not of_leaves[f] or size == 0:
            continue
        own = gaps[used : used + size]
        for i in range(size):
            own[i] = gap[member[start[f] + i]]
            base[f] += least[member[start[f] + i]]
        if size <= _FEW:
            for i in range(1, size):
                one, j = own[i], i
                while j > 0 and own[j - 1] > one:
                    own[j] = own[j - 1]
                    j -= 1
                own[j] = one
        else:
            own.sort()
        last = 0
        counts[used] = 1
        for i in range(1, size):
            if own[i] != own[last]:
                last += 1
                own[last] = own[i]
                counts[used + last] = 0
            counts[used + last] += 1
        used += last + 1
    begins[of_leaves.size] = used
    return used


@njit(inner=True)
def _mixed(word):
    word *= np.uint64(0x9E3779B97F4A7C15)
    word ^= word >> np.uint64(31)
    word *= np.uint64(0xBF58476D1CE4E5B9)
    return word ^ (word >> np.uint64(31))


@njit(inner=True)
def _same(i, j, number, keys, begins, lists):
    """Whether two families have equal keys and equal lists."""
    for k in range(keys.shape[1]):
        if keys[i, k] != keys[j, k]:
            return False
    a, b = begins[number[i]], begins[number[j]]
    size = begins[number[i] + 1] - a
    if begins[number[j] + 1] - b != size:
        return False
    for one in lists:
        for k in range(size):
            if one[a + k] != one[b + k]:
                return False
    return True


@njit()
def first_equal(number, keys, begins, lists, seen, out):
    """Fill out[f], for each f in `number`, with the first of these families that equals f.

    Families are equal where rows of `keys` (number.size, .) are, and the parts of both `lists` that
    begin at `begins`. `seen` is a hash table of -1, whose size is a power of two above number.size.
    Families with equal hashes are compared.
    """
    mask = np.uint64(seen.size - 1)
    for i in range(number.size):
        f = number[i]
        word = np.uint64(0)
        for k in range(keys.shape[1]):
            word = _mixed(word ^ np.uint64(keys[i, k]))
        for one in lists:
            for k in range(begins[f], begins[f + 1]):
                word = _mixed(word ^ np.uint64(one[k]))
        at = np.int64(word & mask)
        while seen[at] >= 0 and not _same(seen[at], i, number, keys, begins, lists):
            at = np.int64(np.uint64(at + 1) & mask)
        if seen[at] < 0:
            seen[at] = i
        out[f] = number[seen[at]]
