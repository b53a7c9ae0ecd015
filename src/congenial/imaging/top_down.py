"""TopDown: consistency imposed level by level from the root."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from congenial.domain.tree import Tree
from congenial.domain.workload import Workload
from congenial.errors import ArgumentError, UnsupportedError
from congenial.imaging.noisy import Moved
from congenial.imaging.solvers.descent import Descent
from congenial.imaging.solvers.problem import nested_tree
from congenial.invariants.feasibility.feasible import check_feasible
from congenial.invariants.resolved import ResolvedInvariant, named
from congenial.invariants.written import Invariant, resolve_invariant
from congenial.noise.additive import Additive
from congenial.randomness import Randomness, resolve
from congenial.types import FloatArray, IntArray


def topdown(
    y: npt.ArrayLike,
    tree: Tree | Workload,
    invariant: Invariant,
    rng: Randomness | None = None,
    *,
    integer: bool = True,
) -> IntArray | FloatArray:
    """Impose consistency and bounds level by level from the root.

    Parameters
    ----------
    y : array_like of float, shape (n,)
        Noisy values; entries that the invariant publishes exactly hold their exact values.
    tree : Tree or Workload
        A workload whose entries are nested or disjoint.
    invariant : Invariant
        `consistent(tree)` (implied), pins and bounds.
    rng : Randomness, optional
        Breaks ties; `secure()` by default.
    integer : bool
        Round each family before its children's families; False leaves out all rounding.

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
        If the invariant has linear conditions besides the tree.

    Notes
    -----
    For each parent, its children's values are projected in L2 onto the values that add up to the
    parent's released value and lie in the ranges of their subtrees (for lower bounds of 0 the
    simplex; Michelot 1986). They are then rounded by largest remainder. Equal remainders are
    ordered at random, because an order by position would favour the first children. Lower levels
    never change a higher one, so errors are larger than with `project`.

    References
    ----------
    Abowd et al. (2022), The 2020 Census Disclosure Avoidance System TopDown Algorithm.
    """
    found = nested_tree(tree, "topdown")
    if not isinstance(integer, bool):
        raise ArgumentError(f"integer is {integer!r}; give True or False.")
    resolved = _covered(invariant, tree, found, whole=integer)
    return Descent(found, resolved, integer).apply(y, resolve(rng))


def _covered(
    invariant: Invariant, domain: Tree | Workload, tree: Tree, *, whole: bool
) -> ResolvedInvariant:
    """Resolve an invariant of pins and bounds on the tree, with the tree's sums."""
    resolved = resolve_invariant(invariant, len(tree), domain, whole=whole)
    if resolved.equalities[1].size or resolved.inequalities[1].size:
        raise UnsupportedError(
            "topdown covers pins and bounds on a tree, no further linear conditions; use project()."
        )
    if resolved.tree is not None and not np.array_equal(resolved.tree.parents, tree.parents):
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
    tree = mechanism.tree if isinstance(mechanism, Additive) else None
    if tree is None or mechanism.granularity != 1.0:
        raise ArgumentError(
            "topdown_image needs integer noise on a tree; give Additive(noise, tree) with a noise "
            "of granularity 1."
        )
    resolved = _covered(invariant, mechanism.domain or tree, tree, whole=True)
    return descending(mechanism, tree, resolved)


def descending(mechanism: Additive, tree: Tree, resolved: ResolvedInvariant) -> TopDown:
    """Return the TopDown mechanism; all leaves must be measured or published exactly."""
    open_ = ~(np.isfinite(mechanism.scales) | resolved.pinned)
    if open_[tree.leaves].any():
        leaf = named(mechanism.domain, int(tree.leaves[open_[tree.leaves]][0]))
        raise UnsupportedError(
            f"{leaf} is neither measured nor published exactly, so topdown has nothing to share "
            "the count above it by; give it a finite scale."
        )
    return TopDown(mechanism, resolved)


@dataclass(frozen=True, eq=False)
class TopDown(Moved):
    """An additive mechanism updated level by level; made by `topdown_image`."""

    @property
    def whole(self) -> bool:
        """Releases are integers."""
        return True

    @cached_property
    def descent(self) -> Descent:
        """The steps applied to the noisy values."""
        return Descent(self._tree, self.resolved, integer=True)

    def move(self, noisy: npt.ArrayLike, rng: Randomness) -> IntArray:
        """Go down from the root."""
        return np.asarray(self.descent.apply(self.summed(noisy), rng), dtype=np.int64)

    def summed(self, noisy: npt.ArrayLike) -> FloatArray:
        """Set nodes that are not measured to the sums of the nodes below."""
        values = np.array(noisy, dtype=np.float64)
        tree = self._tree
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
        n, pinned = len(self._tree), int(self.resolved.pinned.sum())
        open_ = int((~np.isfinite(self.mechanism.scales) & ~self.resolved.pinned).sum())
        sums = f"; {open_} that are not measured are the sums of those below" if open_ else ""
        return (
            f"topdown: adds {self.mechanism.noise.name} noise to {n - pinned - open_} of {n} "
            f"queries ({pinned} published exactly{sums}), then goes down from the root: the "
            "children of each node are moved to the closest counts, in L2, that add up to it, and "
            "rounded by largest remainder, ties at random. This uses only the noisy values and the "
            "counts published exactly, so it costs no privacy; finer levels never correct a "
            "coarser one, and where bounds bind it adds bias."
        )

    @property
    def _tree(self) -> Tree:
        tree = self.mechanism.tree
        if tree is None:  # topdown_image refuses it
            raise UnsupportedError("topdown needs noise on a tree; give Additive(noise, tree).")
        return tree
