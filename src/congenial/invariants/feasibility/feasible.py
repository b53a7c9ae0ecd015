"""Refuse infeasible invariants; the error names an irreducible infeasible subset."""

from __future__ import annotations

import logging

import numpy as np
import numpy.typing as npt

from congenial.domain.tree import Tree
from congenial.domain.workload import Workload
from congenial.errors import InfeasibleError
from congenial.invariants.feasibility.bounds_on_trees import on_hierarchy
from congenial.invariants.feasibility.irreducible import irreducible
from congenial.invariants.feasibility.programs import (
    MOST_NUMBERS,
    Propagation,
    Rows,
    Solver,
    as_rows,
    has_solver,
)
from congenial.invariants.feasibility.single_invariants import (
    InfeasibleSubset,
    SingleInvariant,
    SingleInvariants,
    take_apart,
    tell,
)
from congenial.invariants.resolved import ResolvedInvariant, distinct
from congenial.invariants.written import Invariant
from congenial.types import FloatArray

log = logging.getLogger("congenial.invariants.feasibility")
# Largest number of nonzero numbers for which bounds are propagated without a solver.
_MOST_CARRIED = 20_000


def find_infeasible_subset(
    resolved: ResolvedInvariant,
    invariant: Invariant | None = None,
    *,
    whole: bool,
    domain: Tree | Workload | None = None,
    counts: npt.ArrayLike | None = None,
    grid: float = 1.0,
) -> InfeasibleSubset | None:
    """Return invariants that no release can satisfy together, or None.

    If rows join several entries, None may also mean that the invariant was not tested,
    because the solver is missing or the rows are too large for it. `not_tried` says which.

    Notes
    -----
    A tree with bounds and rows of single entries is decided exactly, in one pass up. Other cases
    are linear or integer programmes. The subset is irreducible, as far as the solver or, without
    it, the propagation of bounds can tell.
    """
    if _open_ended(resolved, counts):
        return None
    single = take_apart(resolved, invariant, whole=whole, counts=counts)
    alone = _alone(resolved, whole=whole)
    if alone is not None:
        found: list[SingleInvariant] | None = [alone]
    elif _is_hierarchy(resolved, with_data=counts is not None):
        found = on_hierarchy(single)
    else:
        found = _in_system(single)
    if found is None:
        return None
    named = resolved.workload or resolved.tree or domain
    return tell(single, found, named, grid)


def check_feasible(
    resolved: ResolvedInvariant,
    invariant: Invariant | None = None,
    *,
    whole: bool,
    domain: Tree | Workload | None = None,
    grid: float = 1.0,
) -> None:
    """Refuse an invariant that no release can satisfy, whatever the data."""
    found = find_infeasible_subset(resolved, invariant, whole=whole, domain=domain, grid=grid)
    if found is not None:
        raise InfeasibleError(found.sentence)


def check_pinned(
    resolved: ResolvedInvariant,
    counts: npt.ArrayLike,
    invariant: Invariant | None = None,
    *,
    whole: bool,
    domain: Tree | Workload | None = None,
) -> None:
    """Refuse data whose exactly published entries leave no release.

    Only these entries are used, which are unprotected, and no message holds a value. The check runs
    before any debit; it ignores all other entries.
    """
    if not resolved.pinned.any():
        return
    found = find_infeasible_subset(resolved, invariant, whole=whole, domain=domain, counts=counts)
    if found is not None:
        raise InfeasibleError(found.sentence)


def not_tried(resolved: ResolvedInvariant) -> str:
    """Say which part of an invariant is not tested for feasibility; empty if all of it is."""
    if _open_ended(resolved, None) or _is_hierarchy(resolved, with_data=False):
        return ""
    if not has_solver():
        return (
            "Whether all conditions can hold together was tested one after another only; run pip "
            "install highspy to have it decided."
        )
    numbers = np.count_nonzero(resolved.equalities[0]) + np.count_nonzero(resolved.at_least[0])
    numbers += resolved.pairs.size
    numbers += 0 if resolved.sums is None else resolved.sums.parts.size + resolved.sums.totals.size
    if numbers + 2 * resolved.n > MOST_NUMBERS:
        return (
            "Whether all conditions can hold together was not tested, because they have more than "
            f"{MOST_NUMBERS} numbers."
        )
    return ""


