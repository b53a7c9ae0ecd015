"""The nearest integers that satisfy any linear conditions, by a mixed-integer programme."""

from __future__ import annotations

import numpy as np

from congenial.errors import InfeasibleError, NumericalError
from congenial.imaging.solvers.sparse import systems
from congenial.invariants.resolved import ResolvedInvariant
from congenial.types import FloatArray, Words

# Distance to an integer at which a value counts as one; random tie-breaking costs are smaller.
_WHOLE, _TIE = 2.0**-20, 2.0**-21
# Largest violation of a condition without integer coefficients, relative to its terms.
_ROUNDING = 2.0**-40
_INFEASIBLE = 2


def round_general(resolved: ResolvedInvariant, z: FloatArray, words: Words) -> FloatArray:
    """Round to the integers of least summed change that satisfy every condition.

    Returns ndarray of float64 with integer entries, shape (n,): conditions whose coefficients are
    integers hold exactly.

    Notes
    -----
    A mixed-integer programme (HiGHS). An entry is its floor, plus a first unit whose cost depends
    on the fraction, plus units up and down that cost one each.
    """
    from scipy import sparse
    from scipy.optimize import Bounds, LinearConstraint, milp

    wrong = np.flatnonzero(resolved.pinned & (z != np.rint(z)))
    if wrong.size:
        raise InfeasibleError(
            f"{resolved.name(int(wrong[0]))} must equal a number that is not an integer; change "
            "that number, or release real numbers with integer=False."
        )
    # the floor, or the nearest integer within the bounds
    floor = np.clip(np.floor(z + _WHOLE), np.ceil(resolved.lo), np.floor(resolved.hi))
    floor = np.where(resolved.pinned, np.rint(z), floor)
    free = np.flatnonzero(~resolved.pinned)
    if not free.size:
        return floor
    part = np.clip(z - floor, 0.0, 1.0)[free]
    up = np.floor(resolved.hi[free]) - floor[free]
    down = floor[free] - np.ceil(resolved.lo[free])
    rows, values, lower, least = systems(resolved)
    tie = (words[free] >> np.uint64(11)).astype(np.float64) * 2.0**-53
    ones = np.ones(free.size)
    constraints = []
    conditions = ((rows, values, values), (lower, least, np.full(least.size, np.inf)))
    for matrix, low, high in conditions:
        if low.size:
            inside = matrix[:, free]
            spread = sparse.hstack((inside, inside, -inside), format="csr")
            base = matrix @ floor
            constraints.append(LinearConstraint(spread, low - base, high - base))
    found = milp(
        np.concatenate((1.0 - 2.0 * part, ones, ones)) + _TIE * np.tile(tie, 3),
        integrality=np.ones(3 * free.size),
        bounds=Bounds(
            0.0, np.concatenate((np.clip(up, 0.0, 1.0), np.maximum(up - 1.0, 0.0), down))
        ),
        constraints=constraints,
        options={"mip_rel_gap": 0.0},
    )
    if found.status == _INFEASIBLE:
        raise InfeasibleError(
            "no integers satisfy the sums and the bounds together; give values that integers can "
            "add up to."
        )
    if found.status != 0:
        raise NumericalError(
            f"the search for the nearest integers ended early (HiGHS status {found.status}); "
            "release real numbers with integer=False."
        )
    first, more, fewer = np.rint(found.x).reshape(3, free.size)
    out = floor.copy()
    out[free] += first + more - fewer
    for matrix, low, high in conditions:
        total = matrix @ out
        # integers that violate an integer condition violate it by at least 1
        slack = np.minimum(0.5, _ROUNDING * (abs(matrix) @ np.abs(out) + np.abs(low)))
        if ((total < low - slack) | (total > high + slack)).any():
            raise NumericalError(
                "the nearest integers found miss a condition; give linear conditions with integers."
            )
    return out
