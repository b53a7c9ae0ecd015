"""Equal subtrees below one sum, of which one stands for all."""

from __future__ import annotations

import numpy as np

from congenial.kernels.network.families import sort
from congenial.kernels.numerics.compiling import njit

_LOW = (1 << 32) - 1


@njit(inner=True)
def _same(f, g, start, ordered, top, class_of):
    """Whether two families have owners of one weight and members of equal classes."""
    size = start[f + 1] - start[f]
    if top[f] != top[g] or start[g + 1] - start[g] != size:
        return False
    for i in range(size):
        if class_of[ordered[start[f] + i]] != class_of[ordered[start[g] + i]]:
            return False
    return True


@njit()
def classify(bottom_up, start, member, owner, top, kinds, class_of, ordered, seen):
    """Number the classes of equal subtrees; order the members of families by them.

    Family f has the members start[f] .. start[f + 1] - 1; top (m,) has the weight of each owner.
    `class_of` (n,) has the weight of each variable, one of `kinds` numbers, and that of an owner
    becomes the class of the subtree that it heads. `ordered` is filled as `member`, by class.
    `seen` is a hash table of -1, whose size is a power of two above m.
    """
    most, mask = 1, np.uint64(seen.size - 1)
    for f in range(owner.size):
        most = max(most, start[f + 1] - start[f])
    keys, spare = np.empty(most, dtype=np.int64), np.empty(most, dtype=np.int64)
    for f in bottom_up:
        begin, size = start[f], start[f + 1] - start[f]
        for i in range(size):
            v = member[begin + i]
            keys[i] = np.int64(class_of[v]) << 32 | v
        if size > 1:
            sort(keys, spare, size)
        word = np.uint64(top[f] + 1)
        for i in range(size):
            ordered[begin + i] = keys[i] & _LOW
            word = (word ^ np.uint64(keys[i] >> 32)) * np.uint64(0x9E3779B97F4A7C15)
            word ^= word >> np.uint64(29)
        at = np.int64((word ^ (word >> np.uint64(32))) & mask)
        while seen[at] >= 0 and not _same(np.int64(seen[at]), f, start, ordered, top, class_of):
            at = np.int64(np.uint64(at + 1) & mask)
        if seen[at] < 0:
            seen[at] = f
        if owner[f] >= 0:
            class_of[owner[f]] = kinds + seen[at]


@njit()
def merge(top_down, start, ordered, owner, apart, below, class_of, family_of, variable_of, times):
    """Let one of equal members of a family stand for all, and so for what is below them.

    `ordered` is from `classify`. `apart` (m,) tells families whose members are not merged, and
    `below` (n,) has the family of each owner, -1 for none. `family_of` (m,) has the numbers of
    families in no other one, and -1 for all others. It is filled with the family that stands for
    each, and `variable_of` (n,), -1 before, with the variables, -1 for members of families `apart`
    for which another stands. `times` (n,), 0 before, counts for how many members of its family a
    variable stands.
    """
    for again in range(2):
        for f in top_down:
            g = family_of[f]
            # those that stand for others come first
            if (g == f) == (again == 1):
                continue
            if g == f and owner[f] >= 0 and variable_of[owner[f]] < 0:
                variable_of[owner[f]], times[owner[f]] = owner[f], 1
            first, last = np.int64(-1), np.int64(-1)
            for i in range(start[f + 1] - start[f]):
                v = ordered[start[f] + i]
                if g != f:
                    variable_of[v] = -1 if apart[f] else variable_of[ordered[start[g] + i]]
                elif apart[f] or class_of[v] != last:
                    first, last = np.int64(v), np.int64(class_of[v])
                    variable_of[v], times[v] = v, 1
                else:
                    variable_of[v] = first
                    times[first] += 1
                if below[v] >= 0:
                    family_of[below[v]] = below[variable_of[v]]
