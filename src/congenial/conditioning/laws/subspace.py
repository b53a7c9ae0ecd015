"""Independent normal noise given linear equalities: on a sum forest, densely, or sparsely.

All three represent the solutions of the equalities. Given weights (one over the variance of each
entry's noise, 0 for an unmeasured entry), they answer the same questions.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from congenial.errors import NumericalError, UnsupportedError
from congenial.invariants.resolved import ResolvedInvariant
from congenial.invariants.sparse_rows import row_matrix
from congenial.kernels.network import normal
from congenial.noise.additive import Additive
from congenial.sum_network import IMPROPER, SumForest
from congenial.sum_network.cutset import sum_system
from congenial.types import BoolArray, FloatArray

if TYPE_CHECKING:
    from congenial.conditioning.laws.sparse_subspace import FittedSparse, Sparse

# Most entries for a dense solve; beyond, scipy's sparse factorisation is used.
LONGEST_DENSE = 1000

# The solutions of linear equalities, and these with a weight for each entry.
Subspace: TypeAlias = "OnForest | Dense | Sparse"
Fitted: TypeAlias = "FittedForest | FittedDense | FittedSparse"


def solutions(mechanism: Additive, resolved: ResolvedInvariant) -> Subspace:
    """Return the solutions of the equalities on which continuous noise has a law."""
    if resolved.has_inequalities:
        raise UnsupportedError(
            f"conditioning continuous {mechanism.noise.name} noise on inequalities is not covered; "
            f"use Discrete{type(mechanism.noise).__name__}, on a fine grid if the values are "
            "not whole."
        )
    space = subspace(resolved)
    space.check(np.isfinite(mechanism.scales))
    return space


def subspace(resolved: ResolvedInvariant) -> Subspace:
    """Choose how the equalities of an invariant are solved."""
    if np.isin(resolved.equalities[0], (-1.0, 0.0, 1.0)).all():
        system = sum_system(resolved)
        if system.forest is not None:
            return OnForest(resolved.n, system.forest, system.fixed)
    if resolved.n <= LONGEST_DENSE:
        return Dense(resolved.n, resolved.pinned, row_matrix(resolved))
    try:
        import scipy.sparse  # noqa: F401
    except ImportError as cause:
        raise UnsupportedError(
            f"sums that cross on {resolved.n} entries need scipy; run pip install scipy, or "
            f"give at most {LONGEST_DENSE} entries."
        ) from cause
    from congenial.conditioning.laws.sparse_subspace import Sparse

    return Sparse(resolved)


@dataclass(frozen=True, eq=False)
class OnForest:
    """Sums without a cycle, solved in two passes."""

    n: int  # Number of entries; the forest may have further variables without noise.
    forest: SumForest
    fixed: BoolArray  # shape (n,)

    @property
    def described(self) -> str:
        """The method of solution, as text for `explain`."""
        m = self.forest.m
        return f"two passes over {m} sum{'' if m == 1 else 's'} without a cycle"

    def check(self, measured: BoolArray) -> None:
        """Refuse with UnsupportedError if the measured entries do not determine every solution.

        There is no conditional law then.
        """
        if not np.isfinite(self.fit(measured.astype(np.float64)).climbed[1]):
            raise UnsupportedError(IMPROPER)

    def fit(self, weight: FloatArray) -> FittedForest:
        """Attach weights, shape (n,), positive where measured."""
        return FittedForest(self, np.concatenate((weight, np.zeros(self.forest.n - self.n))))

    @property
    def sums(self) -> normal.SumArrays:
        """The forest as kernels take it."""
        forest = self.forest
        return normal.SumArrays(forest.above, forest.owner, forest.sign, forest.order)

    @cached_property
    def log_unit(self) -> float:
        """Log integral in lattice coordinates with all weights 1."""
        return self.fit(np.ones(self.n)).climbed[1]


@dataclass(frozen=True, eq=False)
class FittedForest:
    """Weights on a sum forest."""

    space: OnForest
    weight: FloatArray  # shape (forest.n,)

    @cached_property
    def climbed(self) -> tuple[normal.Climbed, float, int]:
        """Weights below every variable and sum, log volume and dimension."""
        n, m = self.space.forest.n, self.space.forest.m
        climbed = normal.Climbed(np.empty(n), np.empty(m), np.empty(m))
        fixed = np.append(self.space.fixed, np.zeros(n - self.space.n, dtype=np.bool_))
        return climbed, *normal.climb(self.space.sums, self.weight, fixed, climbed)

    @property
    def dimension(self) -> int:
        """Dimension of the solutions."""
        return self.climbed[2]

    @property
    def log_volume(self) -> float:
        """Log integral of exp(-sum(weight * u**2) / 2) over the solutions, Euclidean volume."""
        # lattice and Euclidean volumes differ by a constant factor, known from weights of 1
        known = 0.5 * self.dimension * float(np.log(2.0 * np.pi))
        return self.climbed[1] - self.space.log_unit + known

    def respond(self, pull: FloatArray) -> FloatArray:
        """Covariance of the normal law times each row of `pull`, shape (rows, n)."""
        forest, n = self.space.forest, self.space.n
        out = np.zeros((pull.shape[0], forest.n))
        turned = np.zeros(forest.n)
        for row, pulled in zip(out, pull, strict=True):
            turned[:n] = pulled * forest.orientation[:n]
            normal.respond(self.space.sums, self.climbed[0], turned, row)
        return np.asarray((out * forest.orientation)[:, :n])

    def variance(self, node: int) -> float:
        """Variance of one entry given the equalities."""
        return float(self.variances[node])

    @cached_property
    def variances(self) -> FloatArray:
        """Variance of every entry given the equalities."""
        out = np.zeros(self.space.forest.n)
        normal.variances(self.space.sums, self.climbed[0], out)
        return out[: self.space.n]


@dataclass(frozen=True, eq=False)
class Dense:
    """Any equalities on few entries, solved on a basis of the solutions."""

    n: int
    fixed: BoolArray  # shape (n,)
    rows: FloatArray  # shape (m, n): The solutions have ``rows @ u == 0``, and 0 where fixed.

    @property
    def described(self) -> str:
        """How the equalities are solved."""
        return f"a dense solve on a basis of {self.basis.shape[1]} dimensions"

    @cached_property
    def basis(self) -> FloatArray:
        """Orthonormal basis of the solutions, shape (n, d)."""
        rows = self.rows[:, ~self.fixed]
        lengths = np.linalg.norm(rows, axis=1)
        rows = rows[lengths > 0.0] / lengths[lengths > 0.0][:, None]
        _, singular, right = np.linalg.svd(rows)
        rank = int((singular > 1e-12 * max(rows.shape)).sum())
        out = np.zeros((self.n, right.shape[0] - rank))
        out[~self.fixed] = right[rank:].T
        return out

    def check(self, measured: BoolArray) -> None:
        """Check that a law exists; see `OnForest.check`."""
        dimension = self.basis.shape[1]
        if dimension and np.linalg.matrix_rank(self.basis[measured], tol=1e-9) < dimension:
            raise UnsupportedError(IMPROPER)

    def fit(self, weight: FloatArray) -> FittedDense:
        """Attach weights, as `OnForest.fit`.

        Raises NumericalError if they are too far apart.
        """
        try:
            factor = np.linalg.cholesky(self.basis.T @ (weight[:, None] * self.basis))
        except np.linalg.LinAlgError as cause:
            raise NumericalError(
                "the noise scales are too far apart for a dense solve; bring them closer together."
            ) from cause
        return FittedDense(self, weight, np.asarray(factor, dtype=np.float64))


@dataclass(frozen=True, eq=False)
class FittedDense:
    """Weights on a basis; `factor` is the Cholesky factor of their Gram matrix."""

    space: Dense
    weight: FloatArray
    factor: FloatArray

    @property
    def dimension(self) -> int:
        """Dimension of the solutions."""
        return int(self.space.basis.shape[1])

    @property
    def log_volume(self) -> float:
        """Log integral of the weights, Euclidean volume."""
        half = 0.5 * self.dimension * np.log(2.0 * np.pi)
        return float(half - np.log(np.diag(self.factor)).sum())

    @cached_property
    def _root(self) -> FloatArray:
        """A square root of the covariance, shape (n, d)."""
        return np.asarray(np.linalg.solve(self.factor, self.space.basis.T).T)

    def respond(self, pull: FloatArray) -> FloatArray:
        """Covariance of the normal law times each row of `pull`."""
        return np.asarray((pull @ self._root) @ self._root.T)

    def variance(self, node: int) -> float:
        """Variance of one entry given the equalities."""
        return float((self._root[node] ** 2).sum())


def project(fitted: Fitted, y: FloatArray) -> FloatArray:
    """Closest solutions to each row of `y`, shape (rows, n), in the weighted norm."""
    weight = fitted.weight[: y.shape[1]]
    return fitted.respond(np.where(weight > 0.0, y, 0.0) * weight)
