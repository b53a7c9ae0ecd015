"""A forest laid out level by level, so that every family is one stretch of memory.

Benchmark row: `imaging`.

Place 0 belongs to the first root. The children of a node are consecutive, those without children
first, and families have the order of their parents. Parents have numbers of their own, in the same
order: family `k` has the places ``first[k]`` to ``first[k + 1]``. The places from ``split[k]`` on
are the parents ``below[k]`` to ``below[k + 1]``. Parent `k` itself is at place ``at[k]``.
"""

from __future__ import annotations

import numpy as np

from congenial.kernels.numerics.compiling import njit


@njit()
def lay_out(forest, order):
    """Fill `order` (n,) with the node at each place; return first, split, below, at as rows.

    The rows have one entry for each parent and one more. The roots are a family without a parent:
    they come before ``first[0]``, and the parents among them before ``below[0]``.
    """
    starts, children, _, is_root = forest
    n = order.size
    inner = 0
    for v in range(n):
        inner += starts[v + 1] > starts[v]
    rows = np.zeros((4, inner + 1), dtype=np.int64)
    first, split, below, at = rows[0], rows[1], rows[2], rows[3]
    used, parents = 0, 0
    members = np.flatnonzero(is_root)
    for k in range(-1, inner):
        if k >= 0:
            v = order[at[k]]
            first[k], below[k] = used, parents
            members = children[starts[v] : starts[v + 1]]
        for c in members:
            if starts[c + 1] == starts[c]:
                order[used] = c
                used += 1
        if k >= 0:
            split[k] = used
        for c in members:
            if starts[c + 1] > starts[c]:
                order[used], at[parents] = c, used
                used += 1
                parents += 1
    first[inner], split[inner], below[inner], at[inner] = used, used, parents, used
    return rows


@njit()
def drop_implied(rows, leaf_lo, lo):
    """Set to -inf the lower bounds `lo` of parents that follow from the children's bounds.

    `leaf_lo` has one entry for each place. A fixed value satisfies its bound, too.
    """
    first, split, below = rows[0], rows[1], rows[2]
    reach = np.empty(lo.size)
    for k in range(lo.size - 1, -1, -1):
        total = 0.0
        for c in range(first[k], split[k]):
            total += leaf_lo[c]
        for j in range(below[k], below[k + 1]):
            total += reach[j]
        reach[k] = max(total, lo[k])
        if lo[k] <= total:
            lo[k] = -np.inf
