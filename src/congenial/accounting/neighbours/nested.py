"""Whether all sums that a release must satisfy are nested, as `proofs/gaussian-bounds.md` needs."""

from __future__ import annotations

import numpy as np

from congenial.accounting.neighbours.counting import counting
from congenial.accounting.neighbours.whole_sums import whole_sums
from congenial.invariants.resolved import ResolvedInvariant
from congenial.types import IntArray


def nested_sums(resolved: ResolvedInvariant) -> bool:
    """Whether any two sums of a release are disjoint sets of cells, or one contains the other.

    The sums are those of a tree or a workload and of linear conditions. They are not nested if
    margins cross, or if a linear condition is not a multiple of a sum of cells.
    """
    if resolved.tree is None and resolved.sums is not None:
        return False
    rows = np.vstack((resolved.equalities[0], resolved.inequalities[0]))
    if not rows.size:
        return True
    tree = resolved.tree
    lay = counting(resolved.n, tree)
    whole = whole_sums(rows, lay.on_cells)
    if any(np.unique(row[row != 0]).size > 1 for row in whole):
        return False
    sums = np.asarray(whole != 0, dtype=np.int64)
    inside = [_nested(sums, sums @ sums.T, sums.sum(axis=1))]
    if tree is not None:
        # for each node: the number of cells below it, in each sum and in all
        counts = tree.roll_up(np.vstack((sums, np.ones_like(sums[:1]))))
        below = np.asarray(counts, dtype=np.int64)
        inside.append(_nested(sums, below[:-1], below[-1]))
    return all(inside)


def _nested(sums: IntArray, shared: IntArray, sizes: IntArray) -> bool:
    """Whether each sum and each other set are disjoint or nested."""
    whole = (shared == sizes) | (shared == sums.sum(axis=1)[:, None])
    return bool(((shared == 0) | whole).all())
