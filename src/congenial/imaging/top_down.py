"""TopDown: consistency imposed level by level from the root."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from congenial.domain.tree import Tree
from congenial.domain.workload import Workload
from congenial.errors import ArgumentError, UnsupportedError
from congenial.imaging.closest import Projector
from congenial.imaging.noisy import Moved, Values, precision
from congenial.imaging.solvers.cell_descent import CellDescent, Limits, NoTableBelowError
from congenial.imaging.solvers.descent import Descent
from congenial.imaging.solvers.problem import checked_weights
from congenial.imaging.update import Imaged
from congenial.invariants.feasibility.feasible import check_feasible
from congenial.invariants.resolved import ResolvedInvariant, checked_draws, named
from congenial.invariants.written import Invariant, resolve_invariant
from congenial.noise.additive import Additive
from congenial.randomness import Randomness, resolve
from congenial.types import BoolArray, FloatArray, IntArray

log = logging.getLogger("congenial.imaging")
_CLOSEST = (
    "topdown found no table within the bounds and the exact counts when it went down from the "
    "root; the closest table is taken instead, as with imaging"
)


def topdown(
    y: npt.ArrayLike,
    tree: Tree | Workload,
    invariant: Invariant,
    rng: Randomness | None = None,
    *,
    integer: bool = True,
    weights: npt.ArrayLike | None = None,
) -> IntArray | FloatArray:
    """Impose consistency and bounds level by level from the root.

    Parameters
    ----------
    y : array_like of float, shape (n,)
        Noisy values; entries that the invariant publishes exactly hold their exact values.
    tree : Tree or Workload
        Margins of a workload may cross.
    invariant : Invariant
        `consistent(tree)` (implied), pins and bounds.
    rng : Randomness, optional
        Breaks ties; `secure()` by default.
    integer : bool
        Round each family before its children's families; False leaves out all rounding.
    weights : array_like of float, shape () or (n,), optional
        For margins that cross: one over the variance of each entry's noise, 0 for one that is not
        measured; 1 by default. Along a tree all children of a node weigh the same.

    Returns
    -------
    ndarray, shape (n,)
        int64 where `integer`, float64 otherwise.

    Raises
    ------
    ArgumentError
        If an argument has the wrong shape or value.
    InfeasibleError
        If no vector satisfies the invariant.
    NumericalError
        If the numbers are too far apart for double precision.
    UnsupportedError
        If the invariant has linear conditions besides the tree, or a cell at the finest level is
        neither measured nor published exactly.

    Notes
    -----
    On a tree: for each parent, its children's values are projected in L2 onto the values that add
    up to the parent's released value and lie in the ranges of their subtrees (for lower bounds of 0
    the simplex; Michelot 1986). They are then rounded by largest remainder. Equal remainders are
    ordered at random, because an order by position would favour the first children. Lower levels
    never change a higher one, so errors are larger than with `project`.

    Where margins cross, every node of the geography has a table of cells. For each parent, the
    measured margins of all its children are fitted together by weighted least squares, so that the
    children's cells add up to the parent's and keep their bounds, structural zeros and exact
    counts. Each cell is then rounded down or up, so that the children's cells still add up and the
    margins change little: from a start by least cost, units move between children and cells as long
    as the summed change of all counts falls. Ties are broken at random. Margins and cells that a
    level does not measure take the sums of those below it, with their variances.

    Bounds of an area hold for the sums of the areas above it, so that a parent's cells leave its
    children room. Bounds on margins that cross can leave none all the same; then the result is the
    closest point of all, as of `congenial.project`. The log `congenial.imaging` says so.

    References
    ----------
    Abowd et al. (2022), The 2020 Census Disclosure Avoidance System TopDown Algorithm.
    """
    if not isinstance(tree, Tree | Workload):
        raise ArgumentError(f"tree is a {type(tree).__name__}; give a Tree or a Workload.")
    if not isinstance(integer, bool):
        raise ArgumentError(f"integer is {integer!r}; give True or False.")
    found = tree.tree if isinstance(tree, Workload) else tree
    resolved = _covered(invariant, tree, found, whole=integer)
    if isinstance(tree, Workload) and (found is None or len(resolved.linked)):
        weight = checked_weights(weights, len(tree))
        _check_measured(weight > 0.0, resolved, tree, tree.cells)
        source = resolve(rng)
        try:
            return CellDescent(tree, resolved, weight, integer).apply(y, source)
        except NoTableBelowError:
            log.warning(_CLOSEST)
            known = np.where(resolved.pinned, 0.0, weight)
            return Projector(resolved, known, "l2", integer).apply(y, source)
    if weights is not None or found is None:
        raise ArgumentError("weights is given for a tree; leave it out.")
    return Descent(found, resolved, integer).apply(y, resolve(rng))


def _covered(
    invariant: Invariant, domain: Tree | Workload, tree: Tree | None, *, whole: bool
) -> ResolvedInvariant:
    """Resolve an invariant of pins and bounds on a tree or a workload, with its sums."""
    resolved = resolve_invariant(invariant, len(domain), domain, whole=whole)
    if resolved.equalities[1].size or resolved.at_least[1].size:
        raise UnsupportedError(
            "topdown covers pins, bounds and at_least_as_many(), no further linear conditions; use "
            "project()."
        )
    imposed = resolved.tree
    if imposed is not None and tree is not None and not imposed.same_as(tree):
        raise ArgumentError(
            "the invariant imposes another tree than the one given; give the same tree to both."
        )
    resolved = replace(
        resolved, tree=tree, workload=domain if isinstance(domain, Workload) else None
    )
    check_feasible(resolved, invariant, whole=whole)
    return resolved


def topdown_image(mechanism: Additive, invariant: Invariant) -> TopDown:
    """Update a mechanism by TopDown: noise first, then `topdown`.

    Parameters
    ----------
    mechanism : Additive
        Integer noise on the nodes of a tree; the leaves that are not published exactly are
        measured.
    invariant : Invariant
        As for `topdown`.

    Returns
    -------
    TopDown

    Raises
    ------
    ArgumentError
        If the mechanism has no tree, or its noise is not on integers.
    UnsupportedError
        If the invariant has linear conditions besides the tree, or a leaf is not measured.
    """
    domain = mechanism.domain if isinstance(mechanism, Additive) else None
    if domain is None:
        raise ArgumentError(
            "topdown_image needs noise on a tree or a workload; give Additive(noise, tree)."
        )
    if mechanism.granularity != 1.0:
        raise ArgumentError(
            f"the noise has granularity {mechanism.granularity:g}, and topdown_image releases "
            "integers; give noise of granularity 1."
        )
    return descending(mechanism, _covered(invariant, domain, mechanism.tree, whole=True))


def descending(mechanism: Additive, resolved: ResolvedInvariant) -> TopDown:
    """Return the TopDown mechanism; all leaves must be measured or published exactly."""
    domain = mechanism.domain
    if domain is not None:
        leaves = domain.leaves if isinstance(domain, Tree) else domain.cells
        _check_measured(np.isfinite(mechanism.scales), resolved, domain, leaves)
    return TopDown(mechanism, resolved)


def _check_measured(
    measured: BoolArray, resolved: ResolvedInvariant, domain: Tree | Workload, leaves: IntArray
) -> None:
    open_ = leaves[~(measured | resolved.pinned | (resolved.lo == resolved.hi))[leaves]]
    if open_.size:
        raise UnsupportedError(
            f"{named(domain, int(open_[0]))} is neither measured nor published exactly, so topdown "
            "cannot divide the count above it; give it a finite scale."
        )


@dataclass(frozen=True, eq=False)
class TopDown(Moved):
    """An additive mechanism updated level by level; made by `topdown_image`."""

    @property
    def whole(self) -> bool:
        """Releases are integers."""
        return True

    @property
    def _tree(self) -> Tree | None:
        """The tree, where no counts of its tables are compared."""
        return None if len(self.resolved.linked) else self.mechanism.tree

    @cached_property
    def descent(self) -> Descent | CellDescent:
        """The steps applied to the noisy values."""
        tree, workload = self._tree, self.mechanism.workload
        if tree is not None:
            return Descent(tree, self.resolved, integer=True)
        if workload is None:  # topdown_image refuses it
            raise UnsupportedError("topdown needs noise on a tree; give Additive(noise, tree).")
        return CellDescent(workload, self.resolved, precision(self.mechanism), integer=True)

    def check_exact(self, counts: npt.ArrayLike) -> None:
        """Refuse counts published exactly for which bounds leave no table; read no other count.

        Where margins cross, only bounds are compared; the draw itself finds other contradictions.
        """
        if isinstance(self.descent, CellDescent):
            self.descent.limits(counts)

    @property
    def projection(self) -> Imaged:
        """Imaging, whose table is released if margins cross and the descent finds none."""
        return Imaged(self.mechanism, self.resolved, "l2", integer=True)

    def move(self, noisy: npt.ArrayLike, rng: Randomness) -> IntArray:
        """Go down from the root, or return the closest table if the descent finds none."""
        return self._moved(noisy, rng, None)

    def _moved(
        self, noisy: npt.ArrayLike, rng: Randomness, limits: list[Limits] | None
    ) -> IntArray:
        descent, values = self.descent, self.summed(noisy)
        if not isinstance(descent, CellDescent):
            return np.asarray(descent.apply(values, rng), dtype=np.int64)
        try:
            return np.asarray(descent.apply(values, rng, limits), dtype=np.int64)
        except NoTableBelowError:
            log.warning(_CLOSEST)
            return np.asarray(self.projection.move(noisy, rng), dtype=np.int64)

    def apply_all(self, noisy: Values, rng: Randomness) -> Values:
        """Go down from the root, with bounds worked out once where margins cross."""
        if not isinstance(self.descent, CellDescent) or not len(noisy):
            return super().apply_all(noisy, rng)
        limits = self.descent.limits(noisy[0])
        drawn = np.array([self._moved(one, rng, limits) for one in noisy])
        return checked_draws(self.resolved, drawn, noisy[0])

    def summed(self, noisy: npt.ArrayLike) -> FloatArray:
        """Set nodes of a tree that are not measured to the sums of the nodes below."""
        values = np.array(noisy, dtype=np.float64)
        tree = self._tree
        if tree is None:
            return values
        unmeasured = ~(np.isfinite(self.mechanism.scales) | self.resolved.pinned)
        # from the deepest level up: a sum is complete before it is used
        for depth in range(tree.depth - 1, -1, -1):
            here = np.flatnonzero(unmeasured & (tree.level == depth))
            if here.size:
                below = np.flatnonzero(tree.level == depth + 1)
                sums = np.zeros(len(tree))
                np.add.at(sums, tree.parents[below], values[below])
                values[here] = sums[here]
        return values

    def explain(self) -> str:
        """Say how a release is drawn, and why so."""
        n, pinned = self.mechanism.n, int(self.resolved.pinned.sum())
        open_ = int((~np.isfinite(self.mechanism.scales) & ~self.resolved.pinned).sum())
        sums = f"; {open_} that are not measured are the sums of those below" if open_ else ""
        how = (
            "the children of each node are moved to the closest counts (least sum of squares) that "
            "add up to it, and rounded (largest fractions up, ties at random)"
        )
        if self._tree is None:
            how = (
                "the measured margins of each area's parts are fitted together by weighted least "
                "squares under the cells of the area, and the cells rounded so that they add up "
                "and the margins change little, ties at random"
            )
        if len(self.resolved.linked):
            how += (
                "; tables with smaller counts come first, and are lower bounds of the larger ones"
            )
        return (
            f"topdown: adds {self.mechanism.noise.name} noise to {n - pinned - open_} of {n} "
            f"counts ({pinned} published exactly{sums}), then goes down from the root: {how}. "
            "This uses only the noisy counts and the counts published exactly, so it costs no "
            "privacy. Finer levels never correct a coarser one. Counts near a bound are biased."
        )
