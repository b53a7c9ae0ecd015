"""The additive mechanism: confidential queries plus independent noise."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from congenial.domain.tree import Tree
from congenial.domain.workload import Workload
from congenial.errors import ArgumentError
from congenial.noise.law import NoiseLaw, on_grid, per_entry
from congenial.randomness import Randomness, resolve
from congenial.types import FloatArray, Values
from congenial.wording import show

# Largest number of draws in one call; more would not fit in memory.
_MOST_DRAWS = 2**31 - 1


@dataclass(frozen=True, eq=False)
class Additive:
    """M(D) = f(D) + U with independent entries U (Gong and Meng, equation 1.2).

    Parameters
    ----------
    noise : NoiseLaw
        `DiscreteLaplace`, `DiscreteGaussian`, or for studies `Laplace`, `Gaussian`.
    queries : Tree, Workload or int
        A tree, whose nodes are the queries; a workload, whose queries are margins of tables; or
        the number of queries of a plain vector.
    per_record : float
        Contribution of one record to each query that counts it: 1, except after `in_units`, whose
        unit is a step of the noise's grid.
    """

    noise: NoiseLaw
    queries: Tree | Workload | int
    per_record: float = field(default=1.0, kw_only=True, repr=False)

    def __post_init__(self) -> None:
        """Check the number of queries and of scales."""
        queries = self.queries
        if isinstance(queries, bool) or not isinstance(queries, Tree | Workload | int | np.integer):
            raise ArgumentError(
                f"queries is a {type(queries).__name__}; give a Tree, a Workload or a number of "
                "queries."
            )
        if self.n < 1:
            raise ArgumentError(f"queries is {queries}; give at least one query.")
        per_entry(self.noise.spread, self.n)
        grid = self.granularity
        steps = self.per_record / grid if grid > 0 else 0.5  # real-number noise has no grid
        record = np.isfinite(self.per_record) and self.per_record > 0
        if not (record and (steps < 1 or steps == np.rint(steps))):
            raise ArgumentError(
                f"per_record is {self.per_record!r}; give a positive multiple of the noise's "
                f"granularity, {grid:g}."
            )

    @property
    def domain(self) -> Tree | Workload | None:
        """The tree or the workload of the queries, None for a plain vector."""
        return self.queries if isinstance(self.queries, Tree | Workload) else None

    @property
    def workload(self) -> Workload | None:
        """The workload of the queries, None for a tree or a plain vector."""
        return self.queries if isinstance(self.queries, Workload) else None

    @property
    def tree(self) -> Tree | None:
        """The tree of the queries, None for a plain vector and where margins cross."""
        if isinstance(self.queries, Workload):
            return self.queries.tree
        return self.queries if isinstance(self.queries, Tree) else None

    @property
    def counted(self) -> Tree | Workload | None:
        """The tree or else the workload, which says in which queries a record counts."""
        return self.tree or self.workload

    @property
    def n(self) -> int:
        """Number of queries."""
        return len(self.queries) if isinstance(self.queries, Tree | Workload) else int(self.queries)

    @property
    def scales(self) -> FloatArray:
        """Scale of each query's noise, shape (n,); inf where it is not measured."""
        return per_entry(self.noise.spread, self.n)

    @property
    def granularity(self) -> float:
        """Spacing of the grid of the noise; 1 for integers, 0 for continuous noise."""
        return self.noise.granularity

    def in_units(self) -> Additive:
        """Return the mechanism that counts in steps of its own grid, with integer noise."""
        if self.granularity in (0.0, 1.0):
            return self
        return Additive(
            self.noise.in_units(), self.queries, per_record=self.per_record / self.granularity
        )

    def counts(self, x: npt.ArrayLike) -> Values:
        """Return `x` as a vector over the queries.

        Raises
        ------
        ArgumentError
            If its shape is not (n,), an entry is not finite or too large for exact sums, or the
            noise lies on a grid and an entry does not.

        Notes
        -----
        Data off the grid are refused, not rounded, because rounding could change the effect of one
        record.
        """
        if np.ma.is_masked(x):
            raise ArgumentError("x has masked entries; give every count.")
        try:
            array = np.asarray(x)
        except ValueError:  # rows of different lengths
            array = np.empty(0, dtype=object)
        if array.shape != (self.n,) or array.dtype.kind not in "iuf":
            hint = "" if self.domain is None else f"; {rolled_up(self.workload)}"
            raise ArgumentError(
                f"x has shape {array.shape} and dtype {array.dtype}; give {self.n} numbers, "
                f"one for each query{hint}."
            )
        real = array.dtype.kind == "f"
        if real and not np.isfinite(array).all():
            raise ArgumentError("x has an entry that is not finite; give finite counts.")
        if not self.noise.discrete:
            return array.astype(np.float64)
        whole = self.granularity == 1.0
        if real or not whole:
            self._check_grid(array)
        largest = 2**53 if whole else 2.0**52 * self.granularity  # the noise takes the other half
        # Python's integers tell 2^53 + 1 from 2^53; doubles do not
        exact = int if whole else float
        if max(exact(array.max()), -exact(array.min())) > largest:
            raise ArgumentError(
                f"x has an entry beyond 2^{53 if whole else 52} steps of the grid in size; "
                "give smaller counts."
            )
        return array.astype(np.int64 if whole else np.float64, copy=False)

    def _check_grid(self, array: npt.NDArray[np.generic]) -> None:
        if on_grid(array, self.granularity).all():
            return
        if self.granularity == 1.0:
            raise ArgumentError(
                "x has an entry that is not an integer; discrete noise needs counts."
            )
        raise ArgumentError(
            f"x has an entry that is no multiple of the granularity {self.granularity:g}; give "
            "values on the grid, and count in what rounding adds to a record's change."
        )

    def sample(
        self, x: npt.ArrayLike, size: int | None = None, rng: Randomness | None = None
    ) -> Values:
        """Draw noisy measurements.

        Parameters
        ----------
        x : array_like, shape (n,)
            Confidential values of the queries.
        size : int, optional
            Number of draws; by default, one vector is drawn and has no axis of draws.
        rng : Randomness, optional
            `secure()` by default.

        Returns
        -------
        ndarray, shape (n,) or (size, n)
            int64 for integer noise, float64 otherwise; exactly on the noise's grid, if it has one.
            If a query is not measured (scale inf), its entry has no information about `x`: it is
            0 for discrete noise and NaN otherwise.
        """
        counts, rows = self.counts(x), checked_size(size)
        width = self.n * self.noise.words_per_entry
        source = resolve(rng)
        words = source.bits(rows * width).reshape(rows, width)
        measured = np.isfinite(self.scales)
        noise = self.noise.draw(words, self.scales, source.bits)
        empty = 0 if self.noise.discrete else np.nan
        out: Values = np.where(measured, counts + noise, empty)
        return out[0] if size is None else out

    def log_prob(self, z: npt.ArrayLike, x: npt.ArrayLike) -> FloatArray:
        """Log probability (or density) of measurements; queries that are not measured count 0.

        Parameters
        ----------
        z : array_like, shape (..., n)
        x : array_like, shape (n,)

        Returns
        -------
        ndarray, shape (...)
        """
        values = np.asarray(z)
        log_pmf = self.noise.log_pmf(values - self.counts(x), self.scales)
        # a difference may be rounded onto the grid
        off = np.isfinite(self.scales) & ~on_grid(values, self.granularity)
        return np.asarray(np.where(off, -np.inf, log_pmf).sum(axis=-1))


