"""`project_by_parts(y, C, level)`: the closest point of a tree, worked out part by part."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from congenial.domain.given import as_array
from congenial.domain.tree import Tree, TreeSplit, at_nodes
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
    domain = imposed(invariant)
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
    z = _solved(split, resolved, values, weight, solve_parts, whole=integer)
    if not integer:
        return z
    grid = tie_grid(z)
    z[resolved.pinned] = values[resolved.pinned]
    nearest, ones, source = np.rint(z / grid) * grid, np.broadcast_to(1.0, z.shape), resolve(rng)

    def rounded(top: TreePiece, roots: IntArray, fetch: Fetch, store: Store) -> FloatArray:
        return round_parts(top, roots, fetch, store, source.bits)

    z = _solved(split, resolved, nearest, ones, rounded, whole=True)
    return np.rint(z).astype(np.int64)


def _solved(
    split: TreeSplit,
    resolved: ResolvedInvariant,
    values: FloatArray,
    weight: FloatArray,
    solve: Callable[[TreePiece, IntArray, Fetch, Store], FloatArray],
    *,
    whole: bool,
) -> FloatArray:
    """Solve for all values, shape (n,), piece by piece."""
    out = np.empty(resolved.n)

    def piece(nodes: IntArray, tree: Tree) -> TreePiece:
        here = resolved.restricted(nodes, tree)
        given = at_nodes(values, nodes), at_nodes(weight, nodes)
        return TreePiece(nodes, tree, here, *given, whole=whole)

    def fetch(number: int) -> TreePiece:
        part = split.part(number)
        return piece(part.nodes, part.tree)

    def store(part: TreePiece, z: FloatArray) -> None:
        out[part.nodes] = z

    out[split.nodes] = solve(piece(split.nodes, split.top), split.roots, fetch, store)
    return out
