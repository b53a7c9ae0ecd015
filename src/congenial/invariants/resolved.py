"""An invariant resolved for vectors of one length, as every method uses it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from congenial.domain.nesting import Sums
from congenial.domain.tree import Tree, at_nodes
from congenial.domain.workload import Workload
from congenial.errors import InfeasibleError, NumericalError, UnsupportedError
from congenial.invariants.implied import implied
from congenial.types import BoolArray, FloatArray, IntArray

Drawn = TypeVar("Drawn", bound=npt.NDArray[Any])

# Largest violation by rounding in floating-point vectors, relative to their largest entry.
TOLERANCE = 1e-9
# Most numbers of a dense matrix of inequalities: 512 MiB.
_MOST_NUMBERS = 2**26


@dataclass(frozen=True, eq=False)
class ResolvedInvariant:
    """An invariant resolved for vectors of length `n`."""

    n: int
    # The hierarchy that must add up; a workload has one if all its entries are nested or disjoint.
    tree: Tree | None
    # ndarray of bool, shape (n,): Entries that equal their confidential values.
    pinned: npt.NDArray[np.bool_]
    # `lo` and `hi`: shape (n,): Public bounds, infinite for entries without one; they may be views
    # of a single number.
    lo: FloatArray
    hi: FloatArray
    # `equalities` and `at_least`: Further public linear conditions, a matrix and values.
    equalities: tuple[FloatArray, FloatArray] = field(repr=False)
    at_least: tuple[FloatArray, FloatArray] = field(repr=False)
    workload: Workload | None = None  # The workload that must add up.
    # shape (k, 2): Pairs of a larger and a smaller entry.
    pairs: IntArray = field(default_factory=lambda: np.zeros((0, 2), dtype=np.int64), repr=False)

    @cached_property
    def relative(self) -> IntArray:
        """Pairs with a pinned entry, whose value bounds the other; `with_pins` adds that bound."""
        return self.pairs[self.pinned[self.pairs].any(axis=1)]

    @cached_property
    def linked(self) -> IntArray:
        """Pairs without a pinned entry."""
        return self.pairs[~self.pinned[self.pairs].any(axis=1)]

    @property
    def n_inequalities(self) -> int:
        """Number of inequalities besides bounds and pairs with a pinned entry."""
        return self.at_least[1].size + len(self.linked)

    @cached_property
    def inequalities(self) -> tuple[FloatArray, FloatArray]:
        """The further inequalities as one matrix, shape (k, n), and its least values, shape (k,).

        Raises UnsupportedError if pairs make it too large.
        """
        matrix, least = self.at_least
        if not len(self.linked):
            return self.at_least
        rows, zeros = difference_rows(self.linked, self.n)
        return np.vstack((matrix, rows)), np.concatenate((least, zeros))

    @property
    def counted(self) -> Tree | Workload | None:
        """The tree or else the workload, which says in which entries a record counts."""
        return self.tree or self.workload

    @cached_property
    def sums(self) -> Sums | None:
        """The sums of the tree or the workload, which hold for all data; None if there is neither.

        Public totals and linear conditions are not included.
        """
        return None if self.counted is None else self.counted.sums

    def name(self, entry: int) -> str:
        """Name an entry in a message."""
        return named(self.workload or self.tree, entry)

    def adds_up(self, values: npt.NDArray[Any]) -> BoolArray:
        """Whether vectors add up along the tree or the workload, shape (...), for (..., n).

        Integers must add up exactly, other numbers up to rounding.
        """
        if self.tree is not None and values.dtype.kind in "iu":
            rows = self.tree.are_consistent(values.reshape(-1, self.n))
            return rows.reshape(values.shape[:-1])
        if self.sums is None:
            return np.ones(values.shape[:-1], dtype=np.bool_)
        return np.asarray((np.abs(self.sums.gaps(values)) <= _slack(values)).all(axis=-1))

    @cached_property
    def determined(self) -> BoolArray:
        """Entries whose values follow from fixed values, shape (n,).

        Pinned entries and entries with equal bounds are known. On a tree, the only unknown term of
        a sum becomes known, repeatedly. If sums cross, see `congenial.invariants.implied`.
        """
        known, further = _closed(self), self.equalities[0]
        crossing = self.tree is None and self.workload is not None
        if not known.all() and (further.shape[0] or crossing):
            if self.counted is None:
                cells = np.arange(self.n)
                known = implied(cells, cells[None, :], known, further)
            else:
                own = self.counted
                cells = own.leaves if isinstance(own, Tree) else own.cells
                known = implied(cells, own.chain, known, further)
        known.flags.writeable = False
        return known

    @cached_property
    def has_inequalities(self) -> bool:
        """Whether an inequality restricts an entry that is not pinned."""
        if self.at_least[1].size or not self.pinned[self.pairs].all():
            return True
        bounded = np.isfinite(distinct(self.lo)) | np.isfinite(distinct(self.hi))
        return bool(bounded.any() and (bounded & ~self.pinned).any())

    @cached_property
    def bounded_by_pins(self) -> IntArray:
        """Entries that are not pinned themselves but bounded by the value of a pinned entry."""
        return np.unique(self.relative[~self.pinned[self.relative]])

    def with_pins(self, values: npt.NDArray[Any]) -> ResolvedInvariant:
        """Return the invariant with the bounds that follow from pinned values, shape (n,).

        Only the pinned entries of `values` are used.
        """
        if not self.relative.size:
            return self
        lo, hi = self.lo.copy(), self.hi.copy()
        more, fewer = self.relative.T
        from_below, from_above = self.pinned[fewer], self.pinned[more]
        np.maximum.at(lo, more[from_below], values[fewer[from_below]].astype(np.float64))
        np.minimum.at(hi, fewer[from_above], values[more[from_above]].astype(np.float64))
        return replace(self, lo=lo, hi=hi, pairs=self.linked)

    @cached_property
    def exact_part(self) -> ResolvedInvariant:
        """The invariant without its bounds and inequalities.

        A projection is post-processing of noisy counts whether or not the data satisfy its bounds.
        So the datasets that its guarantee compares agree on exact counts, and nothing else.
        """
        if not self.has_inequalities:
            return self
        return replace(
            self,
            lo=np.broadcast_to(-np.inf, self.n),
            hi=np.broadcast_to(np.inf, self.n),
            at_least=(np.zeros((0, self.n)), np.zeros(0)),
            pairs=self.pairs[:0],
        )

    @property
    def joins_parts(self) -> bool:
        """Whether a condition besides the sums of the tree compares or adds up several entries."""
        return bool(self.n_inequalities or self.pairs.size or self.equalities[1].size)

    def restricted(self, nodes: IntArray, tree: Tree) -> ResolvedInvariant:
        """Return the pins and bounds of some nodes, which are `tree`; without other conditions."""
        nothing = np.zeros((0, nodes.size)), np.zeros(0)
        return ResolvedInvariant(
            n=nodes.size,
            tree=tree,
            pinned=at_nodes(self.pinned, nodes),
            lo=at_nodes(self.lo, nodes),
            hi=at_nodes(self.hi, nodes),
            equalities=nothing,
            at_least=nothing,
        )

    def in_units(self, unit: float) -> ResolvedInvariant:
        """Return the invariant of vectors that are divided by `unit`."""
        (rows, values), (others, least) = self.equalities, self.at_least
        return replace(
            self,
            lo=self.lo / unit,
            hi=self.hi / unit,
            equalities=(rows, values / unit),
            at_least=(others, least / unit),
        )

    def within_bounds(self, values: npt.NDArray[Any]) -> BoolArray:
        """Whether all of n values lie within their bounds, shape (...), for (..., n).

        Integers must do so exactly, other numbers up to rounding.
        """
        lo, hi = distinct(self.lo), distinct(self.hi)
        slack, ok = _slack(values), np.ones(values.shape[:-1], dtype=np.bool_)
        # for a shared bound only the extremes are compared, which saves a vector of booleans
        if not np.isneginf(lo).all():
            least = values.min(axis=-1, keepdims=True) if lo.size == 1 else values
            ok &= (least >= lo - slack).all(axis=-1)
        if not np.isposinf(hi).all():
            most = values.max(axis=-1, keepdims=True) if hi.size == 1 else values
            ok &= (most <= hi + slack).all(axis=-1)
        return np.asarray(ok)

    def satisfied_by(self, values: npt.NDArray[Any], given: npt.NDArray[Any]) -> BoolArray:
        """Whether vectors satisfy the whole invariant, shape (...), for (..., n).

        Integers and pinned entries must satisfy it exactly, other numbers up to rounding. Only the
        pinned entries of `given`, shape (n,), are used.
        """
        ok = self.with_pins(given).within_bounds(values) & self.adds_up(values)
        if self.pinned.any():
            ok &= (values[..., self.pinned] == given[self.pinned]).all(axis=-1)
        more, fewer = self.linked.T
        if more.size:
            ok &= (values[..., more] - values[..., fewer] >= -2.0 * _slack(values)).all(axis=-1)
        matrix, value = self.at_least
        if value.size:
            ok &= (values @ matrix.T >= value - _row_slack(values, matrix)).all(axis=-1)
        return np.asarray(ok & self.meets_equalities(values))

    def meets_equalities(self, values: npt.NDArray[Any]) -> BoolArray:
        """Whether vectors meet the public linear equalities, shape (...), for (..., n).

        Integers must meet them exactly, other numbers up to rounding.
        """
        matrix, value = self.equalities
        if not value.size:
            return np.ones(values.shape[:-1], dtype=np.bool_)
        off = np.abs(values @ matrix.T - value)
        return np.asarray((off <= _row_slack(values, matrix)).all(axis=-1))


def checked_draws(resolved: ResolvedInvariant, drawn: Drawn, given: npt.NDArray[Any]) -> Drawn:
    """Return draws after checking that each of them satisfies the invariant.

    Every draw of every mechanism passes this check before it is returned.
    """
    if not resolved.satisfied_by(drawn, given).all():
        raise NumericalError(
            "a draw breaks an invariant, so nothing is released; please report this as a bug in "
            "congenial."
        )
    return drawn


def hull(alternatives: Sequence[ResolvedInvariant]) -> ResolvedInvariant:
    """Return the first of some invariants with the bounds and pins that all of them imply."""
    low = np.minimum.reduce([resolved.lo for resolved in alternatives])
    high = np.maximum.reduce([resolved.hi for resolved in alternatives])
    pinned = np.logical_and.reduce([resolved.pinned for resolved in alternatives])
    return replace(alternatives[0], lo=low, hi=high, pinned=pinned)


def difference_rows(pairs: IntArray, n: int) -> tuple[FloatArray, FloatArray]:
    """State pairs of a larger and a smaller entry as ``matrix @ z >= 0``."""
    if len(pairs) * n > _MOST_NUMBERS:
        raise UnsupportedError(
            f"at_least_as_many() makes {len(pairs)} conditions on {n} entries between counts of "
            "which neither is published exactly, too many; publish one side exactly, or compare "
            "at a coarser level."
        )
    matrix = np.zeros((len(pairs), n))
    at = np.arange(len(pairs))
    matrix[at, pairs[:, 0]] += 1.0
    matrix[at, pairs[:, 1]] -= 1.0
    return matrix, np.zeros(len(pairs))


def named(domain: Tree | Workload | None, entry: int) -> str:
    """Name an entry in a message: by its place in a tree or a workload, by number without one."""
    if domain is None:
        return f"entry {entry}"
    if isinstance(domain, Workload):
        return f"entry {domain.name(entry)!r}"
    return f"node {'/'.join(domain.path(entry))!r}"


def _slack(values: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Return the rounding error allowed in sums of vectors: 0 for integers, or shape (..., 1)."""
    if values.dtype.kind in "iu":
        return np.zeros(1)
    size = np.abs(values).max(axis=-1, keepdims=True, initial=0.0)
    return np.asarray(TOLERANCE * np.maximum(1.0, size))