def rolled_up(workload: Workload | None) -> str:
    """Return the remedy that makes counts add up, for a workload or a tree."""
    return (
        "roll leaf counts up with tree.roll_up"
        if workload is None
        else "answer the queries with workload.answers"
    )


def checked_size(size: int | None) -> int:
    """Return the number of draws asked for."""
    if size is None:
        return 1
    if isinstance(size, bool) or not isinstance(size, int | np.integer) or size < 0:
        raise ArgumentError(f"size is {size!r}; give a nonnegative number of draws, or None.")
    if size > _MOST_DRAWS:
        raise ArgumentError(f"size is {show(size)}; give at most {_MOST_DRAWS:,} draws.")
    return int(size)


def checked_alpha(alpha: float) -> None:
    """Check a probability of error."""
    if not isinstance(alpha, float | np.floating) or not 0.0 < alpha < 1.0:
        raise ArgumentError(f"alpha is {alpha!r}; give a number between 0 and 1.")


def checked_together(together: int) -> int:
    """Check the number of nodes whose intervals hold together."""
    whole = isinstance(together, int | np.integer) and not isinstance(together, bool)
    if not whole or not 1 <= together < 2**63:
        raise ArgumentError(f"together is {show(together)}; give a number of nodes, at least 1.")
    return int(together)
