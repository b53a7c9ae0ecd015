"""L2 projection onto general linear equalities, for vectors of moderate length."""

from __future__ import annotations

import math

import numpy as np

from congenial.errors import InfeasibleError, NumericalError, UnsupportedError
from congenial.imaging.solvers.problem import TOLERANCE
from congenial.invariants.resolved import ResolvedInvariant
from congenial.types import FloatArray

LONGEST = 2000
# Singular values below this, relative to the root of the largest weight, are rounding errors.
_ROUNDING = 1e-13


def solve_dense(resolved: ResolvedInvariant, y: FloatArray, weight: FloatArray) -> FloatArray:
    """Minimise ``sum(weight * (z - y)**2)`` under pins, tree sums and linear equalities.

    Returns ndarray of float64, shape (n,): among equally close points, the one nearest to `y`
    (entries without weight move least).
    """
    n = resolved.n
    sums, values = sum_rows(resolved)
    matrix = np.vstack((sums, np.eye(n)[resolved.pinned]))
    value = np.concatenate((values, y[resolved.pinned]))
    move = least_move(matrix, gaps(matrix, value, y), weight)
    return np.asarray(np.where(resolved.pinned, y, y + move))


def sum_rows(resolved: ResolvedInvariant) -> tuple[FloatArray, FloatArray]:
    """Return the linear equalities and the tree's sums as rows, shape (m, n), and their values."""
    n = resolved.n
    if n > LONGEST:
        raise UnsupportedError(
            f"general linear equalities on {n} entries are solved densely, which is limited to "
            f"{LONGEST}; use a tree, or sums of disjoint entries."
        )
    rows, values = resolved.equalities
    if resolved.sums is None:
        return rows, values
    totals, parts = resolved.sums.totals, resolved.sums.parts
    sums = np.zeros((totals.size, n))
    sums[np.arange(totals.size), totals] = -1.0
    sums[resolved.sums.sum_of_part, parts] = 1.0
    return np.vstack((rows, sums)), np.concatenate((values, np.zeros(totals.size)))


def gaps(rows: FloatArray, values: FloatArray, y: FloatArray) -> FloatArray:
    """Return ``values - rows @ y``, each sum rounded once, shape (m,).

    With intermediate rounding, redundant conditions on large values could disagree.
    """
    terms = rows * y
    return np.array(
        [
            math.fsum((value, *-row[row != 0]))
            for row, value in zip(terms, values.tolist(), strict=True)
        ]
    )


def least_move(matrix: FloatArray, gap: FloatArray, weight: FloatArray) -> FloatArray:
    """Minimise ``sum(weight * move**2)`` under ``matrix @ move == gap``; weights are at most 1.

    Notes
    -----
    The move is along an orthonormal basis of the null space of the equalities, so entries without
    weight need no special case.
    """
    if not gap.size:
        return np.zeros(weight.size)
    lengths = np.linalg.norm(matrix, axis=1)
    lengths[lengths == 0] = 1.0
    matrix, gap = matrix / lengths[:, None], gap / lengths
    size = max(1.0, float(np.abs(gap).max()))
    _, singular, right = np.linalg.svd(matrix)
    rank = int((singular > 1e-12 * max(matrix.shape)).sum())
    start = np.linalg.lstsq(matrix, gap, rcond=None)[0]
    if np.abs(matrix @ start - gap).max() > TOLERANCE * size:
        raise InfeasibleError(
            "the linear conditions contradict each other or the entries published exactly; drop "
            "those that do."
        )
    free = right[rank:].T
    root = np.sqrt(weight)
    move = start - free @ _least_squares(root[:, None] * free, root * start, root)
    off = max(np.abs(matrix @ move - gap).max(), np.abs(free.T @ (weight * move)).max(initial=0.0))
    if not off <= TOLERANCE * size:
        raise NumericalError(
            f"the projection misses its conditions by {off / size:.1e} of the largest number; "
            "rescale the linear conditions."
        )
    return np.asarray(move)


def _least_squares(matrix: FloatArray, value: FloatArray, root: FloatArray) -> FloatArray:
    """Return the shortest of the least-squares solutions, shape (k,), of orthonormal columns.

    The rows of the columns are multiplied by `root`, and the largest row sets the size of rounding
    errors: if all columns lie in entries without weight, the product is rounding error only.
    """
    left, singular, right = np.linalg.svd(matrix, full_matrices=False)
    kept = singular > _ROUNDING * root.max(initial=0.0)
    return np.asarray(right[kept].T @ ((left[:, kept].T @ value) / singular[kept]))
