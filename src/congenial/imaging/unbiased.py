"""Unbiased rounding to integers that keeps every sum of a tree."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from congenial.domain.tree import Tree
from congenial.domain.workload import Workload
from congenial.errors import ArgumentError, NumericalError
from congenial.imaging.solvers.active_set import levels
from congenial.imaging.solvers.problem import LARGEST, checked_values, link, nested_tree
from congenial.invariants.resolved import named
from congenial.kernels.projection.dependent import DONE, round_down, to_grid
from congenial.randomness import Randomness, resolve
from congenial.types import IntArray

# Largest distance to an integer at which a value counts as one, in steps of 2^-32.
_SNAP = 2**4
# Largest violation of a sum, relative to the largest value. A projection violates sums by the
# rounding errors of its measurements, which may be far larger than the values it returns.
_MISSED = 1e-6


def round_unbiased(
    z: npt.ArrayLike, tree: Tree | Workload, rng: Randomness | None = None
) -> IntArray:
    """Round every value of a tree down or up at random, so that sums hold and the mean is kept.

    Parameters
    ----------
    z : array_like of float, shape (n,)
        Values that add up along the tree, as `project` returns them.
    tree : Tree or Workload
        A workload whose entries are nested or disjoint.
    rng : Randomness, optional
        `secure()` by default.

    Returns
    -------
    ndarray of int64, shape (n,)
        At every node the integer below or above its value; they add up along the tree. The mean
        over `rng` is `z`, up to 2^-27 for each level above the node and up to the violation of the
        sums of `z` above it. Integers are unchanged, so pins and integer bounds still hold.

    Raises
    ------
    ArgumentError
        If `z` has the wrong shape, does not add up to 1e-6 of its largest number, an entry is not
        finite or beyond 2^53, or the integers next to its values do not reach its sums.
    NumericalError
        If the numbers are too far apart for double precision.
    UnsupportedError
        If the entries of a workload cross.

    Notes
    -----
    Unbiased controlled rounding (Cox 1987). Each parent distributes its rounded value among its
    children by systematic sampling (Madow and Madow 1944) in random order: their fractions lie end
    to end on a line, and a child is rounded up if a point of a grid of step 1 falls in its
    fraction. The start of the grid is uniform among the starts that give the parent's value. The
    parent is rounded up with the probability of its own fraction, so the start is uniform overall.
    The work is O(n).

    Fractions are multiples of 2^-32 that add up exactly. From the root down, a child's fraction is
    rounded to a step together with the errors of the children before it, so that the family's sum
    is the parent's. Values within 2^-28 of an integer count as integers if the other children can
    compensate. Rounding to the nearest integers with equal sums (`project(..., integer=True)`)
    changes less, but its mean is not `z`.

    References
    ----------
    Cox (1987), A constructive procedure for unbiased controlled rounding, JASA 82; Madow and Madow
    (1944), On the theory of systematic sampling, Annals of Mathematical Statistics 15.

    Examples
    --------
    >>> import congenial as cg
    >>> tree = cg.Tree.from_parents([-1, 0, 0, 0])
    >>> cg.imaging.round_unbiased([2.0, 0.5, 0.5, 1.0], tree, cg.seeded(1)).tolist()
    [2, 0, 1, 1]
    """
    found = nested_tree(tree, "round_unbiased")
    n = len(found)
    values = checked_values(z, n, np.ones(n, dtype=np.bool_), tree, "z")
    source = resolve(rng)
    laid = levels(link(found, n))
    whole, part = np.empty(n), np.empty(n, dtype=np.int64)
    slack = _MISSED * max(1.0, float(np.abs(values).max()))
    wrong = to_grid(laid.rows, laid.placed(values), _SNAP, slack, whole, part)
    if wrong >= 0:
        node = int(laid.order[wrong]) if laid.order.size else wrong
        raise ArgumentError(
            f"z does not add up at {named(tree, node)}; give values that do, as "
            "project() returns them."
        )
    out = np.empty(n)
    order = np.empty(n, dtype=np.int64)
    if round_down(laid.rows, whole, part, source.bits(n), order, out) != DONE:
        raise NumericalError(
            f"round_unbiased cannot keep sums exact beyond 2^{int(np.log2(LARGEST))}; give smaller "
            "values."
        )
    rounded = np.empty(n, dtype=np.int64)
    rounded[laid.order if laid.order.size else slice(None)] = out
    return rounded
