"""Sums over trees given by the parent of every node, -1 for a root."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import numpy.typing as npt

from congenial.kernels.numerics.compiling import njit

Scalar = TypeVar("Scalar", bound=np.generic)


def read_only(array: npt.NDArray[Scalar]) -> npt.NDArray[Scalar]:
    """Return a contiguous read-only view, so that all arrays of kernels have one type."""
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view


def compact(values: npt.NDArray[Scalar]) -> npt.NDArray[Scalar]:
    """Return a vector for kernels; it has one entry if all entries are equal by construction."""
    array = np.atleast_1d(values)
    return read_only(array[:1].copy() if array.strides == (0,) else array)


@njit()
def add_up(parents, bottom_up, total):
    """Add the value of every node to its parent's, in place.

    Nodes are visited in the order of `bottom_up`, or from the last to the first if it is empty.
    """
    n = parents.size
    for j in range(n):
        i = bottom_up[j] if bottom_up.size else n - 1 - j
        if parents[i] >= 0:
            total[parents[i]] += total[i]


@njit()
def add_up_rows(parents, inner, rows, total, same):
    """Fill `same` (r,): whether every node in `inner` equals the sum of its children.

    `inner` lists the nodes with children, `rows` is (r, n), and `total` (n,) is scratch. Children
    are added in the order of `add_up`.
    """
    for r in range(rows.shape[0]):
        values = rows[r]
        for v in inner:
            total[v] = 0
        for i in range(parents.size - 1, -1, -1):
            if parents[i] >= 0:
                total[parents[i]] += values[i]
        whole = True
        for v in inner:
            whole &= total[v] == values[v]
        same[r] = whole


@njit()
def numbers_above(parents, number, above):
    """Fill `above` (n,) with the number of every node's parent, -1 for a root."""
    for v in range(parents.size):
        above[v] = number[parents[v]] if parents[v] >= 0 else np.int32(-1)


@njit()
def mark_implied(parents, is_leaf, fixed, lo, below, implied):
    """Mark in `implied` the nodes whose lower bounds follow from the bounds of their children.

    `lo` has one entry, or one for each node; bounds of fixed nodes imply nothing. `below` and
    `implied`, both (n,), are zeros on entry.
    """
    step = 1 if lo.size > 1 else 0
    for i in range(parents.size):
        if parents[i] >= 0:
            below[parents[i]] += -np.inf if fixed[i] else np.ceil(lo[step * i])
    for i in range(parents.size):
        bound = np.ceil(lo[step * i])
        bounded = bound > -np.inf and not fixed[i] and not is_leaf[i]
        implied[i] = bounded and below[i] >= bound


@njit()
def climb(parents, bottom_up, is_leaf, pinned, cost, reach, leaf, best, runner):
    """Find the costliest paths upwards from a leaf that meet no pinned node (climbs).

    `reach` (n + 1,) gets the largest cost of a climb that ends at each node, -inf if there is none;
    `leaf`, where it starts; `best` and `runner`, the children at which the two costliest climbs
    end, the first ones of several; the last place is that of the roots. On entry, `reach` is -inf,
    and the others are -1, which stands for no node. Nodes are visited in the order of `add_up`.
    """
    n = parents.size
    for j in range(n):
        v = bottom_up[j] if bottom_up.size else n - 1 - j
        below = 0.0 if is_leaf[v] else reach[best[v]]
        leaf[v] = v if is_leaf[v] else leaf[best[v]]
        reach[v] = -np.inf if pinned[v] else below + cost[v]
        above = parents[v] if parents[v] >= 0 else n
        if best[above] < 0 or reach[v] >= reach[best[above]]:
            runner[above] = best[above]
            best[above] = v
        elif runner[above] < 0 or reach[v] >= reach[runner[above]]:
            runner[above] = v


@njit()
def complete(parents, bottom_up, pinned, cost, reach, best, runner, rest):
    """Fill `rest` (n,) with the largest cost that a pair of climbs has beyond each node's climb.

    Two climbs meet below a common parent, or end at two roots. The other arrays are those of
    `climb`. -inf where no second climb meets the first.
    """
    n = parents.size
    for j in range(n - 1, -1, -1):
        v = bottom_up[j] if bottom_up.size else n - 1 - j
        above = parents[v] if parents[v] >= 0 else n
        other = runner[above] if best[above] == v else best[above]
        rest[v] = reach[other]
        if above < n and not pinned[above]:
            rest[v] = max(rest[v], rest[above] + cost[above])
