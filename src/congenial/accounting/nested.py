"""Whether all sums that a release must satisfy are nested, as `proofs/gaussian-bounds.md` needs."""

from __future__ import annotations

import numpy as np

from congenial.accounting.whole_sums import whole_sums
from congenial.invariants import Requirements


def nested_sums(need: Requirements) -> bool:
    """Whether two sums of a release share no cell, or one holds the other.

    The sums are those of a tree or a workload and of linear conditions.

    Parameters
    ----------
    need : Requirements
        Its linear equalities and inequalities count; bounds of entries do not matter.

    Returns
    -------
    bool
        False where margins of a workload cross, and where a linear condition is no multiple of a
        sum of cells.

    Raises
    ------
    PrivacyError
        If rounding leaves it in doubt what a linear condition with decimals adds up.
    """
    if need.tree is None and need.sums is not None:
        return False
    rows = np.vstack((need.equalities[0], need.inequalities[0]))
    if not rows.size:
        return True
    tree = need.tree
    cells = np.arange(need.n) if tree is None else tree.leaves
    counted = np.eye(cells.size, dtype=np.int64)
    if tree is not None:
        counted = np.asarray(tree.roll_up(counted))
    whole = whole_sums(rows, counted.T.astype(np.float64))
    sums = np.array([[value != 0 for value in row] for row in whole])
    if any(len({value for value in row if value != 0}) > 1 for row in whole):
        return False
    # cells that each two of all sums share, shape (linear conditions, all)
    every = np.vstack((sums, counted.T != 0)).astype(np.int64)
    shared = sums.astype(np.int64) @ every.T
    alone = shared == 0
    inside = (shared == every.sum(axis=1)) | (shared == sums.sum(axis=1)[:, None])
    return bool((alone | inside).all())
