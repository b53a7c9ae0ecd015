"""`project_by_parts(y, C, level)`: the closest point of a tree, worked out part by part."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from congenial.domain.given import as_array
from congenial.errors import ArgumentError, UnsupportedError
from congenial.imaging.closest import NORMS, Norm, check_zeros, imposed
from congenial.imaging.solvers.part_curves import TreePiece, solve_parts
from congenial.imaging.solvers.problem import checked_values, checked_weights, nested_tree
from congenial.invariants.feasibility.feasible import check_feasible
from congenial.invariants.written import Invariant, resolve_invariant
from congenial.types import FloatArray, IntArray


def project_by_parts(
    y: npt.ArrayLike,
    invariant: Invariant,
    level: int,
    weights: npt.ArrayLike | None = None,
    norm: Norm = "l2",
) -> FloatArray:
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

    Returns
    -------
    ndarray of float64, shape (n,)

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
    more often if its curve has more points than are sent at a time.

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
    if norm not in NORMS:
        raise ArgumentError(f"norm is {norm!r}; give 'l2'.")
    if norm != "l2":
        raise UnsupportedError(f"norm is {norm!r}, which is not covered in parts; use project().")
    domain = imposed(invariant)
    if domain is None:
        raise ArgumentError("the invariant has no sums of a tree to cut; add consistent(tree).")
    split = nested_tree(domain, "project_by_parts()").split(level)
    resolved = resolve_invariant(invariant, array.size, domain, whole=False)
    check_feasible(resolved, invariant, whole=False)
    weight = checked_weights(weights, resolved.n)
    values = checked_values(array, resolved.n, resolved.pinned | (weight > 0), domain)
    check_zeros(resolved, 1.0 if weights is None else weights, array)
    resolved = resolved.with_pins(values)
    if resolved.joins_parts:
        raise UnsupportedError(
            "the invariant compares or adds up counts of several parts; leave out linear(), "
            "at_least() and at_least_as_many(), or use project()."
        )
    out = np.empty(resolved.n)

    def fetch(number: int) -> TreePiece:
        part = split.part(number)
        here = resolved.restricted(part.nodes, part.tree)
        return TreePiece(part.nodes, part.tree, here, part.of(values), part.of(weight))

    def store(part: TreePiece, z: FloatArray) -> None:
        out[part.nodes] = z

    nodes: IntArray = split.nodes
    here = resolved.restricted(nodes, split.top)
    top = TreePiece(nodes, split.top, here, values[nodes], weight[nodes])
    out[nodes] = solve_parts(top, split.roots, fetch, store)
    return out