def remarks(resolved: ResolvedInvariant, domain: Tree | Workload | None) -> str:
    """Say that an invariant leaves the sums of a domain free, and what of it is not tested."""
    free = domain is not None and resolved.sums is None and not resolved.equalities[1].size
    sums = "Released counts need not add up, because the invariant has no consistent(domain)."
    return " ".join(filter(None, (sums if free else "", not_tried(resolved))))


def _open_ended(resolved: ResolvedInvariant, counts: npt.ArrayLike | None) -> bool:
    """Whether sufficiently large or small values satisfy every invariant, without a search."""
    if resolved.equalities[1].size or resolved.n_inequalities:
        return False
    if resolved.relative.size or _crossing(resolved):  # a part may count in several totals
        return False
    bounded = [bool(np.isfinite(distinct(end)).any()) for end in (resolved.lo, resolved.hi)]
    return not (any(bounded) if counts is not None and resolved.pinned.any() else all(bounded))


def _crossing(resolved: ResolvedInvariant) -> bool:
    """Whether there are sums besides those of a tree."""
    return resolved.tree is None and resolved.sums is not None


def _is_hierarchy(resolved: ResolvedInvariant, *, with_data: bool) -> bool:
    """Whether the invariant is only bounds on a tree; rows of a single entry are bounds.

    A pair of entries is a bound once the data give the value of the entry published exactly.
    """
    pairs = resolved.linked if with_data else resolved.pairs
    crossing = _crossing(resolved) or pairs.size > 0
    return not crossing and _single(resolved.equalities[0]) and _single(resolved.at_least[0])


def _single(matrix: FloatArray) -> bool:
    return bool((np.count_nonzero(matrix, axis=1) <= 1).all())


def _alone(resolved: ResolvedInvariant, *, whole: bool) -> SingleInvariant | None:
    """A row that cannot hold by itself: it has no entries, or no integers satisfy it."""
    matrix, value = resolved.equalities
    for k, (row, at) in enumerate(zip(matrix, value, strict=True)):
        factors = row[row != 0]
        if not factors.size and at != 0:
            return SingleInvariant("linear", k)
        if whole and factors.size and (factors == np.rint(factors)).all():
            small = np.abs(factors).max() < 2.0**53
            step = int(np.gcd.reduce(np.abs(factors).astype(np.int64))) if small else 1
            if at % step:
                return SingleInvariant("linear", k)
    matrix, value = resolved.at_least
    never = np.flatnonzero((value > 0) & ~matrix.any(axis=1))
    return SingleInvariant("at_least", int(never[0])) if never.size else None


def _in_system(single: SingleInvariants) -> list[SingleInvariant] | None:
    """Decide by linear or integer programming; without a solver, by propagation of bounds."""
    if _at_hand(single):
        return None
    if not_tried(single.resolved):
        rows = None if has_solver() else as_rows(single)
        if rows is None or rows.index.size > _MOST_CARRIED:
            return None
        return _named(rows, Propagation(rows))
    rows = as_rows(single)
    solver = Solver(rows)
    found = _named(rows, solver)
    if solver.undecided:
        log.warning("whether all conditions can hold together was not decided within the limits")
    return found


def _named(rows: Rows, oracle: Solver | Propagation) -> list[SingleInvariant] | None:
    every = frozenset(range(len(rows.members)))
    if oracle.holds(every):
        return None
    kept = irreducible(oracle.holds, every)
    if isinstance(oracle, Solver) and not oracle.proved(kept):
        oracle.undecided = True
        return None
    return [rows.members[k] for k in kept]


def _at_hand(single: SingleInvariants) -> bool:
    """Whether the smallest values within the bounds, added up, satisfy all invariants."""
    resolved = single.resolved
    low = np.maximum(single.lo, single.every[0])
    high = np.minimum(single.hi, single.every[1])
    z = np.clip(0.0, low, high)
    z[single.pins] = single.values
    if resolved.tree is not None:
        z = np.asarray(resolved.tree.roll_up(z[resolved.tree.leaves]), dtype=np.float64)
    elif resolved.workload is not None:
        cells = z[resolved.workload.cells]
        z = np.zeros(resolved.n)
        for entries in resolved.workload.chain:
            held = entries >= 0
            np.add.at(z, entries[held], cells[held])
    inside = bool(((z >= low) & (z <= high)).all())
    more, fewer = resolved.pairs.T
    return (
        inside
        and bool((z[more] >= z[fewer]).all())
        and bool((z[single.pins] == single.values).all())
        and bool((resolved.equalities[0] @ z == resolved.equalities[1]).all())
        and bool((resolved.at_least[0] @ z >= resolved.at_least[1]).all())
    )
