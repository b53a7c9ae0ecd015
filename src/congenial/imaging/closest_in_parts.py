"""`project_by_parts(y, C, level)`: the closest point of a tree, worked out part by part."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from congenial.domain.given import as_array
from congenial.domain.tree import Tree, TreeSplit, at_nodes
from congenial.domain.workers import HERE, Workers
from congenial.errors import ArgumentError, UnsupportedError
from congenial.imaging.closest import NORMS, Norm, check_zeros, imposed
from congenial.imaging.solvers.part_curves import Fetch, Store, TreePiece, round_parts, solve_parts
from congenial.imaging.solvers.problem import checked_values, checked_weights, nested_tree
from congenial.imaging.solvers.two_pass import tie_grid
from congenial.invariants.feasibility.feasible import check_feasible
from congenial.invariants.resolved import ResolvedInvariant
from congenial.invariants.written import Invariant, resolve_invariant
from congenial.randomness import Randomness, resolve
from congenial.types import FloatArray, IntArray


def project_by_parts(
    y: npt.ArrayLike,
    invariant: Invariant,
    level: int,
    weights: npt.ArrayLike | None = None,
    norm: Norm = "l2",
    integer: bool = False,
    rng: Randomness | None = None,
) -> FloatArray | IntArray:
    """Return the point of a tree that is closest to `y`, worked out part by part.

    The tree is cut at a level, into the top and a part below each node of the level. Besides
    vectors over the tree, memory holds the curves of the top, or those of one part. The point is
    that of `project`, up to rounding.

    Parameters
    ----------
    y : array_like of float, shape (n,)
        Noisy values, as for `project`.
    invariant : Invariant
        Consistency of a tree, bounds, and nodes published exactly.
    level : int
        Depth of the level; 0 is that of the roots.
    weights : array_like of float, shape () or (n,), optional
        Nonnegative, 1 by default; 0 for an entry that is not measured.
    norm : {"l2"}
        The norm; L1 is not covered.
    integer : bool
        Round the closest point to the integers of least summed change, as `project`.
    rng : Randomness, optional
        Breaks ties between integers; `secure()` by default.

    Returns
    -------
    ndarray, shape (n,)
        int64 where `integer`, float64 otherwise.

    Raises
    ------
    ArgumentError
        If an argument has the wrong shape or value, or there are no nodes below the level.
    UnsupportedError
        If margins cross, a condition joins counts other than by the sums of the tree, or the norm
        is L1.
    InfeasibleError, InvariantError, NumericalError
        As `project`.

    Notes
    -----
    Each part is worked out twice: for its curve, and for its values. With bounds, it is worked out
    more often if its curve has more points than are sent at a time. Integers take the same again.

    Examples
    --------
    >>> import congenial as cg
    >>> tree = cg.Tree.from_paths(["all/a/1", "all/a/2", "all/b/3", "all/b/4"])
    >>> obeying = cg.consistent(tree) & cg.nonnegative()
    >>> y = [9, 6, 4, 3, 3, 6, -2]
    >>> cg.imaging.project_by_parts(y, obeying, level=1).round(2).tolist()
    [9.85, 5.77, 3.38, 2.38, 4.08, 4.08, 0.0]
    """
    array = as_array("the entries of y", y)
    if array.ndim != 1 or array.size == 0:
        raise ArgumentError(f"y has shape {array.shape}; give one value an entry, shape (n,).")
    if not isinstance(integer, bool):
        raise ArgumentError(f"integer is {integer!r}; give True or False.")
    if norm not in NORMS:
        raise ArgumentError(f"norm is {norm!r}; give 'l2'.")
    if norm != "l2":
        raise UnsupportedError(f"norm is {norm!r}, which is not covered in parts; use project().")
    domain = imposed(invariant, array.size)
    if domain is None:
        raise ArgumentError("the invariant has no sums of a tree to cut; add consistent(tree).")
    split = nested_tree(domain, "project_by_parts()").split(level)
    resolved = resolve_invariant(invariant, array.size, domain, whole=integer)
    check_feasible(resolved, invariant, whole=integer)
    weight = checked_weights(weights, resolved.n)
    values = checked_values(array, resolved.n, resolved.pinned | (weight > 0), domain)
    check_zeros(resolved, 1.0 if weights is None else weights, array)
    resolved = resolved.with_pins(values)
    if resolved.joins_parts:
        raise UnsupportedError(
            "the invariant compares or adds up counts of several parts; leave out linear(), "
            "at_least() and at_least_as_many(), or use project()."
        )
    pieces = _Pieces(split, resolved, values, weight, whole=integer)
    z, top = np.empty(resolved.n), pieces.top
    z[split.nodes] = solve_parts(top, split.roots, pieces.fetch, pieces.storing(z))
    if not integer:
        return z
    out, largest = np.empty(resolved.n), float(np.abs(z).max())
    closest = ClosestPoint(top, split.roots, pieces.fetch, lambda k: z[split.part(k).nodes])
    store = pieces.storing(out)
    out[split.nodes] = closest.rounded(z[split.nodes], largest, store, resolve(rng))
    return np.rint(out).astype(np.int64)


@dataclass(frozen=True, eq=False)
class ClosestPoint:
    """The closest point of a tree, part by part."""

    top: TreePiece
    roots: IntArray  # Nodes of the top with a part below them.
    fetch: Fetch  # Returns a part with its noisy values, by its number.
    values_of: Callable[[int], FloatArray]  # Returns the closest values of a part.

    def rounded(
        self,
        z: FloatArray,
        largest: float,
        store: Store,
        rng: Randomness,
        workers: Workers = HERE,
    ) -> FloatArray:
        """Round to the integers of least summed change; return those of the top.

        `z` has the closest values of the top, and `largest` is the largest of all values. For the
        others see `round_parts`, also for the errors raised.
        """
        near = _NearGrid(self.fetch, self.values_of, float(tie_grid(np.array([largest]))))
        return round_parts(near.moved(self.top, z), self.roots, near, store, rng, workers)


@dataclass(frozen=True, eq=False)
class _NearGrid:
    """Fetches a part whose closest values are moved to a grid."""

    fetch: Fetch
    values_of: Callable[[int], FloatArray]
    grid: float

    def __call__(self, number: int) -> TreePiece:
        return self.moved(self.fetch(number), self.values_of(number))

    def moved(self, piece: TreePiece, z: FloatArray) -> TreePiece:
        """Return a piece with its closest values, moved to the grid."""
        near = np.rint(np.where(piece.resolved.pinned, piece.y, z) / self.grid) * self.grid
        return replace(piece, y=near, weight=np.broadcast_to(1.0, z.shape))


@dataclass(frozen=True, eq=False)
class _Pieces:
    """The top and the parts of a tree whose values are in memory."""

    split: TreeSplit
    resolved: ResolvedInvariant
    values: FloatArray
    weight: FloatArray
    whole: bool

    @property
    def top(self) -> TreePiece:
        """The nodes down to the cut."""
        return self._piece(self.split.nodes, self.split.top)

    def fetch(self, number: int) -> TreePiece:
        """Return a part."""
        part = self.split.part(number)
        return self._piece(part.nodes, part.tree)

    def storing(self, out: FloatArray) -> Store:
        """Return what stores the values of parts in a vector of all values."""

        def store(part: TreePiece, z: FloatArray) -> None:
            out[part.nodes] = z

        return store

    def _piece(self, nodes: IntArray, tree: Tree) -> TreePiece:
        here = self.resolved.restricted(nodes, tree)
        given = at_nodes(self.values, nodes), at_nodes(self.weight, nodes)
        return TreePiece(nodes, tree, here, *given, whole=self.whole)
