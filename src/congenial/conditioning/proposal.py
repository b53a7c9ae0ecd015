"""Proposals on an index set: some entries are proposed, the others follow from the equalities.

With A u = 0 for the noise u, entries I are proposed from a law q and the others solve
``A[:, rest] @ u[rest] = -A[:, I] @ u[I]`` (Gong and Meng 2020, Algorithm 1).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import gcd, lcm
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from congenial.errors import ArgumentError, InfeasibleError, UnsupportedError
from congenial.invariants.resolved import ResolvedInvariant, named
from congenial.invariants.sparse_rows import row_matrix, structure_rows, sums_of_others
from congenial.noise.additive import Additive
from congenial.noise.law import checked_scale
from congenial.sum_network.cutset import rows_touching, substitute
from congenial.types import FloatArray, IntArray, Values

Row = dict[int, Fraction]

# Limits for proposals: number of entries, and size of the matrix that solves for the rest.
_LONGEST = 20_000
_MOST_SOLVED = 1 << 24
# Rounds of `largest_noise` over all rows; each round propagates bounds one row further.
_ROUNDS = 4


@dataclass(frozen=True, eq=False)
class Proposal:
    """How candidates are proposed.

    Parameters
    ----------
    index : sequence of int, optional
        Entries that are proposed, counted from 0; the others follow from the equalities. With all
        n entries the proposal is the mechanism itself, whose draws meet the equalities by chance.
        By default the entries with the widest noise follow, which accepts the most proposals.
    scale : float or array_like of float, shape (n,), optional
        Scale of the proposed noise, which has the mechanism's law; by default the mechanism's
        scale.
        For "tree-mh", the standard deviation of a leaf's step; tuned by default.

    Raises
    ------
    ArgumentError
        If an index is not an integer or occurs twice, or a scale is not positive.

    References
    ----------
    Gong and Meng (2020), Section 2.3 and Algorithm 1: I and q.
    """

    index: Sequence[int] | IntArray | None = None
    scale: npt.ArrayLike | None = None
    chosen: tuple[int, ...] | None = field(init=False, repr=False)
    spread: FloatArray | None = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Check the index set and the scale."""
        object.__setattr__(self, "chosen", None if self.index is None else _listed(self.index))
        spread = None if self.scale is None else checked_scale("the proposal's scale", self.scale)
        if spread is not None and not np.isfinite(spread).all():
            raise ArgumentError("the proposal's scale is inf; give a finite number.")
        object.__setattr__(self, "spread", spread)

    def in_units(self, granularity: float) -> Proposal:
        """Return the proposal in steps of a grid."""
        scale = None if self.spread is None else self.spread / granularity
        return Proposal(self.chosen, scale)


@dataclass(frozen=True, eq=False)
class ByProposals:
    """A sampler that draws from proposals; the base of records in `samplers/`."""

    proposal: Proposal | None = None  # If None, it is chosen for the noise and the equalities.
    certified: ClassVar[bool] = False

    @property
    def name(self) -> str:
        """The name by which `congenial.condition` finds it."""
        raise NotImplementedError

    def in_units(self, granularity: float) -> Self:
        """Return the sampler with its proposal in steps of a grid."""
        if self.proposal is None:
            return self
        return replace(self, proposal=self.proposal.in_units(granularity))

    def check_covers(self, resolved: ResolvedInvariant) -> None:
        """Refuse bounds that depend on counts published exactly, with UnsupportedError."""
        if resolved.relative.size:
            raise UnsupportedError(
                f"sampler {self.name!r} does not cover bounds that follow from counts published "
                "exactly; use 'auto'."
            )


def _listed(index: Any) -> tuple[int, ...]:
    several = isinstance(index, Iterable) and not isinstance(index, str)
    given: list[Any] = list(index) if several else [index]
    if not all(isinstance(i, int | np.integer) and not isinstance(i, bool) for i in given):
        raise ArgumentError(
            f"the proposal's index is {index!r}; give the entries that are proposed, from 0."
        )
    listed = tuple(int(i) for i in given)
    if len(set(listed)) < len(listed):
        raise ArgumentError("the proposal's index names an entry twice; name each once.")
    return listed


