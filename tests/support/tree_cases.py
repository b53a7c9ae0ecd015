"""Small trees with noise, pins and bounds."""

from __future__ import annotations

import numpy as np

import congenial as cg
from support.conditioning_cases import INF, Case


def make(parents, scales, leaves, *, pinned=(), lo=-INF, hi=INF, kind="laplace"):
    tree = cg.Tree.from_parents(parents)
    scales = np.broadcast_to(np.asarray(scales, dtype=float), (len(tree),)).copy()
    return Case(kind, scales, tree.roll_up(np.array(leaves)), pinned, lo, hi, tuple(parents))


BINARY = (-1, 0, 0, 1, 1)


CASES = {
    "star": make((-1, 0, 0, 0), 0.7, [3, 0, 1]),
    "star, pinned total": make((-1, 0, 0, 0), 1.5, [3, 0, 1], pinned=(0,)),
    "star, pinned total, nonnegative": make((-1, 0, 0, 0), 2.0, [9, 0, 3], pinned=(0,), lo=0),
    "star, pinned total, all children different": make(
        (-1, 0, 0, 0), [1.0, 0.5, 1.0, 2.0], [3, 0, 1], pinned=(0,)
    ),
    "star, four empty children, nonnegative": make(
        (-1, 0, 0, 0, 0, 0), 1.1, [0, 0, 2, 0, 0], pinned=(0,), lo=0
    ),
    "star, all children empty, nonnegative": make((-1, 0, 0, 0, 0), 0.8, [0, 0, 0, 0], lo=0),
    "star, four children at their most": make(
        (-1, 0, 0, 0, 0, 0), 0.9, [3, 3, 1, 3, 3], pinned=(0,), hi=[13, 3, 3, 3, 3, 3]
    ),
    "binary": make(BINARY, 0.7, [3, 1, 2]),
    "binary, middle pinned, boxed": make(BINARY, 2.0, [3, 1, 2], pinned=(1,), lo=-4, hi=15),
    "binary, leaf pinned, nonnegative": make(
        BINARY, [0.9, 0.7, 0.9, 0.7, 0.9], [1, 0, 0], pinned=(3,), lo=0
    ),
    "binary, middle not measured": make(BINARY, [0.8, INF, 0.7, 0.7, 0.7], [3, 1, 2]),
    "two roots, one pinned": make((-1, -1, 0, 0, 1), 1.0, [4, 0, 2], pinned=(0,), lo=0),
    "uneven, nonnegative": make(
        (-1, 0, 0, 2, 2, 3), [1.2, 0.7, 0.8, 0.9, 1.0, 0.6], [1, 0, 2], pinned=(0,), lo=0
    ),
}
