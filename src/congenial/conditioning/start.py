"""Where chains start: a point that satisfies the invariant, found from the invariant alone."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from congenial.conditioning.forest import structure_rows
from congenial.conditioning.proposal import Placed
from congenial.errors import ArgumentError, InfeasibleError, UnsupportedError
from congenial.invariants import Requirements
from congenial.mechanisms.additive import Values

FloatArray = npt.NDArray[np.float64]


def feasible_start(need: Requirements, placed: Placed, x: Values, *, whole: bool) -> FloatArray:
    """Return a point that depends on the invariant and its values, and not otherwise on the data.

    Parameters
    ----------
    need : Requirements
    placed : Placed
        With entries that follow from others.
    x : ndarray, shape (n,)
        Values that satisfy the invariant.
    whole : bool
        Whether it must be integers.

    Returns
    -------
    ndarray of float64, shape (n,)
        Under equalities alone it is the one solution whose proposed entries are zero: all data
        with the same mandated values give the same.

    Raises
    ------
    UnsupportedError
        If inequalities exclude that one and scipy is not installed.
    InfeasibleError
        If no other one is found.
    """
    start = np.zeros(need.n)
    # x[rest] - solve @ x[index] is a function of A and a = A x, written with the data at hand
    solve = placed.solve.astype(np.int64) if whole else placed.solve
    start[placed.rest] = x[placed.rest] - solve @ x[placed.index]
    if satisfied(need, start):
        return start
    return _searched(need, x, whole=whole)


def satisfied(need: Requirements, z: FloatArray) -> bool:
    """Whether a point satisfies the inequalities."""
    free = ~need.pinned
    matrix, value = need.inequalities
    inside = ((z >= need.lo) & (z <= need.hi))[free].all()
    return bool(inside and (matrix @ z >= value).all())


def _searched(need: Requirements, x: Values, *, whole: bool) -> FloatArray:
    try:
        from scipy.optimize import Bounds, LinearConstraint, milp
        from scipy.sparse import csr_array
    except ImportError as cause:
        raise UnsupportedError(
            "a start that satisfies the inequalities is searched for with scipy; install "
            "congenial[imaging], or give start=."
        ) from cause
    rows, ends = [need.equalities[0]], [need.equalities[1]]
    if need.sums is not None:
        listed = structure_rows(need)
        place = np.repeat(np.arange(len(listed)), [i.size for i, _ in listed])
        entries = (
            np.concatenate([s for _, s in listed]),
            (
                place,
                np.concatenate([i for i, _ in listed]),
            ),
        )
        rows.append(csr_array(entries, shape=(len(listed), need.n)).toarray())
        ends.append(np.zeros(len(listed)))
    equal, value = np.vstack(rows), np.concatenate(ends)
    conditions = []
    if value.size:
        conditions.append(LinearConstraint(equal, value, value))
    if need.inequalities[1].size:
        conditions.append(LinearConstraint(need.inequalities[0], need.inequalities[1], np.inf))
    lo, hi = np.where(need.pinned, x, need.lo), np.where(need.pinned, x, need.hi)
    found = milp(
        np.zeros(need.n),
        integrality=np.full(need.n, int(whole)),
        bounds=Bounds(lo, hi),
        constraints=conditions,
        options={"time_limit": 60.0},
    )
    if found.x is not None:
        start = np.asarray(np.rint(found.x) if whole else found.x, dtype=np.float64)
        slack = 0.0 if whole else 1e-9 * max(1.0, float(np.abs(start).max()))
        if satisfied(need, start) and bool((np.abs(equal @ start - value) <= slack).all()):
            return start
    raise InfeasibleError(
        "no start that satisfies the inequalities was found; give start=, a point that does."
    )


def checked_start(
    need: Requirements, x: Values, start: npt.ArrayLike, *, whole: bool
) -> FloatArray:
    """Return a given start, shape (n,), after checking that it satisfies the invariant.

    Raises
    ------
    ArgumentError
        If it does not.
    """
    z = np.asarray(start, dtype=np.float64)
    ok = z.shape == (need.n,) and bool(np.isfinite(z).all())
    if ok and whole:
        ok = bool((z == np.rint(z)).all())
    if ok:
        slack = 1e-9 * max(1.0, float(np.abs(z).max())) * (not whole)
        matrix, value = need.equalities
        ok = bool((np.abs(matrix @ z - value) <= slack).all()) and satisfied(need, z)
        ok &= bool((np.abs(z - x)[need.pinned] <= slack).all())
    if ok and need.sums is not None:
        ok = bool((np.abs(need.sums.gaps(z)) <= slack).all())
    if not ok:
        raise ArgumentError(
            f"start is no point that satisfies the invariant; give {need.n} values that do."
        )
    return z
