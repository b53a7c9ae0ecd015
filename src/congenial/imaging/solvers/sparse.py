"""The closest point under crossing sums for long vectors: sparse solvers, checked by residual."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from congenial.errors import InfeasibleError, NumericalError
from congenial.imaging.solvers.problem import TOLERANCE
from congenial.invariants.resolved import ResolvedInvariant
from congenial.types import FloatArray, IntArray

# Most iterations of PIQP, and its tolerance. The optimality conditions are checked independently.
_ITERATIONS = 250
_AIM = 1e-12
# Violation of a condition, in counts, above which moves are solved for in units of that violation.
_FAR = 1024.0


def solve_sparse(resolved: ResolvedInvariant, y: FloatArray, weight: FloatArray) -> FloatArray:
    """Minimise ``sum(weight * (z - y)**2)`` under sums, linear conditions and bounds.

    Returns ndarray of float64, shape (n,): within the bounds; sums hold up to rounding.

    Notes
    -----
    Solved for the move ``z - y`` of the entries that are not pinned by a proximal interior-point
    method (PIQP; Schwan, Jiang, Kuhn and Jones 2023). Its prices prove the result: they balance the
    gradient of the distance, have the right sign, and are almost 0 for conditions that do not bind.
    The remaining duality gap bounds the excess of the distance over the least one.
    """
    import piqp
    from scipy import sparse

    free, held = start(resolved, y)
    held = _centered(resolved, held, weight)
    rows, values, lower, least = systems(resolved)
    gap, short = values - rows @ held, least - lower @ held
    lo, hi = resolved.lo[free] - held[free], resolved.hi[free] - held[free]
    # the least move is proportional to `missed`, so far moves are solved for and judged in its
    # units, and weights in units of the largest
    missed = max(float(end.max(initial=0.0)) for end in (np.abs(gap), short, lo, -hi))
    unit = _power(missed) if missed >= _FAR else 1.0
    gap, short, lo, hi = gap / unit, short / unit, lo / unit, hi / unit
    pulled = weight[free] / _power(float(weight[free].max(initial=0.0)))
    a, g = sparse.csc_matrix(rows[:, free]), sparse.csc_matrix(lower[:, free])
    solver = with_settings(piqp.SparseSolver())
    pull = sparse.csc_matrix(sparse.diags_array(pulled))
    some = least.size > 0
    solver.setup(
        pull,
        np.zeros(free.size),
        a,
        gap,
        g if some else None,
        short if some else None,
        None,
        lo,
        hi,
    )
    status = solver.solve()
    found = solver.result
    if status == piqp.Status.PIQP_PRIMAL_INFEASIBLE:
        raise InfeasibleError(
            "the sums, the bounds and the entries published exactly cannot all hold; drop one of "
            "them."
        )
    move = np.clip(np.asarray(found.x), lo, hi)
    at_lo, at_hi = np.asarray(found.z_bl), np.asarray(found.z_bu)
    slope = pulled * move + a.T @ np.asarray(found.y) - at_lo + at_hi
    spare = _spare(at_lo, move - lo) + _spare(at_hi, hi - move)
    off = [np.abs(a @ move - gap), -at_lo, -at_hi]
    if some:
        price, over = np.asarray(found.z_l), g @ move - short
        slope -= g.T @ price
        spare += _spare(price, over)
        off += [-over, -price]
    off += [np.abs(slope), np.array([spare])]
    size = max(1.0, *(float(np.abs(each).max(initial=0.0)) for each in (gap, short, move)))
    worst = max(float(each.max(initial=0.0)) for each in off)
    # half the weighted square of the distance from the optimum is at most the duality gap: an entry
    # of weight w is off by sqrt(2 * TOLERANCE * size / w) units at most, and by far less as found
    if not worst <= TOLERANCE * size:
        raise NumericalError(
            f"the projection misses its conditions of optimality by {worst / size:.1e} of the "
            "largest number; bring the weights or the bounds closer together."
        )
    out = held.copy()
    out[free] += unit * move
    return out


def start(resolved: ResolvedInvariant, y: FloatArray) -> tuple[IntArray, FloatArray]:
    """Return the entries that may move, and all entries before the move, shape (n,)."""
    free = np.flatnonzero(~resolved.pinned & (resolved.lo < resolved.hi))
    movable = resolved.pinned | (resolved.lo != resolved.hi)
    return free, np.where(movable, y, resolved.lo)


def with_settings(solver: Any) -> Any:
    """Return a solver of PIQP with the settings of the closest point."""
    settings = solver.settings
    settings.verbose, settings.max_iter = False, _ITERATIONS
    settings.eps_abs = settings.eps_rel = _AIM
    settings.eps_duality_gap_abs = settings.eps_duality_gap_rel = _AIM
    return solver


def _power(x: float) -> float:
    """Return the largest power of two at or below `x`; 1 for 0."""
    return 2.0 ** (math.frexp(x)[1] - 1) if x > 0.0 else 1.0


def _spare(price: FloatArray, room: FloatArray) -> float:
    """Duality gap, from the prices of bounds that do not bind; it bounds the excess distance."""
    paid = np.abs(price) > 0.0
    return float(np.abs(price[paid] * room[paid]).sum())


def _centered(resolved: ResolvedInvariant, values: FloatArray, weight: FloatArray) -> FloatArray:
    """Set unmeasured totals to the sum of their parts, so that moves have the size of the noise."""
    out = values.copy()
    sums = resolved.sums
    if sums is None:
        return out
    total = sums.totals
    open_ = (
        (weight[total] == 0.0) & ~resolved.pinned[total] & (resolved.lo[total] < resolved.hi[total])
    )
    while True:  # one round for each block that refines another
        below = np.add.reduceat(out[sums.parts], sums.starts[:-1])
        after = np.where(open_, below, out[total])
        if np.array_equal(after, out[total]):
            return out
        out[total] = after


def systems(resolved: ResolvedInvariant) -> tuple[Any, FloatArray, Any, FloatArray]:
    """Return equalities and inequalities as sparse rows, each with its values.

    Returns ``rows @ z == values``, shapes (m, n) and (m,), and ``lower @ z >= least``.
    """
    from scipy import sparse

    matrix, value = resolved.equalities
    parts = [sparse.csr_array(matrix)]
    sums = resolved.sums
    if sums is not None:
        m = sums.totals.size
        place = np.concatenate((np.arange(m), sums.sum_of_part))
        at = np.concatenate((sums.totals, sums.parts))
        sign = np.concatenate((np.full(m, -1.0), np.ones(sums.parts.size)))
        parts.append(sparse.csr_array((sign, (place, at)), shape=(m, resolved.n)))
        value = np.concatenate((value, np.zeros(m)))
    pairs = resolved.linked
    place = np.repeat(np.arange(len(pairs)), 2)
    signs = np.tile([1.0, -1.0], len(pairs))
    links = sparse.csr_array((signs, (place, pairs.ravel())), shape=(len(pairs), resolved.n))
    lower = sparse.vstack((sparse.csr_array(resolved.at_least[0]), links)).tocsr()
    least = np.concatenate((resolved.at_least[1], np.zeros(len(pairs))))
    return sparse.vstack(parts).tocsr(), value, lower, least
