"""TopDown by general solvers: one quadratic programme a parent (PIQP), and one integer (HiGHS)."""

from __future__ import annotations

import numpy as np

import congenial as cg
from benchmarks.peers.quadratic import AIM
from congenial.types import FloatArray

# Remainders below it count as none.
_WHOLE = 2.0**-20


def topdown(tree: cg.Tree, y: FloatArray, *, integer: bool) -> FloatArray:
    """Return the vector that TopDown gives where the root keeps its value and all are at least 0.

    Parameters
    ----------
    tree : Tree
        Every node has a smaller index than its children.
    y : ndarray of float64, shape (n,)
    integer : bool
        Round each family by a mixed-integer programme of least change, before the next.
    """
    starts, order = tree.children
    z = np.array(y)
    for v in np.flatnonzero(~tree.is_leaf):
        members = order[starts[v] : starts[v + 1]]
        z[members] = closest(y[members], z[v])
        if integer:
            z[members] = rounded(z[members], z[v])
    return z


def closest(y: FloatArray, total: float) -> FloatArray:
    """Return the closest point to `y` of nonnegative entries that add up to `total`."""
    import piqp

    k = y.size
    solver = piqp.DenseSolver()
    solver.settings.eps_abs, solver.settings.eps_rel = AIM, 0.0
    solver.settings.eps_duality_gap_abs, solver.settings.eps_duality_gap_rel = AIM, AIM
    one = np.ones((1, k), order="F")
    solver.setup(np.eye(k), -y, one, np.array([total]), None, None, None, np.zeros(k), None)
    solver.solve()
    return np.asarray(solver.result.x)


def rounded(z: FloatArray, total: float) -> FloatArray:
    """Return the integers next to `z` of sum `total` with the least summed change."""
    import highspy

    floor = np.floor(z + 0.5 * _WHOLE)
    part = np.maximum(z - floor, 0.0)
    k = z.size
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = k, 1
    lp.col_cost_ = 1.0 - 2.0 * part
    lp.col_lower_, lp.col_upper_ = np.zeros(k), (part > _WHOLE).astype(np.float64)
    lp.row_lower_ = lp.row_upper_ = np.array([total - floor.sum()])
    lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    lp.a_matrix_.start_ = np.arange(k + 1)
    lp.a_matrix_.index_ = np.zeros(k, dtype=np.int64)
    lp.a_matrix_.value_ = np.ones(k)
    lp.integrality_ = [highspy.HighsVarType.kInteger] * k
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    solver.setOptionValue("threads", 1)
    solver.passModel(lp)
    solver.run()
    return np.asarray(floor + np.rint(solver.getSolution().col_value))