def _row_slack(values: npt.NDArray[Any], matrix: FloatArray) -> npt.NDArray[np.float64]:
    """Return the rounding error allowed in rows of a condition: 0 for integers, or (..., m)."""
    return np.asarray(_slack(values) * np.maximum(np.abs(matrix).sum(axis=1), 1e-300))


def distinct(values: FloatArray) -> FloatArray:
    """Return the distinct numbers of a vector; a single one if it is a view of one number."""
    return values[:1] if values.strides == (0,) else values


def _closed(resolved: ResolvedInvariant) -> npt.NDArray[np.bool_]:
    """Fixed entries, and repeatedly the only unknown entry of a sum."""
    known = np.asarray(resolved.pinned | (resolved.lo == resolved.hi))
    matrix, _ = resolved.equalities
    while True:
        before = int(known.sum())
        for row in matrix:
            unknown = np.flatnonzero((row != 0) & ~known)
            if unknown.size == 1:
                known[unknown] = True
        if resolved.sums is not None:
            _close_sums(resolved.sums, known)
        if int(known.sum()) == before:
            return known


def _close_sums(sums: Sums, known: npt.NDArray[np.bool_]) -> None:
    """Mark as known, in place, the only unknown entry among a total and its parts."""
    of_part = sums.sum_of_part
    missing = np.bincount(of_part[~known[sums.parts]], minlength=sums.totals.size)
    one = missing + ~known[sums.totals] == 1
    known[sums.totals[one]] = True
    known[sums.parts[one[of_part]]] = True