@dataclass(frozen=True, eq=False)
class Placed:
    """A proposal resolved for a mechanism and its equalities."""

    index: IntArray  # shape (k,): Entries that are proposed.
    rest: IntArray  # shape (m,): Entries that follow, including those that cannot move.
    # shape (m, k): ``u[rest] = solve @ u[index]``; whole numbers for integer noise.
    solve: FloatArray
    scales: FloatArray  # shape (k,): Scales of the proposed noise.
    # shape (r, n): If all entries are proposed: sums of them that must be zero; otherwise no rows.
    rows: FloatArray


def place(mechanism: Additive, resolved: ResolvedInvariant, proposal: Proposal | None) -> Placed:
    """Determine which entries are proposed, and how the others follow from them.

    Notes
    -----
    If the proposal has the scale of the noise, rejection accepts a candidate with probability
    ``Z / prod(N[i] for i in I)``, where Z sums the weights of all solutions and N[i] the weights of
    one entry's noise. It is largest if the entries left out have the largest product of N, which
    grows with the scale. That is a basis of greatest weight, found by taking columns in descending
    order of scale (Edmonds 1971). With equal scales all choices are equally good.
    """
    n, whole = mechanism.n, mechanism.noise.discrete
    if n > _LONGEST:
        raise UnsupportedError(
            f"proposals on an index set cover up to {_LONGEST} entries, and there are {n}; use "
            "sampler='exact'."
        )
    given = Proposal() if proposal is None else proposal
    spread = mechanism.scales if given.spread is None else scale_each(given.spread, n)
    rows = equality_rows(resolved)
    if whole and any(a.denominator != 1 for row in rows for a in row.values()):
        raise UnsupportedError(
            "a linear condition has a coefficient that is not an integer, and the noise is on a "
            "grid; multiply the row by a common denominator."
        )
    free = np.flatnonzero(~resolved.pinned)
    if given.chosen is not None:
        beyond = [i for i in given.chosen if not 0 <= i < n]
        if beyond:
            raise ArgumentError(
                f"the proposal's index has {beyond[0]}; give entries from 0 to {n - 1}."
            )
        if len(given.chosen) == n and (resolved.pinned.any() or rows):
            return _all_entries(mechanism, resolved, rows, spread)
        solved = _follow(given.chosen, free, rows, whole=whole)
    else:
        solved = _widest(mechanism, resolved, free, rows, whole=whole)
    index = np.array([v for v in free.tolist() if v not in solved], dtype=np.int64)
    rest = np.setdiff1d(np.arange(n), index)
    if index.size * rest.size > _MOST_SOLVED:
        raise UnsupportedError(
            f"{rest.size} entries follow from {index.size}, which needs a matrix of "
            f"{index.size * rest.size:,} numbers, and the limit is {_MOST_SOLVED:,}; use "
            "sampler='exact'."
        )
    _check_measured(spread, index, mechanism)
    solve = np.zeros((rest.size, index.size))
    column = {v: j for j, v in enumerate(index.tolist())}
    for i, v in enumerate(rest.tolist()):
        for w, a in solved.get(v, {}).items():
            if w != v:
                solve[i, column[w]] = float(-a)
    return Placed(index, rest, solve, spread[index], np.zeros((0, n)))


def equality_rows(resolved: ResolvedInvariant) -> list[Row]:
    """Return every equality as a row of the noise, entries published exactly left out."""
    listed = structure_rows(resolved)
    rows = [dict(zip(i.tolist(), s.tolist(), strict=True)) for i, s in listed]
    rows += [{int(v): row[v] for v in np.flatnonzero(row)} for row in resolved.equalities[0]]
    kept = [{v: Fraction(a) for v, a in row.items() if not resolved.pinned[v]} for row in rows]
    return [row for row in kept if row]


def eliminate(rows: list[Row], order: Sequence[int], *, unit: bool) -> tuple[dict[int, Row], bool]:
    """Solve rows for entries in `order`, skipping entries that follow from earlier ones.

    Returns each solved entry's row, where it has coefficient 1 and no other solved entry occurs,
    and whether all rows were used.
    """
    reduced = [_primitive(row) if unit else dict(row) for row in rows]
    touching = {v: set(of) for v, of in rows_touching(reduced).items()}
    left = set(range(len(reduced)))
    solved: dict[int, Row] = {}
    waiting, moved = list(order), True
    while waiting and moved and left:
        moved, passed = False, []
        for v in waiting:
            able = [k for k in sorted(touching.get(v, ())) if k in left]
            able = [k for k in able if not unit or abs(reduced[k][v]) == 1]
            if not able:
                passed.append(v)
                continue
            own = min(able, key=lambda k: len(reduced[k]))
            reduced[own] = solved[v] = {w: a / reduced[own][v] for w, a in reduced[own].items()}
            left.discard(own)
            equals = {w: -a for w, a in solved[v].items() if w != v}
            for k in sorted(touching[v] - {own}):
                substitute(reduced[k], v, equals, touching, k)
                if not reduced[k]:
                    left.discard(k)
                elif unit and k in left:
                    reduced[k] = _primitive(reduced[k])
            moved = True
        waiting = passed
    return solved, not left


