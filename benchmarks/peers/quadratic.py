"""General solvers of quadratic programmes (PIQP, OSQP, Clarabel) on the closest point of a tree.

All nodes are variables, one row says that a parent is the sum of its children, and leaves are at
least 0; the root is fixed by its row. Each is asked for residuals of 1e-9.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

import congenial as cg
from congenial.types import FloatArray

AIM = 1e-9
# OSQP takes thousands of cheap steps to that; Clarabel some ten dear ones.
_OSQP_STEPS = 4000
_INFINITE = 1e20


@dataclass(frozen=True, eq=False)
class Problem:
    """Minimise ``|z - y|**2 / 2`` under ``rows @ z == values`` and ``z >= 0`` at the leaves."""

    rows: object
    values: FloatArray
    leaves: npt.NDArray[np.int64]
    y: FloatArray


def problem(tree: cg.Tree, y: FloatArray) -> Problem:
    """Return the problem of a tree whose only root keeps its value."""
    from scipy import sparse

    inner = np.flatnonzero(~tree.is_leaf)
    child = np.flatnonzero(tree.parents >= 0)
    row = np.empty(len(tree), dtype=np.int64)
    row[inner] = np.arange(inner.size)
    entries = np.concatenate((np.ones(child.size), -np.ones(inner.size), [1.0]))
    at = np.concatenate((row[tree.parents[child]], row[inner], [inner.size]))
    columns = np.concatenate((child, inner, tree.roots))
    rows = sparse.csc_matrix((entries, (at, columns)), shape=(inner.size + 1, len(tree)))
    values = np.zeros(inner.size + 1)
    values[-1] = y[tree.roots[0]]
    return Problem(rows, values, tree.leaves, y)


def piqp(task: Problem) -> tuple[Callable[[], FloatArray], Callable[[], FloatArray]]:
    """Return a function that sets PIQP up and solves, and one that solves for another vector."""
    import piqp as solvers
    from scipy import sparse

    n = task.y.size
    square = sparse.eye(n, format="csc")
    low = np.full(n, -np.inf)
    low[task.leaves] = 0.0
    kept: list[object] = []

    def once() -> FloatArray:
        solver = solvers.SparseSolver()
        solver.settings.eps_abs, solver.settings.eps_rel = AIM, 0.0
        solver.settings.eps_duality_gap_abs, solver.settings.eps_duality_gap_rel = AIM, AIM
        solver.setup(square, -task.y, task.rows, task.values, None, None, None, low, None)
        solver.solve()
        kept[:] = [solver]
        return np.asarray(solver.result.x)

    def again() -> FloatArray:
        solver = kept[0]
        solver.update(c=-task.y, b=task.values)  # type: ignore[attr-defined]
        solver.solve()  # type: ignore[attr-defined]
        return np.asarray(solver.result.x)  # type: ignore[attr-defined]

    return once, again


def osqp(task: Problem) -> Callable[[], FloatArray]:
    """Return a function that sets OSQP up and solves."""
    import osqp as solvers
    from scipy import sparse

    n = task.y.size
    square = sparse.eye(n, format="csc")
    both = sparse.vstack((task.rows, sparse.eye(n, format="csr")[task.leaves]), format="csc")
    low = np.concatenate((task.values, np.zeros(task.leaves.size)))
    high = np.concatenate((task.values, np.full(task.leaves.size, np.inf)))

    def once() -> FloatArray:
        solver = solvers.OSQP()
        solver.setup(
            square,
            -task.y,
            both,
            low,
            high,
            verbose=False,
            eps_abs=AIM,
            eps_rel=0.0,
            max_iter=_OSQP_STEPS,
        )
        return np.asarray(solver.solve().x)

    return once


def clarabel(task: Problem) -> Callable[[], FloatArray]:
    """Return a function that sets Clarabel up and solves."""
    import clarabel as solvers
    from scipy import sparse

    n = task.y.size
    square = sparse.eye(n, format="csc")
    both = sparse.vstack((task.rows, -sparse.eye(n, format="csr")[task.leaves]), format="csc")
    values = np.concatenate((task.values, np.zeros(task.leaves.size)))
    cones = [
        solvers.ZeroConeT(task.values.size),
        solvers.NonnegativeConeT(task.leaves.size),
    ]

    def once() -> FloatArray:
        settings = solvers.DefaultSettings()
        settings.verbose = False
        settings.max_threads = 1
        settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = AIM
        solver = solvers.DefaultSolver(square, -task.y, both, values, cones, settings)
        return np.asarray(solver.solve().x)

    return once
