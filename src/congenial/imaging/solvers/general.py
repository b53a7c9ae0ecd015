"""The closest point under crossing sums with bounds, by general solvers, for moderate lengths."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from congenial.errors import InfeasibleError, NumericalError, UnsupportedError
from congenial.imaging.solvers.dense import gaps, least_move, sum_rows
from congenial.imaging.solvers.problem import TOLERANCE
from congenial.imaging.solvers.sparse import solve_sparse, start, with_settings
from congenial.invariants.resolved import ResolvedInvariant
from congenial.types import FloatArray

Flags = npt.NDArray[np.bool_]

_INFEASIBLE = 2
# Weights of unmeasured entries, relative to the least weight of a measured one. Large weights may
# lead to another of the equally close points, so they are tried last.
_SMALL = (1e-3, 1e-5, 1e-7, 1e-1, 1.0)
_NO_POINT = (
    "the linear conditions, the bounds and the entries published exactly cannot all hold; drop one "
    "of them."
)
_NEEDED = ("piqp", "scipy")


def check_solvers() -> None:
    """Check that the solvers for crossing sums with bounds are installed."""
    missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise UnsupportedError(
            f"crossing sums with bounds are projected with {' and '.join(missing)}, not installed "
            f"here; run pip install {' '.join(missing)}."
        )


def solve_general(resolved: ResolvedInvariant, y: FloatArray, weight: FloatArray) -> FloatArray:
    """Minimise ``sum(weight * (z - y)**2)`` under any linear conditions and bounds.

    Returns ndarray of float64, shape (n,): within the bounds; sums hold up to rounding.

    Notes
    -----
    Solved for the move ``z - y`` of the entries that are not pinned, so that rounding errors have
    the size of the noise. A proximal interior-point method (PIQP; Schwan, Jiang, Kuhn and Jones
    2023) finds the binding conditions, a least-squares solve the point, and nonnegative least
    squares the prices that prove it. PIQP gives unmeasured entries a small weight, so that they
    move least among equally close points. The least-squares solve and the proof leave that weight
    out. If this fails, a larger weight is tried, and the point is one of the closest. If no binding
    conditions are found, `solve_sparse` gives the point, proved by its own prices.
    """
    free, fixed = start(resolved, y)
    rows, values = sum_rows(resolved)
    lower, least = resolved.inequalities
    task = _Task(
        rows[:, free],
        gaps(rows, values, fixed),
        lower[:, free],
        gaps(lower, least, fixed),
        resolved.lo[free] - y[free],
        resolved.hi[free] - y[free],
        weight[free],
    )
    out = fixed.copy()
    if free.size:
        try:
            out[free] = y[free] + _closest(task)
        except NumericalError:
            return solve_sparse(resolved, y, weight)
    else:
        _check_settled(task, fixed)
    return np.where(resolved.pinned, out, np.clip(out, resolved.lo, resolved.hi))


@dataclass(frozen=True, eq=False)
class _Task:
    """Minimise ``sum(weight * move**2)`` under a move == gap, g move >= short, lo <= move <= hi."""

    a: FloatArray
    gap: FloatArray
    g: FloatArray
    short: FloatArray
    lo: FloatArray
    hi: FloatArray
    weight: FloatArray


def _closest(task: _Task) -> FloatArray:
    """Return the closest point's move, trying weights for unmeasured entries in turn."""
    measured = task.weight > 0
    if measured.all():
        return _polished(task, *_binding(task, task.weight))
    unit = float(task.weight[measured].min(initial=1.0))
    for small in _SMALL:
        try:
            return _polished(task, *_binding(task, np.where(measured, task.weight, small * unit)))
        except NumericalError:
            continue
    return _polished(task, *_binding(task, task.weight))


def _binding(task: _Task, weight: FloatArray) -> tuple[Flags, Flags, Flags]:
    """Return the lower bounds, upper bounds and inequalities that bind at the closest point."""
    import piqp

    solver = with_settings(piqp.DenseSolver())
    solver.setup(
        np.asfortranarray(np.diag(weight)),
        np.zeros(weight.size),
        np.asfortranarray(task.a),
        task.gap,
        np.asfortranarray(task.g),
        task.short,
        None,
        task.lo,
        task.hi,
    )
    if solver.solve() != piqp.Status.PIQP_SOLVED:
        _check_feasible(task)
    result = solver.result
    move = np.asarray(result.x)
    at_lo = np.asarray(result.z_bl) > move - task.lo
    at_hi = np.asarray(result.z_bu) > task.hi - move
    return at_lo, at_hi, np.asarray(result.z_l) > task.g @ move - task.short


def _polished(task: _Task, at_lo: Flags, at_hi: Flags, binding: Flags) -> FloatArray:
    """Solve with the binding conditions as equalities, and prove that the result is closest.

    The interior-point method satisfies weakly binding conditions only approximately; as equalities
    they are exact. The proof is prices on the binding conditions, with the right signs, that
    balance the gradient of the weighted distance.
    """
    from scipy.optimize import nnls

    held = np.flatnonzero(at_lo | at_hi)
    rows = np.vstack((task.a, task.g[binding], np.eye(task.lo.size)[held]))
    ends = np.where(at_lo, task.lo, task.hi)[held]
    try:
        move = least_move(rows, np.concatenate((task.gap, task.short[binding], ends)), task.weight)
    except InfeasibleError:
        raise NumericalError(
            "some binding conditions are too close together to be distinguished; give one of them, "
            "or move them further apart."
        ) from None
    size = max(1.0, float(np.abs(np.concatenate((task.gap, task.short, move))).max(initial=0.0)))
    slack = TOLERANCE * size
    outside = max(
        float(np.maximum(task.lo - move, move - task.hi).max(initial=0.0)),
        float((task.short - task.g @ move).max(initial=0.0)),
    )
    tight = np.abs(task.g @ move - task.short) <= slack
    unit = np.eye(move.size)
    prices = np.vstack(
        (
            task.a,
            -task.a,
            task.g[tight],
            unit[move - task.lo <= slack],
            -unit[task.hi - move <= slack],
        )
    ).T
    pull = task.weight * move
    off = float(nnls(prices, pull)[1]) if prices.shape[1] else float(np.linalg.norm(pull))
    off = max(off, outside)
    if not off <= slack:
        raise NumericalError(
            f"the projection misses its conditions of optimality by {off / size:.1e} of the "
            "largest number; bring the weights or the bounds closer together."
        )
    return move


def _check_feasible(task: _Task) -> None:
    """Refuse conditions that cannot all hold."""
    from scipy.optimize import linprog

    found = linprog(
        np.zeros(task.lo.size),
        A_ub=-task.g if task.short.size else None,
        b_ub=-task.short if task.short.size else None,
        A_eq=task.a if task.gap.size else None,
        b_eq=task.gap if task.gap.size else None,
        bounds=np.stack((task.lo, task.hi), axis=1),
    )
    if found.status == _INFEASIBLE:
        raise InfeasibleError(_NO_POINT)


def _check_settled(task: _Task, fixed: FloatArray) -> None:
    """Refuse a violated condition whose entries are all pinned or have one possible value."""
    slack = TOLERANCE * max(1.0, float(np.abs(fixed).max(initial=0.0)))
    if max(np.abs(task.gap).max(initial=0.0), task.short.max(initial=0.0)) > slack:
        raise InfeasibleError(_NO_POINT)
