"""Infeasible bounds on a tree, found by adding up the ranges of the children of every node.

The sum of a subtree takes exactly the integers (or reals) between two ends, so bounds on a tree are
infeasible only where a node's own bound excludes the range of its children's sum. An irreducible
infeasible subset is a node's bound on one side, the sums of a connected part of the tree below it,
and bounds on the other side of all nodes at which that part ends.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from congenial.domain.tree import Tree
from congenial.invariants.feasibility.single_invariants import SingleInvariant, SingleInvariants
from congenial.kernels.network import reaching
from congenial.kernels.numerics.trees import read_only
from congenial.types import FloatArray

# Relative error by which sums of bounds may differ through rounding.
_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class _Side:
    """Upper bounds of nodes and lower bounds of their children, or both with signs changed."""

    sign: int  # -1 if signs are changed.
    tree: Tree
    top: FloatArray  # shape (n,): The tightest bound above.
    own: FloatArray  # shape (n,): Lower bounds of single nodes; -inf for a node without one.
    every: float  # The lower bound that all nodes share.
    slack: float


@dataclass(frozen=True, eq=False)
class Ends:
    """The tightest bounds of every entry, and the invariants that impose them."""

    # `lo` and `hi`: shape (n,)
    lo: FloatArray
    hi: FloatArray
    # `lo_by` and `hi_by`: The invariants that impose bounds, other than bounds().
    lo_by: dict[int, SingleInvariant]
    hi_by: dict[int, SingleInvariant]

    def lower(self, v: int) -> SingleInvariant:
        """The invariant that imposes an entry's lower bound."""
        return self.lo_by.get(v, SingleInvariant("lower", v))

    def upper(self, v: int) -> SingleInvariant:
        """The invariant that imposes an entry's upper bound."""
        return self.hi_by.get(v, SingleInvariant("upper", v))


def tightest(single: SingleInvariants) -> Ends:
    """Combine bounds, pins, rows with a single entry, and pairs with a pinned entry."""
    resolved = single.resolved
    ends = Ends(single.lo.copy(), single.hi.copy(), {}, {})

    def tighten(v: int, low: float, high: float, by: SingleInvariant) -> None:
        if single.whole:
            low, high = float(np.ceil(low)), float(np.floor(high))
        if low > max(ends.lo[v], single.every[0]):
            ends.lo[v], ends.lo_by[v] = low, by
        if high < min(ends.hi[v], single.every[1]):
            ends.hi[v], ends.hi_by[v] = high, by

    for k, v, at in _single_rows(*resolved.equalities):
        tighten(v, at, at, SingleInvariant("linear", k))
    for k, v, at in _single_rows(*resolved.at_least):
        low, high = (at, np.inf) if resolved.at_least[0][k, v] > 0 else (-np.inf, at)
        tighten(v, low, high, SingleInvariant("at_least", k))
    known = dict(zip(single.pins.tolist(), single.values.tolist(), strict=True))
    for k, (more, fewer) in enumerate(resolved.pairs.tolist()):
        by = SingleInvariant("pair", k)
        if fewer in known:
            tighten(more, known[fewer], np.inf, by)
        if more in known:
            tighten(fewer, -np.inf, known[more], by)
    for v, at in known.items():
        tighten(v, at, at, SingleInvariant("pin", v))
    return ends


def _single_rows(matrix: FloatArray, values: FloatArray) -> list[tuple[int, int, float]]:
    """Each row with an entry: its number, its entry, and the value at which it holds exactly."""
    rows, entries = np.nonzero(matrix)
    ends = values[rows] / matrix[rows, entries]
    return list(zip(rows.tolist(), entries.tolist(), ends.tolist(), strict=True))


