"""The closest point of a forest in L2, set up once for many vectors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from congenial.imaging.solvers.problem import LARGEST, TOLERANCE, Links
from congenial.imaging.solvers.two_pass import tie_grid
from congenial.invariants.resolved import ResolvedInvariant
from congenial.kernels.projection.levels import drop_implied, lay_out
from congenial.kernels.projection.newton import FIXED, FREE, solve
from congenial.kernels.projection.whole import ROUNDED, is_least, round_levels
from congenial.types import FloatArray, IntArray, Words

# Most Newton steps. With bounds on one side fewer than ten suffice; otherwise steps may cycle.
_MOST_ITERATIONS = 60
# Further integers on either side of the two next to a leaf, tried if those two do not suffice.
_SPARE = 3


@dataclass(frozen=True, eq=False)
class Levels:
    """A forest as the level-by-level kernels read it; see `congenial.kernels.projection.levels`."""

    rows: IntArray  # shape (4, number of parents + 1)
    # shape (n,) or (0,): The node at each place; empty if nodes are in the order of places.
    order: IntArray

    def placed(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return values of the nodes by place."""
        return values[self.order] if self.order.size else values

    @property
    def parents(self) -> IntArray:
        """Places of the nodes that have children."""
        return self.rows[3, :-1]


def levels(links: Links) -> Levels:
    """Lay a forest out level by level."""
    order = np.empty(links.forest.is_root.size, dtype=np.int64)
    rows = lay_out(links.forest, order)
    if (order[:-1] < order[1:]).all():
        order = order[:0]
    return Levels(rows, order)


@dataclass(frozen=True, eq=False)
class ActiveSet:
    """L2 projections onto one forest with one set of weights, pins and bounds."""

    levels: Levels
    # shape (3, n): By place: one over the weight (0 if pinned), lower bound and upper bound.
    leaf: FloatArray
    # shape (4, number of parents): Weight, lower bound, upper bound and kind (FREE or FIXED) of a
    # parent; bounds implied by others are infinite.
    inner: FloatArray
    sums: FloatArray  # Fixed values of the nodes that follow the entries of a vector.

    def solve(self, values: FloatArray) -> FloatArray | None:
        """Minimise ``sum(weight * (z - values)**2)`` over z that add up and keep pins and bounds.

        Returns ndarray of float64, shape (n,), or None if the optimality conditions are
        violated by more than 1e-9 of the largest number, a number is not finite, or no vector
        satisfies the conditions. `values` are used where measured or pinned.

        Notes
        -----
        Semismooth Newton steps on the prices of the sums, which is the primal-dual active set
        method (Hintermüller, Ito and Kunisch 2003). The total of a family's leaves is piecewise
        linear in the family's price, and convex if all bounds are lower bounds. A higher price of
        one family lowers the excess of adjacent families. So after the first step, from any start,
        all prices fall to the solution (the monotone Newton theorem; Ortega and Rheinboldt 1970,
        section 13.3). With upper bounds only, they rise. With both, convergence is not assured.
        """
        out = self._solve(values, 1)
        if out is None:
            return None
        z: FloatArray = out[0]
        return z[: values.size] if self.sums.size else z

    def solve_whole(self, values: FloatArray, words: Words) -> IntArray | None:
        """Round the closest point to the integers of least summed change that add up.

        Returns ndarray of int64, shape (n,), or None if `solve` returns None, a pin is not an
        integer, or the best integers are not among those tried near the point. Ties are broken by
        `words`, one a node.
        """
        found = self._solve(values, 2)
        if found is None:
            return None
        z, whole = found
        out = np.empty(z.size)
        task = (self.levels.rows, self.leaf, self.inner, whole, z, int(1.0 / tie_grid(z)))
        for spare in (0, _SPARE):
            if round_levels(*task, spare, words, out) == ROUNDED and is_least(*task, out):
                break
        else:
            return None
        out += whole
        if self.levels.order.size:
            whole[self.levels.order] = out
            out = whole
        return out[: values.size].astype(np.int64)

    def _solve(self, values: FloatArray, rows: int) -> FloatArray | None:
        if self.sums.size:
            values = np.concatenate((values, self.sums))
        if not values.flags.carray:
            values = values.copy()  # so that the kernel is compiled once
        out, laid = np.empty((rows, values.size)), self.levels
        off = solve(
            laid.rows, laid.order, self.leaf, self.inner, values, LARGEST, _MOST_ITERATIONS, out
        )
        return out if off <= TOLERANCE else None


def active_set(
    links: Links,
    sums: FloatArray,
    resolved: ResolvedInvariant,
    weight: FloatArray,
    *,
    integer: bool,
) -> ActiveSet | None:
    """Set up projections; None if an entry without children is neither pinned nor measured."""
    size = len(links.tree)
    pinned = np.ones(size, dtype=np.bool_)
    pinned[: resolved.n] = resolved.pinned
    limits = np.full((2, size), -np.inf)
    limits[:, : resolved.n] = resolved.lo, -resolved.hi
    if integer:
        limits = np.ceil(limits)
    full = np.zeros(size)
    full[: resolved.n] = weight
    if (links.tree.is_leaf & ~pinned & (full == 0.0)).any():
        return None
    laid = levels(links)
    give = np.divide(1.0, full, out=np.zeros(size), where=~pinned & (full > 0.0))
    leaf = np.array([laid.placed(row) for row in (give, *limits)])
    inner = np.zeros((4, laid.parents.size))
    inner[:3] = leaf[:, laid.parents]
    for side in (1, 2):
        drop_implied(laid.rows, leaf[side], inner[side])
    inner[3] = np.where(laid.placed(pinned)[laid.parents], FIXED, FREE)
    inner[0] = np.where(inner[3] == FIXED, 0.0, laid.placed(full)[laid.parents])
    leaf[2] *= -1.0
    inner[2] *= -1.0
    return ActiveSet(laid, leaf, inner, sums)
