"""TopDown: consistency imposed level by level from the root."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from congenial.errors import ArgumentError, NumericalError, UnsupportedError
from congenial.imaging.problem import IntArray, checked_values, link, prepare
from congenial.imaging.rounding import tie_grid
from congenial.invariants import Invariant, requirements
from congenial.kernels.project_fill import top_down
from congenial.randomness import Randomness, resolve
from congenial.tree import Tree


def topdown(
    y: npt.ArrayLike, tree: Tree, invariant: Invariant, rng: Randomness | None = None
) -> IntArray:
    """Impose consistency and bounds level by level from the root, on integers.

    Parameters
    ----------
    y : array_like of float, shape (n,)
        Noisy values; entries that the invariant publishes exactly hold their exact values.
    tree : Tree
    invariant : Invariant
        `consistent(tree)` (implied), pins and bounds.
    rng : Randomness, optional
        Breaks ties; `secure()` by default.

    Returns
    -------
    ndarray of int64, shape (n,)

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
    For each parent: the L2 projection of its children's values onto those that add up to the
    parent's released value and keep to what their subtrees can reach (for lower bounds of 0, the
    simplex), then rounding by largest remainder. Equal remainders are ordered at random; by
    position they would favour the first children. Lower levels never change a higher one, which
    makes this worse than `project`; it is here to be compared with.

    References
    ----------
    Abowd et al. (2022), The 2020 Census Disclosure Avoidance System TopDown Algorithm.
    """
    if not isinstance(tree, Tree):
        raise ArgumentError(f"tree is a {type(tree).__name__}; give a Tree.")
    n = len(tree)
    need = requirements(invariant, n, tree)
    if need.equalities[1].size or need.inequalities[1].size:
        raise UnsupportedError(
            "topdown covers pins and bounds on a tree, no further linear conditions; use project()."
        )
    if need.tree is not None and not np.array_equal(need.tree.parents, tree.parents):
        raise ArgumentError(
            "the invariant imposes another tree than the one given; give the same tree to both."
        )
    source = resolve(rng)
    values = checked_values(y, n, np.ones(n, dtype=np.bool_))
    links = link(tree, n)
    task = prepare(links, need, np.zeros(0), values, np.ones(n), integer=True)
    z = np.zeros(n)
    top_down(
        links.starts,
        links.children,
        links.downward,
        links.is_root,
        task.y,
        task.lo,
        task.hi,
        tie_grid(task.y),
        source.bits(n),
        z,
    )
    out = np.rint(task.released(z)).astype(np.int64)
    if not tree.is_consistent(out) or (z < task.lo).any() or (z > task.hi).any():
        raise NumericalError(
            "topdown cannot keep the sums exact in double precision; give values of similar size."
        )
    return out
