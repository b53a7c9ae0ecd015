"""The closest point of an invariant."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from congenial.domain.given import as_array
from congenial.domain.tree import Tree
from congenial.domain.workload import Workload
from congenial.errors import ArgumentError, InvariantError, UnsupportedError
from congenial.imaging.solvers.active_set import ActiveSet, active_set
from congenial.imaging.solvers.cell_descent import CellDescent
from congenial.imaging.solvers.closest_cells import crossing_tables, linked_tables, solve_cells
from congenial.imaging.solvers.dense import LONGEST, solve_dense
from congenial.imaging.solvers.general import check_solvers, solve_general
from congenial.imaging.solvers.problem import (
    NO_WORDS,
    Links,
    as_floats,
    checked_values,
    checked_weights,
    link,
    prepare,
)
from congenial.imaging.solvers.rounding_general import round_general
from congenial.imaging.solvers.shares import Families, checked_shares, families, share_out
from congenial.imaging.solvers.sparse import solve_sparse
from congenial.imaging.solvers.two_pass import round_whole, solve_l1, solve_l2
from congenial.invariants.feasibility.feasible import check_feasible
from congenial.invariants.resolved import ResolvedInvariant
from congenial.invariants.written import Consistent, Invariant, resolve_invariant
from congenial.noise.law import too_far_from_zero
from congenial.randomness import Randomness, resolve
from congenial.types import FloatArray, IntArray
from congenial.wording import many

Norm = Literal["l2", "l1"]
NORMS: tuple[Norm, ...] = ("l2", "l1")
# Most entries of a dense programme with bounds, whose point is exact up to rounding. Its work grows
# with their third power: 6 ms at 120, as long as the sparse one, and 30 s at 1,500.
DENSE = 120


def project(
    y: npt.ArrayLike,
    invariant: Invariant,
    weights: npt.ArrayLike | None = None,
    norm: Norm = "l2",
    integer: bool = False,
    rng: Randomness | None = None,
    *,
    beta: npt.ArrayLike | None = None,
) -> FloatArray | IntArray:
    """Return the point of an invariant that is closest to `y`.

    Parameters
    ----------
    y : array_like of float, shape (n,)
        Noisy values. Entries that the invariant publishes exactly hold their exact values; entries
        of weight 0 are not used (NaN is allowed there).
    invariant : Invariant
        A tree that adds up with any pins and bounds, or a plain vector with sums over disjoint
        sets of entries, pins and bounds; for L2 also workloads whose margins cross, and any linear
        conditions on up to 2000 entries (with bounds, inequalities or integers by the solvers of
        the extra `imaging`).
    weights : array_like of float, shape () or (n,), optional
        Nonnegative, 1 by default; 0 for an entry that is not measured. Weights further apart than
        1e12 are brought to that ratio.
    norm : {"l2", "l1"}
        Minimise ``sum(w * (z - y)**2)`` or ``sum(w * abs(z - y))``.
    integer : bool
        Return integers. For "l1", the closest integers. For "l2", the closest real point rounded
        to the integers of least summed change ``sum(abs(change))`` over all nodes that add up and
        keep bounds and pins.
    rng : Randomness, optional
        Breaks ties between integers; `secure()` by default. Ties never go by position.
    beta : float, or array_like of float of shape (n,), optional
        Selects one of the closest points in L1, for sums of single entries that are published
        exactly, without bounds. Each entry takes its share of the gap between its sum and the exact
        total; shares add up to 1 over the free entries of a sum. A number stands for the shares
        ``(1 - beta, beta)`` of a sum of two, so the first entry keeps the weight beta of its noise.

    Returns
    -------
    ndarray, shape (n,)
        int64 where `integer`, float64 otherwise (sums then hold up to rounding).

    Raises
    ------
    ArgumentError
        If an argument has the wrong shape or value.
    InfeasibleError
        If no vector satisfies the invariant.
    InvariantError
        If `y` is 0 at every root, published exactly, so that large entries would all come to 0.
    NumericalError
        If the solution violates its optimality conditions by more than 1e-9 of the largest number.
    UnsupportedError
        If no method covers the combination.

    Notes
    -----
    L1 projections are not unique. By default the children of each parent move by equal amounts.
    Under one sum of entries of equal weight, the closest points are those of all nonnegative
    shares. With unequal weights, only entries of the least weight move.

    References
    ----------
    Two Views, equation 5 (imaging as projection); Hay, Rastogi, Miklau and Suciu (2010); Gong and
    Meng (2020), Example 4.1, for beta.

    Examples
    --------
    >>> import congenial as cg
    >>> tree = cg.Tree.from_parents([-1, 0, 0])
    >>> project([10.0, 3.0, 4.0], cg.consistent(tree) & cg.exactly("root")).tolist()
    [10.0, 4.5, 5.5]
    """
    array = as_array("the entries of y", y)
    if array.ndim != 1 or array.size == 0:
        raise ArgumentError(f"y has shape {array.shape}; give one value an entry, shape (n,).")
    domain = imposed(invariant, array.size)
    resolved = resolve_invariant(invariant, array.size, domain, whole=integer is True)
    check_feasible(resolved, invariant, whole=integer is True)
    made = Projector(resolved, checked_weights(weights, resolved.n), norm, integer, beta)
    check_zeros(resolved, 1.0 if weights is None else weights, array)
    return made.apply(array, rng)


def check_zeros(resolved: ResolvedInvariant, weights: npt.ArrayLike, y: npt.NDArray[Any]) -> None:
    """Refuse roots given as 0 and published exactly, under which all entries would come to 0.

    Noise of standard deviation 1 / sqrt(weight) around true counts of 0 is let through: the sum of
    its sizes passes the limit with a probability below 1e-17.
    """
    tree = resolved.tree
    if tree is None or not resolved.pinned[tree.roots].all() or y[tree.roots].any():
        return
    weight = np.broadcast_to(np.asarray(weights, dtype=np.float64), y.shape)
    used = (weight > 0) & ~resolved.pinned
    sizes = np.abs(y[used]) * np.sqrt(weight[used])
    if (y[used] > 0).any() and too_far_from_zero(sizes) and (resolved.lo[tree.leaves] >= 0).all():
        raise InvariantError(
            f"y is 0 at {resolved.name(int(tree.roots[0]))}, which is published exactly, and large "
            "below it, so that every released count would be 0; give the exact count there."
        )


def imposed(invariant: Invariant, size: int) -> Tree | Workload | None:
    """The tree or workload whose names an invariant may use; refuse a `y` of another size."""
    parts = getattr(invariant, "parts", ())
    domain = next((p.domain for p in parts if isinstance(p, Consistent)), None)
    if domain is not None and len(domain) != size:
        raise ArgumentError(
            f"y has {many(size, 'value')}, and the {type(domain).__name__.lower()} that the "
            f"invariant imposes has {len(domain):,} counts; give a value for each."
        )
    return domain


@dataclass(frozen=True, eq=False)
class Projector:
    """A projection with everything given except the vector."""

    resolved: ResolvedInvariant
    weight: FloatArray  # shape (n,): From `checked_weights`.
    norm: Norm
    integer: bool
    beta: npt.ArrayLike | None = None

    def __post_init__(self) -> None:
        """Check the norm and that a method covers the combination."""
        if self.norm not in NORMS:
            raise ArgumentError(f"norm is {self.norm!r}; give 'l2' or 'l1'.")
        if not isinstance(self.integer, bool):
            raise ArgumentError(f"integer is {self.integer!r}; give True or False.")
        if self.beta is not None and (self.norm != "l1" or self.integer):
            raise ArgumentError(
                "beta is given and the image is not a real L1 image; use norm='l1' and "
                "integer=False, or leave beta out."
            )
        _ = self.shares
        if self.forest is None:
            if self.norm == "l1":
                raise UnsupportedError(
                    "the L1 norm is not covered where sums cross or at_least() applies; use "
                    "norm='l2', a tree, or sums over disjoint entries."
                )
            if self.integer or self.resolved.has_inequalities or self.resolved.n > LONGEST:
                check_solvers()

    @cached_property
    def forest(self) -> tuple[Links, FloatArray] | None:
        """The forest of sums and the values of the fixed sums; None if the sums are no forest."""
        resolved = self.resolved
        if resolved.n_inequalities:
            return None
        matrix, value = resolved.equalities
        if resolved.tree is not None:
            return (link(resolved.tree, resolved.n), np.zeros(0)) if value.size == 0 else None
        if resolved.sums is not None:
            return None
        parents = np.full(resolved.n + value.size, -1, dtype=np.int64)
        sums = np.zeros(value.size)
        for j in range(value.size):
            members = np.flatnonzero(matrix[j])
            if members.size == 0 or (parents[members] >= 0).any():
                return None
            factor = matrix[j, members[0]]
            if (matrix[j, members] != factor).any():
                return None
            parents[members] = resolved.n + j
            sums[j] = value[j] / factor
        return link(Tree.from_parents(parents), resolved.n), sums

    @cached_property
    def active_set(self) -> ActiveSet | None:
        """Fast solver for the closest point in L2 on a forest; None if it does not apply."""
        if self.norm != "l2" or self.forest is None or self.resolved.relative.size:
            return None
        return active_set(*self.forest, self.resolved, self.weight, integer=self.integer)

    @cached_property
    def shares(self) -> tuple[Families, FloatArray] | None:
        """The sums and each entry's share of its sum's gap; None if beta is not given."""
        if self.beta is None or self.forest is None:
            return None
        sums = families(self.forest[0], self.resolved)
        return sums, checked_shares(self.beta, sums, self.resolved, self.weight)

    def apply(self, y: npt.ArrayLike, rng: Randomness | None = None) -> FloatArray | IntArray:
        """Project one vector, shape (n,)."""
        # short projections are made by the thousand, so unneeded steps are skipped
        source = None if rng is None and not self.integer else resolve(rng)
        fast = self.active_set
        if fast is not None:
            given = as_floats(y, self.resolved.n)
            if source is None or not self.integer:
                found: FloatArray | IntArray | None = fast.solve(given)
            else:
                found = fast.solve_whole(given, source.bits(given.size + fast.sums.size))
            if found is not None:
                return found
        source = resolve(source)
        needed = self.resolved.pinned | (self.weight > 0)
        values = checked_values(
            y, self.resolved.n, needed, self.resolved.workload or self.resolved.tree
        )
        resolved = self.resolved.with_pins(values)
        if self.forest is None:
            return self._apply_general(resolved, values, source)
        links, sums = self.forest
        if self.shares is not None:
            return share_out(self.shares[0], sums, self.shares[1], values)
        task = prepare(links, resolved, sums, values, self.weight, integer=self.integer)
        words = source.bits(task.y.size) if self.integer else NO_WORDS
        if self.norm == "l1":
            z = solve_l1(task, words)
        else:
            z = solve_l2(task)
            if self.integer:
                z = round_whole(task, z, words)
        out = task.released(z)
        return np.rint(out).astype(np.int64) if self.integer else out

    def _apply_general(
        self, resolved: ResolvedInvariant, values: FloatArray, source: Randomness
    ) -> FloatArray | IntArray:
        """Project under conditions that are not a forest."""
        z, rounding = self._closest_general(resolved, values)
        if not self.integer:
            return z
        if rounding is not None:
            return rounding.apply(z, source)
        return round_general(resolved, z, source.bits(resolved.n)).astype(np.int64)

    def rounding(self, y: npt.ArrayLike) -> tuple[FloatArray, CellDescent | None]:
        """Return the closest point, shape (n,), and the descent that rounds it, area by area.

        The descent is None if the point is rounded as a whole.
        """
        values = np.asarray(y, dtype=np.float64)
        if self.forest is None:
            return self._closest_general(self.resolved.with_pins(values), values)
        return np.asarray(replace(self, integer=False).apply(values)), None

    def _closest_general(
        self, resolved: ResolvedInvariant, values: FloatArray
    ) -> tuple[FloatArray, CellDescent | None]:
        short = resolved.n <= DENSE
        descent = None if short else crossing_tables(resolved, self.weight)
        cells = None if descent is None else solve_cells(descent, values)
        if descent is not None and cells is not None:
            return cells, replace(descent, weight=np.ones(resolved.n), integer=True, repairs=True)
        solve, longest = (
            (solve_general, DENSE) if resolved.has_inequalities else (solve_dense, LONGEST)
        )
        z = (solve_sparse if resolved.n > longest else solve)(resolved, values, self.weight)
        return z, None if short else linked_tables(resolved)
