"""The equalities of an invariant as sparse rows (indices, signs)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from congenial.errors import UnsupportedError
from congenial.invariants.resolved import ResolvedInvariant
from congenial.types import FloatArray, IntArray


def sparse_rows(matrix: npt.NDArray[np.float64]) -> list[tuple[IntArray, IntArray]]:
    """Return the rows of a dense matrix as (indices, signs), rows of zeros left out."""
    if not np.isin(matrix, (-1.0, 0.0, 1.0)).all():
        raise UnsupportedError(
            "a linear condition has an entry other than -1, 0 and 1; exact sampling covers sums "
            "and differences only."
        )
    rows = []
    for row in matrix:
        indices = np.flatnonzero(row)
        if indices.size:
            rows.append((indices.astype(np.int64), row[indices].astype(np.int64)))
    return rows


def structure_rows(resolved: ResolvedInvariant) -> list[tuple[IntArray, IntArray]]:
    """Return the sums of the tree or the workload as rows, each a total less its parts."""
    sums = resolved.sums
    if sums is None:
        return []
    rows = []
    for total, start, stop in zip(sums.totals, sums.starts[:-1], sums.starts[1:], strict=True):
        signs = np.full(1 + stop - start, -1, dtype=np.int64)
        signs[0] = 1
        rows.append((np.append(total, sums.parts[start:stop]), signs))
    return rows


def row_matrix(resolved: ResolvedInvariant) -> FloatArray:
    """Return the equalities and then the sums as the rows of a matrix, shape (m, n)."""
    listed = structure_rows(resolved)
    sums = np.zeros((len(listed), resolved.n))
    for row, (indices, signs) in zip(sums, listed, strict=True):
        row[indices] = signs
    return np.vstack((resolved.equalities[0], sums))


def invariant_rows(resolved: ResolvedInvariant) -> list[tuple[IntArray, IntArray]]:
    """Return every equality of an invariant as a sparse row (indices, signs)."""
    return sparse_rows(resolved.equalities[0]) + structure_rows(resolved)


def sums_of_others(ends: FloatArray) -> FloatArray:
    """Return the sum of all entries except each one in turn; infinite entries all have one sign."""
    infinite = np.isinf(ends)
    whole = ends[~infinite].sum()
    left = infinite.sum() - infinite
    sign = ends[infinite][0] if infinite.any() else 0.0
    return np.where(left > 0, sign, whole - np.where(infinite, 0.0, ends))