def _primitive(row: Row) -> Row:
    """Return the row in integers without a common divisor."""
    below = lcm(*(a.denominator for a in row.values()))
    common = gcd(*(int(a * below) for a in row.values()))
    return {v: a * below / common for v, a in row.items()}


def _widest(
    mechanism: Additive,
    resolved: ResolvedInvariant,
    free: IntArray,
    rows: list[Row],
    *,
    whole: bool,
) -> dict[int, Row]:
    inner = np.zeros(mechanism.n, dtype=np.bool_)
    if resolved.sums is not None:
        inner[resolved.sums.totals] = True  # among equals, so that nodes follow from leaves
    order = free[np.lexsort((free, ~inner[free], -mechanism.scales[free]))]
    solved, complete = eliminate(rows, order.tolist(), unit=whole)
    if not complete:
        raise UnsupportedError(
            "no index set was found from which the other entries follow as integers; give "
            "Proposal(index=...), or use continuous noise for a study."
        )
    return solved


def _follow(
    chosen: tuple[int, ...], free: IntArray, rows: list[Row], *, whole: bool
) -> dict[int, Row]:
    """Solve for the entries that are not chosen."""
    missing = sorted(set(chosen) - set(free.tolist()))
    if missing:
        raise ArgumentError(
            f"the proposal's index has entry {missing[0]}, which is published exactly and so not "
            "proposed; leave it out."
        )
    others = [v for v in free.tolist() if v not in set(chosen)]
    solved, complete = eliminate(rows, others, unit=False)
    if len(solved) < len(others) or not complete:
        rank = len(eliminate(rows, free.tolist(), unit=False)[0])
        raise ArgumentError(
            f"the proposal's index has {len(chosen)} entries from which the others do not follow "
            f"by the equalities; give {free.size - rank} whose complement has columns of full rank."
        )
    if whole and any(a.denominator != 1 for row in solved.values() for a in row.values()):
        raise ArgumentError(
            "from the proposal's index the other entries do not follow as integers; choose a "
            "complement with a determinant of 1 or -1, or leave the index out."
        )
    return solved


def _all_entries(
    mechanism: Additive, resolved: ResolvedInvariant, rows: list[Row], spread: FloatArray
) -> Placed:
    n = mechanism.n
    if not mechanism.noise.discrete:
        raise UnsupportedError(
            "continuous noise meets equalities with probability 0, so not all entries can be "
            "proposed; leave the proposal's index out."
        )
    _check_measured(spread, np.arange(n), mechanism)
    matrix = np.vstack((np.zeros((len(rows), n)), np.eye(n)[resolved.pinned]))
    for k, row in enumerate(rows):
        matrix[k, list(row)] = [float(a) for a in row.values()]
    none = np.zeros(0, dtype=np.int64)
    return Placed(np.arange(n), none, np.zeros((0, n)), spread, matrix)


def _check_measured(spread: FloatArray, index: IntArray, mechanism: Additive) -> None:
    flat = index[~np.isfinite(spread[index])]
    if flat.size:
        raise UnsupportedError(
            f"{named(mechanism.domain, int(flat[0]))} is not measured, so there is no noise to "
            "propose for it; give Proposal(scale=...), or an index that leaves it out."
        )


def scale_each(spread: FloatArray, n: int) -> FloatArray:
    """Return the scale of a proposal for every entry, shape (n,)."""
    if spread.shape not in ((), (1,), (n,)):
        raise ArgumentError(f"the proposal has {spread.size} scales; give one, or {n}.")
    return np.ascontiguousarray(np.broadcast_to(spread, (n,)), dtype=np.float64)


