"""Feasibility of rows, sums and bounds by linear and integer programming.

The solver is HiGHS, of the extra `imaging`. Without it, bounds are propagated through one row after
another, which finds only some infeasible subsets.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from congenial.invariants.feasibility.single_invariants import SingleInvariant, SingleInvariants
from congenial.invariants.sparse_rows import structure_rows, sums_of_others
from congenial.types import BoolArray, FloatArray, IntArray

SOLVER = "highspy"
# Largest number of nonzero numbers in all rows for which the solver is used.
MOST_NUMBERS = 500_000
# Limits of a programme: nodes of a search for integers, and seconds.
_MOST_NODES = 5_000
_SECONDS = 10.0
# Seconds in which a proof of infeasibility is searched for.
_PROOF_SECONDS = 2.0
# Distance to an integer at which a propagated bound counts as one.
_TOLERANCE = 1e-6
# Most rounds of propagation over all rows.
_ROUNDS = 30


@dataclass(frozen=True, eq=False)
class Rows:
    """All invariants as sparse rows ``least <= row @ z <= most``, one or several an invariant."""

    n: int
    members: list[SingleInvariant]
    owner: IntArray  # shape (m,): The invariant of each row.
    # The rows in compressed form.
    start: IntArray
    index: IntArray
    value: FloatArray
    # `least` and `most`: shape (m,)
    least: FloatArray
    most: FloatArray
    whole: bool

    @cached_property
    def place(self) -> IntArray:
        """The row of each number."""
        return np.repeat(np.arange(self.owner.size), np.diff(self.start))

    def held(self, z: FloatArray) -> BoolArray:
        """The invariants that hold at a point."""
        terms = self.value * z[self.index]
        sums, size = (
            np.bincount(self.place, parts, minlength=self.owner.size)
            for parts in (terms, np.abs(terms))
        )
        slack = 1e-9 * np.maximum(1.0, size)
        broken = ~((sums >= self.least - slack) & (sums <= self.most + slack))
        out = np.ones(len(self.members), dtype=np.bool_)
        out[self.owner[broken]] = False
        return out


Stated = tuple[SingleInvariant, IntArray, FloatArray, float, float]


def _stated(single: SingleInvariants) -> Iterator[Stated]:
    """Each invariant with entries, their factors, and the least and the largest sum."""
    resolved, one = single.resolved, np.ones(1)
    for side, end in enumerate(single.every):
        if np.isfinite(end):
            low, high = (end, np.inf) if side == 0 else (-np.inf, end)
            entries = np.arange(resolved.n)
            yield SingleInvariant("every", side), entries, np.ones(resolved.n), low, high
    for v in np.flatnonzero(np.isfinite(single.lo)):
        yield SingleInvariant("lower", int(v)), np.array([v]), one, single.lo[v], np.inf
    for v in np.flatnonzero(np.isfinite(single.hi)):
        yield SingleInvariant("upper", int(v)), np.array([v]), one, -np.inf, single.hi[v]
    for v, at in zip(single.pins, single.values, strict=True):
        yield SingleInvariant("pin", int(v)), np.array([v]), one, at, at
    for k, (row, at) in enumerate(zip(*resolved.equalities, strict=True)):
        entries = np.flatnonzero(row)
        yield SingleInvariant("linear", k), entries, row[entries], at, at
    for k, (row, at) in enumerate(zip(*resolved.at_least, strict=True)):
        entries = np.flatnonzero(row)
        yield SingleInvariant("at_least", k), entries, row[entries], at, np.inf
    for k, pair in enumerate(resolved.pairs):
        yield SingleInvariant("pair", k), pair, np.array([1.0, -1.0]), 0.0, np.inf
    for entries, signs in structure_rows(resolved):
        yield SingleInvariant("sum", int(entries[0])), entries, signs.astype(float), 0.0, 0.0


def as_rows(single: SingleInvariants) -> Rows:
    """List all single invariants as rows; a bound that all entries share has a row an entry."""
    stated = list(_stated(single))
    sizes = np.array([entries.size for _, entries, *_ in stated], dtype=np.int64)
    each = np.array([member.kind == "every" for member, *_ in stated], dtype=np.bool_)
    count = np.where(each, sizes, 1)
    width = np.repeat(np.where(each, 1, sizes), count)
    low, high = (np.array([one[k] for one in stated], dtype=np.float64) for k in (3, 4))
    return Rows(
        single.resolved.n,
        [member for member, *_ in stated],
        np.repeat(np.arange(len(stated)), count),
        np.concatenate(([0], np.cumsum(width))).astype(np.int64),
        np.concatenate([np.zeros(0, dtype=np.int64), *(one[1] for one in stated)]),
        np.concatenate([np.zeros(0), *(one[2] for one in stated)]),
        np.repeat(low, count),
        np.repeat(high, count),
        single.whole,
    )


def has_solver() -> bool:
    """Whether the solver is installed."""
    return importlib.util.find_spec(SOLVER) is not None


@dataclass(eq=False)
class Solver:
    """Feasibility by HiGHS; an integer programme that ends undecided counts as feasible."""

    rows: Rows
    undecided: bool = False  # Whether an integer programme ended undecided.
    _model: Any = field(default=None, init=False, repr=False)
    _kept: frozenset[int] = field(default=frozenset(), init=False, repr=False)

    def holds(self, kept: frozenset[int]) -> bool:
        """Whether some point satisfies the invariants kept."""
        for whole in (False, True)[: 1 + self.rows.whole]:
            z = self._point(kept, whole=whole)
            if z is None:
                return False
            # integers are searched for only if rounding the real solution gives none
            if whole == self.rows.whole or self.rows.held(np.rint(z))[list(kept)].all():
                break
        return True

    def _point(self, kept: frozenset[int], *, whole: bool) -> FloatArray | None:
        """A point at which those kept hold; None if there is none, NaN if undecided."""
        import highspy

        model, states = self._at(kept, whole=whole), highspy.HighsModelStatus
        self._run(model)
        status = model.getModelStatus()
        if status == states.kInfeasible:
            return None
        if status != states.kOptimal:
            self.undecided = True
            return np.full(self.rows.n, np.nan)
        return np.asarray(model.getSolution().col_value)

    @staticmethod
    def _run(model: Any, seconds: float = _SECONDS) -> None:
        # the solver's clock continues from call to call
        model.setOptionValue("time_limit", model.getRunTime() + seconds)
        model.run()

    def proved(self, kept: frozenset[int]) -> bool:
        """Whether invariants are infeasible beyond rounding, checked independently of the solver.

        For real numbers, multipliers of the rows are the proof, unless they take too long to find.
        For integers, the exhaustive search is the proof.
        """
        import highspy

        model = self._at(kept, whole=False)
        model.clearSolver()
        model.setOptionValue("presolve", "off")
        self._run(model, _PROOF_SECONDS)
        status, states = model.getModelStatus(), highspy.HighsModelStatus
        infeasible = status == states.kInfeasible
        _, exists, ray = model.getDualRay() if infeasible else (None, False, None)
        model.setOptionValue("presolve", "choose")
        if not infeasible:
            return self.rows.whole or status == states.kTimeLimit
        return bool(exists) and any(
            self._refutes(kept, way * np.asarray(ray)) for way in (1.0, -1.0)
        )

    def _refutes(self, kept: frozenset[int], ray: FloatArray) -> bool:
        """Whether the rows with these weights add up to ``0 >= c`` for some c > 0."""
        rows = self.rows
        used = np.isin(rows.owner, list(kept)) & (ray != 0)
        ends = np.where(ray > 0, rows.least, rows.most)
        if not np.isfinite(ends[used]).all():
            used &= np.isfinite(ends)  # tiny multipliers of the wrong sign
        weight = np.where(used, ray, 0.0)
        terms = weight[rows.place] * rows.value
        left = np.bincount(rows.index, terms, minlength=rows.n)
        size = np.bincount(rows.index, np.abs(terms), minlength=rows.n)
        parts = weight[used] * ends[used]
        exact = bool((np.abs(left) <= 1e-9 * size).all())
        return exact and float(parts.sum()) > 1e-9 * float(np.abs(parts).sum())

    def _at(self, kept: frozenset[int], *, whole: bool) -> Any:
        """The model with the rows of the invariants kept, of integers or of real numbers."""
        if self._model is None:
            self._model = _model(self.rows)
        changed = np.isin(self.rows.owner, list(kept ^ self._kept))
        on = np.isin(self.rows.owner, list(kept))
        at = np.flatnonzero(changed).astype(np.int32)
        if at.size:
            low = np.where(on[at], self.rows.least[at], -np.inf)
            high = np.where(on[at], self.rows.most[at], np.inf)
            self._model.changeRowsBounds(at.size, at, low, high)
        self._kept = kept
        columns = np.arange(self.rows.n, dtype=np.int32)
        kinds = np.full(self.rows.n, int(whole), dtype=np.uint8)
        self._model.changeColsIntegrality(self.rows.n, columns, kinds)
        return self._model


def _model(rows: Rows) -> Any:
    """All rows in HiGHS, all of them free."""
    import highspy

    lp = highspy.HighsLp()
    m = rows.owner.size
    lp.num_col_, lp.num_row_ = rows.n, m
    lp.col_cost_ = np.zeros(rows.n)
    lp.col_lower_, lp.col_upper_ = np.full(rows.n, -np.inf), np.full(rows.n, np.inf)
    lp.row_lower_, lp.row_upper_ = np.full(m, -np.inf), np.full(m, np.inf)
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_ = rows.start
    lp.a_matrix_.index_ = rows.index
    lp.a_matrix_.value_ = rows.value
    model: Any = highspy.Highs()  # type: ignore[no-untyped-call]
    for option, chosen in (("output_flag", False), ("threads", 1), ("mip_max_nodes", _MOST_NODES)):
        model.setOptionValue(option, chosen)
    model.passModel(lp)
    return model


@dataclass(frozen=True, eq=False)
class Propagation:
    """Propagates bounds through one row after another; misses subsets that need several rows."""

    rows: Rows

    def holds(self, kept: frozenset[int]) -> bool:
        """Whether propagation leaves the invariants kept some values."""
        rows = self.rows
        lo, hi = np.full(rows.n, -np.inf), np.full(rows.n, np.inf)
        used = np.flatnonzero(np.isin(rows.owner, list(kept)))
        for _ in range(_ROUNDS):
            before = lo.copy(), hi.copy()
            for k in used.tolist():
                at = rows.index[rows.start[k] : rows.start[k + 1]]
                factor = rows.value[rows.start[k] : rows.start[k + 1]]
                if not self._tightened(k, at, factor, lo, hi):
                    return False
            if np.array_equal(lo, before[0]) and np.array_equal(hi, before[1]):
                break
        return True

    def _tightened(
        self, k: int, at: IntArray, factor: FloatArray, lo: FloatArray, hi: FloatArray
    ) -> bool:
        """Tighten the bounds of a row's entries in place; False if the row cannot hold."""
        ends = factor * lo[at], factor * hi[at]
        low, high = np.minimum(*ends), np.maximum(*ends)
        least, most = self.rows.least[k], self.rows.most[k]
        size = np.abs(np.concatenate((low, high)))
        slack = 1e-9 * max(
            1.0,
            float(size[np.isfinite(size)].max(initial=0.0)),
            abs(least if np.isfinite(least) else 0.0),
        )
        if low.sum() > most + slack or high.sum() < least - slack:
            return False
        others_low, others_high = sums_of_others(low), sums_of_others(high)
        up, down = most - others_low, least - others_high
        fresh = np.where(factor > 0, down, up) / factor, np.where(factor > 0, up, down) / factor
        if self.rows.whole:
            fresh = np.ceil(fresh[0] - _TOLERANCE), np.floor(fresh[1] + _TOLERANCE)
        lo[at], hi[at] = np.maximum(lo[at], fresh[0]), np.minimum(hi[at], fresh[1])
        return bool((lo[at] <= hi[at] + slack).all())
