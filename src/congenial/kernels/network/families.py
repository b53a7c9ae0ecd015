"""Variables grouped by the sums above them, and sorted by class."""

from __future__ import annotations

import numpy as np

from congenial.kernels.numerics.compiling import njit


@njit(inner=True)
def sort(members, spare, size):
    """Sort the first `size` members, each 2^32 times a class plus a slot; `spare` is scratch."""
    least = most = members[0]
    ordered = True
    for i in range(1, size):
        ordered &= members[i - 1] <= members[i]
        least, most = min(least, members[i]), max(most, members[i])
    if ordered:
        return
    if size <= 48:
        for i in range(1, size):
            one = members[i]
            j = i
            while j > 0 and members[j - 1] > one:
                members[j] = members[j - 1]
                j -= 1
            members[j] = one
        return
    # radix sort by class, with as few digits as necessary (Knuth, volume 3, 5.2.5)
    least >>= 32
    bits = 1
    while ((most >> 32) - least) >> bits:
        bits += 1
    digits = 1 + (bits - 1) // 11
    width = (bits + digits - 1) // digits
    begin = np.empty((1 << width) + 1, dtype=np.int64)
    for digit in range(digits):
        shift = digit * width
        for b in range(begin.size):
            begin[b] = 0
        for i in range(size):
            spare[i] = members[i]
            begin[((((members[i] >> 32) - least) >> shift) & ((1 << width) - 1)) + 1] += 1
        for b in range(1, begin.size):
            begin[b] += begin[b - 1]
        for i in range(size):
            b = (((spare[i] >> 32) - least) >> shift) & ((1 << width) - 1)
            members[begin[b]] = spare[i]
            begin[b] += 1


@njit(inner=True)
def common(begin, size, member, code, slot_class):
    """Return the weight that all summands of a sum share; -1 if they differ or one is a sum.

    The summands are the members from `begin` on, or variables if there are no members.
    """
    r = code[member[begin] if member.size else begin]
    if member.size:
        for v in member[begin : begin + size]:
            if code[v] != r or slot_class[v] >= 0:
                return np.int32(-1)
        return r
    for v in range(begin, begin + size):
        if code[v] != r or slot_class[v] >= 0:
            return np.int32(-1)
    return r


@njit()
def families(above, owner, depth, start, member, bottom_up):
    """Group variables by the sum above them; return where consecutive summands begin, or -1.

    Fills `start` (m + 1,) and `member` (n,): the summands of k are at start[k] .. start[k + 1] - 1.
    Fills `bottom_up` (m,) with the sums, each directly after all sums below it, so that their
    tables are soon read and freed. If the summands are consecutive variables in the order of the
    sums, `member` stays unchanged and the summands of k begin at ``first + start[k]``.
    """
    n, m = above.size, depth.size
    for k in range(m + 1):
        start[k] = 0
    first, plain, last, run = 0, True, -1, 0
    for v in range(n):
        k = above[v]
        if k != last:
            plain &= k > last
            if last >= 0:
                start[last + 1] += run
            last, run = k, 0
        run += 1
        first += k < 0
    if last >= 0:
        start[last + 1] += run
    for k in range(m):
        start[k + 1] += start[k]
    if not plain:
        for v in range(n):
            if above[v] >= 0:
                member[start[above[v]]] = v
                start[above[v]] += 1
        for k in range(m, 0, -1):
            start[k] = start[k - 1]
        if m:
            start[0] = 0
    deepest = 0
    for k in range(m):
        deepest = max(deepest, depth[k])
    at = np.empty(deepest + 2, dtype=np.int64)
    for d in range(at.size):
        at[d] = 0
    for k in range(m):
        at[deepest - depth[k] + 1] += 1
    for d in range(deepest + 1):
        at[d + 1] += at[d]
    by_depth = np.empty(m, dtype=np.int32)
    for k in range(m):
        by_depth[at[deepest - depth[k]]] = k
        at[deepest - depth[k]] += 1
    # each sum and all sums below it take consecutive places, and the sum is the last
    size, free = np.empty(m + 1, dtype=np.int32), np.empty(m + 1, dtype=np.int32)
    for k in range(m + 1):
        size[k], free[k] = 1, 0
    for k in by_depth:
        # entry m counts the sums without a sum above; index -1 is this last entry
        size[above[owner[k]] if owner[k] >= 0 else m] += size[k]
    for k in by_depth[::-1]:
        top = above[owner[k]] if owner[k] >= 0 else m
        free[k] = free[top]
        free[top] += size[k]
        bottom_up[free[k] + size[k] - 1] = k
    return first if plain else -1
