"""Ranges of sums, from the bounds of their terms."""

from __future__ import annotations

import numpy as np

from congenial.kernels.numerics.compiling import njit


@njit()
def add_up_least(parents, bottom_up, is_leaf, lo, below):
    """Fill `below` (n,), zeros on entry, with the least sum of the children of every node.

    The least value of a node is its own bound or, if that is larger, the least sum of its children.
    Nodes are visited in the order of `bottom_up`, or from the last to the first if it is empty.
    """
    n = parents.size
    for j in range(n):
        i = bottom_up[j] if bottom_up.size else n - 1 - j
        if parents[i] >= 0:
            least = lo[i]
            if not is_leaf[i] and below[i] > least:
                least = below[i]
            below[parents[i]] += least


@njit()
def feasible(above, owner, sign, path, code, lo, hi):
    """Whether integers within bounds satisfy every sum of a forest.

    This is exact, because the possible values of each sum are consecutive integers.
    """
    n, m = above.size, owner.size
    least, most = np.zeros(m), np.zeros(m)  # of every sum
    low, high = np.full(m, -np.inf), np.full(m, np.inf)  # of the sums that stand at an owner
    inner = np.full(n, -1, dtype=np.int32)
    for k in range(m):
        if owner[k] >= 0:
            inner[owner[k]] = k
    for v in range(n):
        if inner[v] < 0:
            if lo[code[v]] > hi[code[v]]:
                return False
            if above[v] >= 0:
                least[above[v]] += lo[code[v]]
                most[above[v]] += hi[code[v]]
    for i in path:
        if i >= n:
            k = i - n
            if owner[k] < 0:
                if least[k] > 0.0 or most[k] < 0.0:
                    return False
                continue
            at = inner[owner[k]]  # all sums of one owner share the ranges of one of them
            down, up = (least[k], most[k]) if sign[k] > 0 else (-most[k], -least[k])
            low[at], high[at] = max(low[at], down), min(high[at], up)
            continue
        at = inner[i]
        down, up = max(low[at], lo[code[i]]), min(high[at], hi[code[i]])
        if down > up:
            return False
        if above[i] >= 0:
            least[above[i]] += down
            most[above[i]] += up
    return True