def on_hierarchy(single: SingleInvariants) -> list[SingleInvariant] | None:
    """Find an irreducible infeasible subset; every row has at most one entry."""
    ends = tightest(single)
    low, high = np.maximum(ends.lo, single.every[0]), np.minimum(ends.hi, single.every[1])
    alone = np.flatnonzero((low > high) | np.isposinf(low) | np.isneginf(high))
    found = [_alone(single, ends, int(v)) for v in alone]
    if found:
        return min(found, key=len)
    tree = single.tree
    if tree is None or not (np.isfinite(low).any() and np.isfinite(high).any()):
        return None
    slack = 0.0 if single.whole else _ROUNDING * _largest(low, high)
    sides = (
        _Side(1, tree, high, ends.lo, single.every[0], slack),
        _Side(-1, tree, -low, -ends.hi, -single.every[1], slack),
    )
    for side in sides:
        for shared in (False, True):
            one = _traced(side, shared=shared)
            if one is not None:
                found.append(_members(ends, side, one))
    return min(found, key=len, default=None)


def _largest(*ends: FloatArray) -> float:
    return max(1.0, *(float(np.abs(e[np.isfinite(e)]).max(initial=0.0)) for e in ends))


def _alone(single: SingleInvariants, ends: Ends, v: int) -> list[SingleInvariant]:
    low = ends.lower(v) if ends.lo[v] > single.every[0] else SingleInvariant("every", 0)
    high = ends.upper(v) if ends.hi[v] < single.every[1] else SingleInvariant("every", 1)
    return sorted({low, high})


@dataclass(frozen=True, eq=False)
class _Found:
    """A node whose bound is exceeded, the sums followed from it, and the nodes at the ends."""

    shared: bool  # Whether the bound that all nodes share was used.
    top: int
    nodes: list[int]  # With the top.
    ended: list[int]


def _members(ends: Ends, side: _Side, found: _Found) -> list[SingleInvariant]:
    sums = [SingleInvariant("sum", v) for v in found.nodes]
    above, below = (ends.upper, ends.lower) if side.sign > 0 else (ends.lower, ends.upper)
    far = int(side.sign > 0)
    own = ends.hi if side.sign > 0 else ends.lo
    top = above(found.top) if np.isfinite(own[found.top]) else SingleInvariant("every", far)
    starts, _ = side.tree.children
    inner = np.array(found.nodes, dtype=np.int64)
    met = int((starts[inner + 1] - starts[inner]).sum()) - inner.size + 1
    shared = [SingleInvariant("every", 1 - far)] if found.shared and met > len(found.ended) else []
    return [top, *shared, *(below(v) for v in found.ended), *sums]


def _traced(side: _Side, *, shared: bool) -> _Found | None:
    """Follow sums down from a node whose children must exceed its bound; None if there is none.

    With the shared bound, a sum or an end is left out if the children exceed the bound without it.
    Whether one is needed does not depend on later omissions, so one pass finds an irreducible
    subset.
    """
    if shared and not np.isfinite(side.every):
        return None
    tree, every = side.tree, side.every if shared else -np.inf
    low, below = np.maximum(side.own, every), np.zeros(len(tree))  # of nodes, of children's sums
    parents, leaf = read_only(tree.parents), read_only(tree.is_leaf)
    reaching.add_up_least(parents, tree.bottom_up, leaf, low, below)
    tops = np.flatnonzero(~tree.is_leaf & (below > side.top + side.slack))
    if not tops.size:
        return None
    starts, order = tree.children
    top = int(tops[np.argmax(tree.level[tops])])
    spare = float(below[top] - side.top[top] - side.slack)  # stays positive
    nodes, ended, waiting = [], [], [top]
    while waiting:
        v = waiting.pop()
        if v == top or (not tree.is_leaf[v] and below[v] > low[v]):
            if v != top and below[v] - every < spare:
                spare -= float(below[v] - every)
                continue
            nodes.append(v)
            waiting.extend(order[starts[v] : starts[v + 1]].tolist())
        elif side.own[v] > every:
            ended.append(v)
    ended.sort(key=lambda v: side.own[v])
    kept = []
    for v in ended:
        gain = float(side.own[v] - every)
        if gain < spare:
            spare -= gain
        else:
            kept.append(v)
    return _Found(shared, top, nodes, kept)
