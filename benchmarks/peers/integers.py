"""Whole-tree rounding of least summed change by a mixed-integer solver (HiGHS).

Each value is the integer below it plus a part of 0 or 1 at the price that L1 gives it, plus more or
fewer at a price of 1 each, so that no row is spent on sizes.
"""

from __future__ import annotations

import numpy as np

import congenial as cg
from congenial.types import FloatArray

_WHOLE = 2.0**-20


def rounded(tree: cg.Tree, z: FloatArray) -> FloatArray:
    """Return integers of least summed change, all at least 0, that keep the root."""
    import highspy
    from scipy import sparse

    n, inner = len(tree), np.flatnonzero(~tree.is_leaf)
    child = np.flatnonzero(tree.parents >= 0)
    row = np.empty(n, dtype=np.int64)
    row[inner] = np.arange(inner.size)
    entries = np.concatenate((np.ones(child.size), -np.ones(inner.size)))
    at = np.concatenate((row[tree.parents[child]], row[inner]))
    columns = np.concatenate((child, inner))
    sums = sparse.csc_matrix((entries, (at, columns)), shape=(inner.size, n))
    floor = np.floor(z + 0.5 * _WHOLE)
    part = np.maximum(z - floor, 0.0)
    matrix = sparse.hstack((sums, sums, -sums), format="csc")
    more, fewer = np.full(n, np.inf), np.array(floor)
    more[tree.roots] = fewer[tree.roots] = 0.0
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = 3 * n, inner.size
    lp.col_cost_ = np.concatenate((1.0 - 2.0 * part, np.ones(2 * n)))
    lp.col_lower_ = np.zeros(3 * n)
    lp.col_upper_ = np.concatenate(((part > _WHOLE).astype(np.float64), more, fewer))
    lp.row_lower_ = lp.row_upper_ = -sums @ floor
    lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    lp.a_matrix_.start_, lp.a_matrix_.index_ = matrix.indptr, matrix.indices
    lp.a_matrix_.value_ = matrix.data
    lp.integrality_ = [highspy.HighsVarType.kInteger] * (3 * n)
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    solver.setOptionValue("threads", 1)
    solver.passModel(lp)
    solver.run()
    found = np.rint(solver.getSolution().col_value)
    return np.asarray(floor + found[:n] + found[n : 2 * n] - found[2 * n :])