def inequalities_in_units(resolved: ResolvedInvariant) -> ResolvedInvariant:
    """Turn inequalities on single entries into bounds, and the others into sums of entries."""
    matrix, value = resolved.inequalities
    if not value.size:
        return resolved
    lo, hi = resolved.lo.copy(), resolved.hi.copy()
    kept = []
    for row, bound in zip(matrix, value, strict=True):
        at = np.flatnonzero(row)
        size = np.abs(row[at])
        if at.size == 1 and row[at[0]] > 0:
            lo[at[0]] = max(lo[at[0]], bound / size[0])
        elif at.size == 1:
            hi[at[0]] = min(hi[at[0]], -bound / size[0])
        elif (size != size[:1]).any():
            raise UnsupportedError(
                "an at_least() condition weighs its entries differently; exact conditioning covers "
                "sums and differences, so use a sampler by proposals for a study."
            )
        elif at.size:
            kept.append((row / size[0], np.ceil(bound / size[0])))
    if (np.ceil(lo) > np.floor(hi)).any():
        raise InfeasibleError(
            "the at_least() conditions on an entry leave no integer; relax one of them."
        )
    rows = np.array([row for row, _ in kept]).reshape(-1, resolved.n)
    bounds = np.array([bound for _, bound in kept])
    return replace(resolved, lo=lo, hi=hi, at_least=(rows, bounds), pairs=resolved.relative)