def feasible_start(
    resolved: ResolvedInvariant, placed: Placed, x: Values, *, whole: bool
) -> FloatArray:
    """Return a point, shape (n,), that depends on the data only through the invariant's values.

    Under equalities alone it is the solution whose proposed entries are zero, which is the same for
    all data with the same pinned values.
    """
    start = np.zeros(resolved.n)
    # x[rest] - solve @ x[index] depends on the data only through A x
    solve = placed.solve.astype(np.int64) if whole else placed.solve
    start[placed.rest] = x[placed.rest] - solve @ x[placed.index]
    if satisfies_inequalities(resolved, start):
        return start
    return _searched(resolved, x, whole=whole)


def satisfies_inequalities(resolved: ResolvedInvariant, z: FloatArray) -> bool:
    """Whether a point satisfies the inequalities."""
    free = ~resolved.pinned
    matrix, value = resolved.inequalities
    inside = ((z >= resolved.lo) & (z <= resolved.hi))[free].all()
    return bool(inside and (matrix @ z >= value).all())


def _searched(resolved: ResolvedInvariant, x: Values, *, whole: bool) -> FloatArray:
    try:
        from scipy.optimize import Bounds, LinearConstraint, milp
    except ImportError as cause:
        raise UnsupportedError(
            "a start that satisfies the inequalities is searched for with scipy; run pip install "
            "scipy, or give start=."
        ) from cause
    equal = row_matrix(resolved)
    value = np.append(resolved.equalities[1], np.zeros(len(equal) - resolved.equalities[1].size))
    conditions = [LinearConstraint(equal, value, value)] if value.size else []
    matrix, least = resolved.inequalities
    conditions += [LinearConstraint(matrix, least, np.inf)] if least.size else []
    lo, hi = np.where(resolved.pinned, x, resolved.lo), np.where(resolved.pinned, x, resolved.hi)
    found = milp(
        np.zeros(resolved.n),
        integrality=np.full(resolved.n, int(whole)),
        bounds=Bounds(lo, hi),
        constraints=conditions,
        options={"time_limit": 60.0},
    )
    if found.x is not None:
        start = np.asarray(np.rint(found.x) if whole else found.x, dtype=np.float64)
        slack = 0.0 if whole else 1e-9 * max(1.0, float(np.abs(start).max()))
        solved = bool((np.abs(equal @ start - value) <= slack).all())
        if solved and satisfies_inequalities(resolved, start):
            return start
    raise InfeasibleError(
        "no start that satisfies the inequalities was found; give values that do as start=."
    )


def checked_start(
    resolved: ResolvedInvariant, x: Values, start: npt.ArrayLike, *, whole: bool
) -> FloatArray:
    """Return a given start, shape (n,), after checking that it satisfies the invariant."""
    z = np.asarray(start, dtype=np.float64)
    ok = z.shape == (resolved.n,) and bool(np.isfinite(z).all())
    if ok:
        slack = 1e-9 * max(1.0, float(np.abs(z).max())) * (not whole)
        matrix, value = resolved.equalities
        sums = resolved.sums
        along = [] if sums is None else [sums.gaps(z)]
        gaps = [matrix @ z - value, (z - x)[resolved.pinned], *along]
        ok = not whole or bool((z == np.rint(z)).all())
        ok &= bool((np.abs(np.concatenate(gaps)) <= slack).all())
        ok &= satisfies_inequalities(resolved, z)
    if not ok:
        raise ArgumentError(
            f"start does not satisfy the invariant; give {resolved.n} values that do."
        )
    return z


def largest_noise(resolved: ResolvedInvariant, lo: FloatArray, hi: FloatArray) -> FloatArray:
    """Return an upper bound on the size of each entry's noise, inf if there is none.

    In ``row @ u == 0``, the bounds of all other entries bound an entry.
    """
    lo, hi = lo.copy(), hi.copy()
    rows = [(np.flatnonzero(row), row[row != 0.0]) for row in resolved.equalities[0]]
    rows += [(at, signs.astype(np.float64)) for at, signs in structure_rows(resolved)]
    for _ in range(_ROUNDS):
        for at, row in rows:
            ends = row * lo[at], row * hi[at]
            most = -sums_of_others(np.minimum(*ends)) / row
            least = -sums_of_others(np.maximum(*ends)) / row
            lo[at] = np.maximum(lo[at], np.minimum(most, least))
            hi[at] = np.minimum(hi[at], np.maximum(most, least))
    return np.maximum(-lo, hi)
