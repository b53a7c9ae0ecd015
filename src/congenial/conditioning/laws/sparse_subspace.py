"""Normal noise given many linear equalities that cross, by a sparse factorisation (scipy)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.sparse.linalg import splu

from congenial.errors import NumericalError, UnsupportedError
from congenial.invariants.resolved import ResolvedInvariant
from congenial.invariants.sparse_rows import structure_rows
from congenial.types import FloatArray

_TOLERANCE = 1e-9
# Relative size of a pivot below which the conditions count as singular.
_DISTINCT = 1e-10
# Squared distance of a row to the span of the others below which it follows from them.
_FOLLOWS = 1e-9
_SHIFT = 1e-12
# Most products of two rows in the search for rows that follow from others.
_MOST_PRODUCTS = 1 << 25
_SINGULAR = (
    "the linear conditions do not determine the unmeasured queries, or nearly follow from one "
    "another; measure more queries, or drop conditions that follow from others."
)


@dataclass(frozen=True, eq=False)
class Sparse:
    """Any equalities on many entries, by a sparse factorisation of the optimality conditions."""

    resolved: ResolvedInvariant

    @property
    def described(self) -> str:
        """The method of solution, as text for `explain`."""
        return f"a sparse factorisation of {self.rows.shape[0]} sums on {self.resolved.n} entries"

    @cached_property
    def free(self) -> npt.NDArray[np.int64]:
        """Entries that are not published exactly."""
        return np.flatnonzero(~self.resolved.pinned)

    @cached_property
    def rows(self) -> Any:
        """Independent rows over the free entries, of length 1, a scipy sparse matrix."""
        parts = [sparse.csr_array(self.resolved.equalities[0])]
        if listed := structure_rows(self.resolved):
            ends = np.cumsum([0] + [i.size for i, _ in listed])
            columns, signs = (np.concatenate(part) for part in zip(*listed, strict=True))
            shape = len(listed), self.resolved.n
            parts.append(sparse.csr_array((signs.astype(np.float64), columns, ends), shape=shape))
        whole = sparse.vstack(parts).tocsr()[:, self.free]
        lengths = np.sqrt(whole.power(2).sum(axis=1))
        kept = np.flatnonzero(lengths)
        return _independent((sparse.diags_array(1.0 / lengths[kept]) @ whole[kept]).tocsr())

    @cached_property
    def log_unit(self) -> float:
        """Log determinant of the optimality conditions with all weights 1."""
        return _log_det(self.factorised(np.ones(self.free.size)))

    def check(self, measured: npt.NDArray[np.bool_]) -> None:
        """Check that a law exists and no row nearly follows from others; see `OnForest.check`."""
        for weight in (np.ones(self.free.size), measured[self.free].astype(np.float64)):
            pivots = np.abs(self.factorised(weight).U.diagonal())
            if pivots.size and not pivots.min() > _DISTINCT * pivots.max():
                raise UnsupportedError(_SINGULAR)

    def factorised(self, weight: FloatArray) -> Any:
        """Factorise ``[[W, A'], [A, 0]]``; raises UnsupportedError if it is singular."""
        whole = sparse.block_array([[sparse.diags_array(weight), self.rows.T], [self.rows, None]])
        try:
            return splu(whole.tocsc(), options={"Equil": False})
        except RuntimeError as cause:  # exactly singular
            raise UnsupportedError(_SINGULAR) from cause

    def fit(self, weight: FloatArray) -> FittedSparse:
        """Attach weights; see `OnForest.fit`."""
        return FittedSparse(self, weight)


@dataclass(frozen=True, eq=False)
class FittedSparse:
    """Weights with the factorised optimality conditions ``[[W, A'], [A, 0]]``."""

    space: Sparse
    weight: FloatArray

    @cached_property
    def factor(self) -> Any:
        """The factorisation, relative to the largest weight."""
        return self.space.factorised(self.weight[self.space.free] / self._unit)

    @property
    def dimension(self) -> int:
        """Dimension of the solutions."""
        return int(self.space.free.size - self.space.rows.shape[0])

    @property
    def log_volume(self) -> float:
        """Log integral of the weights, Euclidean volume."""
        # |det| is the determinant of the weights on an orthonormal basis, times det(A A')
        ratio = _log_det(self.factor) - self.space.log_unit + self.dimension * np.log(self._unit)
        return float(0.5 * (self.dimension * np.log(2.0 * np.pi) - ratio))

    def respond(self, pull: FloatArray) -> FloatArray:
        """Covariance of the normal law times each row of `pull`."""
        free = self.space.free
        out = np.zeros(pull.shape)
        for row, pulled in zip(out, pull[:, free], strict=True):
            row[free] = self._solve(pulled / self._unit)
        return out

    def variance(self, node: int) -> float:
        """Variance of one entry given the equalities."""
        at = np.searchsorted(self.space.free, node)
        if at == self.space.free.size or self.space.free[at] != node:
            return 0.0
        one = np.zeros(self.space.free.size)
        one[at] = 1.0
        # the variance of a determined entry may come out below zero by rounding
        return max(0.0, float(self._solve(one)[at])) / self._unit

    @cached_property
    def _unit(self) -> float:
        return float(self.weight.max(initial=0.0)) or 1.0

    def _solve(self, pull: FloatArray) -> FloatArray:
        rows = self.space.rows
        n = pull.size
        solved = self.factor.solve(np.concatenate((pull, np.zeros(rows.shape[0]))))
        off = float(np.abs(rows @ solved[:n]).max(initial=0.0))
        if not off <= _TOLERANCE * max(1.0, float(np.abs(solved[:n]).max(initial=0.0))):
            raise NumericalError(
                f"the sparse solve misses the linear conditions by {off:.1e}; bring the noise "
                "scales closer together."
            )
        return np.asarray(solved[:n])


def _log_det(factor: Any) -> float:
    return float(np.log(np.abs(factor.U.diagonal())).sum())


def _independent(rows: Any) -> Any:
    """Leave out rows that follow from others; those left span the same."""
    core = _core(rows)
    products = rows[core] @ rows[core].T
    if not core.size or products.nnz > _MOST_PRODUCTS:
        return rows
    # a pivot is the squared distance of a row to the span of the earlier rows, in any order; the
    # shift lets the factorisation continue after a pivot of 0
    shifted = (products + _SHIFT * sparse.eye_array(core.size)).tocsc()
    options = {"SymmetricMode": True, "Equil": False}
    factor = splu(shifted, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options=options)
    if not np.array_equal(factor.perm_r, factor.perm_c):
        return rows  # a pivot off the diagonal belongs to no row
    pivots = np.abs(factor.U.diagonal())[factor.perm_c]
    left = np.ones(rows.shape[0], dtype=np.bool_)
    left[core[pivots <= _FOLLOWS]] = False
    return rows[left]


def _core(rows: Any) -> npt.NDArray[np.int64]:
    """The rows that remain after repeatedly removing rows with an entry of their own."""
    present = (rows != 0).astype(np.int64)
    left = np.arange(rows.shape[0])
    while left.size:
        alone = np.asarray(present[left].sum(axis=0)).ravel() == 1
        own = present[left] @ alone.astype(np.int64) > 0
        if not own.any():
            break
        left = left[~own]
    return left
