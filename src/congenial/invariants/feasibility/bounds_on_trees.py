"""Infeasible bounds on a tree, found by adding up the ranges of the children of every node.

The sum of a subtree takes exactly the integers (or reals) between two ends, so bounds on a tree are
infeasible only where a node's own bound excludes the range of its children's sum. A smallest
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
from congenial.types import FloatArray, IntArray

# Largest number of inner nodes for which a smallest subset is searched; bounds the time.
_MOST_INNER = 50_000
# Largest number of pairs of partial answers in that search; bounds the memory.
_MOST_PAIRS = 1 << 22
# Relative error by which sums of bounds may differ through rounding.
_ROUNDING = 1e-9

Points = tuple[IntArray, FloatArray]


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
    """Combine bounds, pins and rows with a single entry.

    A pair of entries of which one is published exactly bounds the other, and is one invariant.
    """
    resolved = single.resolved
    ends = Ends(single.lo.copy(), single.hi.copy(), {}, {})

    def tighten(v: int, low: float, high: float, by: SingleInvariant) -> None:
        if single.whole:
            low, high = float(np.ceil(low)), float(np.floor(high))
        if low > max(ends.lo[v], single.every[0]):
            ends.lo[v], ends.lo_by[v] = low, by
        if high < min(ends.hi[v], single.every[1]):
            ends.hi[v], ends.hi_by[v] = high, by

    matrix, values = resolved.equalities
    for k in np.flatnonzero(matrix.any(axis=1)).tolist():
        v = int(np.flatnonzero(matrix[k])[0])
        at = values[k] / matrix[k, v]
        tighten(v, at, at, SingleInvariant("linear", k))
    matrix, values = resolved.inequalities
    for k in np.flatnonzero(matrix.any(axis=1)).tolist():
        row, value = matrix[k], values[k]
        v = int(np.flatnonzero(row)[0])
        bound = value / row[v]
        low, high = (bound, np.inf) if row[v] > 0 else (-np.inf, bound)
        tighten(v, low, high, SingleInvariant("at_least", k))
    known = dict(zip(single.pins.tolist(), single.values.tolist(), strict=True))
    for k, (more, fewer) in enumerate(resolved.relative.tolist()):
        if fewer in known:
            tighten(more, known[fewer], np.inf, SingleInvariant("pair", k))
        if more in known:
            tighten(fewer, -np.inf, known[more], SingleInvariant("pair", k))
    for v, at in zip(single.pins.tolist(), single.values.tolist(), strict=True):
        tighten(v, at, at, SingleInvariant("pin", v))
    return ends


def on_hierarchy(single: SingleInvariants) -> tuple[list[SingleInvariant], bool] | None:
    """Find a smallest infeasible subset; every row has at most one entry.

    Returns
    -------
    members : list of SingleInvariant
    fewest : bool
        Whether no smaller subset is infeasible; False for large trees, where none is searched for.
    """
    ends = tightest(single)
    low, high = np.maximum(ends.lo, single.every[0]), np.minimum(ends.hi, single.every[1])
    alone = np.flatnonzero((low > high) | np.isposinf(low) | np.isneginf(high))
    found = [_alone(single, ends, int(v)) for v in alone]
    if found:
        return min(found, key=len), True
    tree = single.tree
    if tree is None or not (np.isfinite(low).any() and np.isfinite(high).any()):
        return None
    slack = 0.0 if single.whole else _ROUNDING * _largest(low, high)
    sides = (
        _Side(1, tree, high, ends.lo, single.every[0], slack),
        _Side(-1, tree, -low, -ends.hi, -single.every[1], slack),
    )
    best: tuple[list[SingleInvariant], bool] | None = None
    proved = True
    for side in sides:
        tops = _exceeded(side)
        if not tops.size:
            continue
        for shared in (False, True):
            one = _fewest(side, tops, shared=shared, most=np.inf if best is None else len(best[0]))
            proved &= one.complete
            if one.nodes is not None:
                members = _members(ends, side, one)
                if best is None or len(members) < len(best[0]):
                    best = members, True
    return None if best is None else (best[0], proved)


def _largest(*ends: FloatArray) -> float:
    return max(1.0, *(float(np.abs(e[np.isfinite(e)]).max(initial=0.0)) for e in ends))


def _alone(single: SingleInvariants, ends: Ends, v: int) -> list[SingleInvariant]:
    low = ends.lower(v) if ends.lo[v] > single.every[0] else SingleInvariant("every", 0)
    high = ends.upper(v) if ends.hi[v] < single.every[1] else SingleInvariant("every", 1)
    return sorted({low, high})


def _reached(side: _Side, low: FloatArray) -> FloatArray:
    """Least sum of the children of every node, shape (n,)."""
    tree = side.tree
    below = np.zeros(len(tree))
    leaf = read_only(tree.is_leaf)
    reaching.add_up_least(read_only(tree.parents), tree.bottom_up, leaf, low, below)
    return below


def _exceeded(side: _Side) -> IntArray:
    """Nodes whose upper bound is below the least sum of their children."""
    below = _reached(side, np.maximum(side.own, side.every))
    return np.flatnonzero(~side.tree.is_leaf & (below > side.top + side.slack))


@dataclass(frozen=True, eq=False)
class _Found:
    """Answer of one search: a top, the inner nodes summed below it, and the nodes at the ends."""

    complete: bool
    shared: bool
    top: int = -1
    nodes: tuple[int, ...] | None = None
    ended: tuple[int, ...] = ()


def _members(ends: Ends, side: _Side, found: _Found) -> list[SingleInvariant]:
    sums = [SingleInvariant("sum", v) for v in found.nodes or ()]
    above, below = (ends.upper, ends.lower) if side.sign > 0 else (ends.lower, ends.upper)
    far = int(side.sign > 0)
    own = ends.hi if side.sign > 0 else ends.lo
    top = above(found.top) if np.isfinite(own[found.top]) else SingleInvariant("every", far)
    starts, _ = side.tree.children
    inner = np.array(found.nodes or (), dtype=np.int64)
    met = int((starts[inner + 1] - starts[inner]).sum()) - inner.size + 1
    shared = [SingleInvariant("every", 1 - far)] if found.shared and met > len(found.ended) else []
    return [top, *shared, *(below(v) for v in found.ended), *sums]


def _fewest(side: _Side, tops: IntArray, *, shared: bool, most: float) -> _Found:
    """Search all infeasible subsets of one side, with or without the bound that all nodes share.

    For every node below a top it keeps the largest sum forced by each number of invariants. The
    node's own bound counts as one invariant, the shared bound as none, and its sum of children as
    one more than the children's invariants.
    """
    if shared and not np.isfinite(side.every):
        return _Found(True, shared)
    every = side.every if shared else -np.inf
    low = np.maximum(side.own, every)
    below = _reached(side, low)
    tops = tops[below[tops] > side.top[tops] + side.slack]
    if not tops.size:
        return _Found(True, shared)
    inner = _inner_below(side.tree, tops)
    start = _traced(side, tops, low, below, shared=shared)
    if inner.size > _MOST_INNER:
        return start
    search = _Search(side, every, {})
    # the shared bound and the top are one invariant each
    best, limit = start, min(most - 1.0, _size(start)) - 1.0 - shared
    is_top = np.zeros(len(side.tree), dtype=np.bool_)
    is_top[tops] = True
    for v in inner.tolist():
        opened = search.opened(v, limit)
        if opened is None:
            return start
        if is_top[v]:
            over = np.flatnonzero(opened[1] > side.top[v] + side.slack)
            if over.size and opened[0][over[0]] <= limit:
                nodes, ended = search.traced(v, opened, int(over[0]), limit)
                best = _Found(True, shared, v, nodes, ended)
                limit = float(opened[0][over[0]]) - 1.0
        search.points[v] = search.options(v, opened)
    return _Found(True, shared, best.top, best.nodes, best.ended)


def _size(found: _Found) -> int:
    return len(found.nodes or ()) + len(found.ended) + 1 + found.shared


def _inner_below(tree: Tree, tops: IntArray) -> IntArray:
    """Inner nodes at or below the tops, children before parents."""
    under = np.zeros(len(tree), dtype=np.bool_)
    under[tops] = True
    for depth in range(1, tree.depth):
        here = np.flatnonzero(tree.level == depth)
        under[here] |= under[tree.parents[here]]
    inner = np.flatnonzero(under & ~tree.is_leaf)
    return inner[np.argsort(-tree.level[inner], kind="stable")]


def _traced(
    side: _Side, tops: IntArray, low: FloatArray, below: FloatArray, *, shared: bool
) -> _Found:
    """Follow the sums from the deepest top down to the bounds that make them."""
    tree = side.tree
    starts, order = tree.children
    top = int(tops[np.argmax(tree.level[tops])])
    nodes, ended, waiting = [], [], [top]
    while waiting:
        v = waiting.pop()
        if v == top or (not tree.is_leaf[v] and below[v] > low[v]):
            nodes.append(v)
            waiting.extend(order[starts[v] : starts[v + 1]].tolist())
        elif not shared or side.own[v] > side.every:
            ended.append(v)
    return _Found(False, shared, top, tuple(nodes), tuple(ended))


@dataclass(frozen=True, eq=False)
class _Search:
    """For finished nodes, the useful sums: numbers of invariants, ascending, and forced sums."""

    side: _Side
    every: float
    points: dict[int, Points]

    def opened(self, v: int, limit: float) -> Points | None:
        """Sums that a node's children force, with the node's sum as one invariant; None if many."""
        out: Points = (np.ones(1, dtype=np.int64), np.zeros(1))
        for part in self._parts(v):
            if out[0].size * part[0].size > _MOST_PAIRS:
                return None
            out = _merged(out, part, limit)
        return out

    def options(self, v: int, opened: Points) -> Points:
        """Sums forced by a node's own bound, the shared bound, or the node's children."""
        ends, costs = [self.every, self.side.own[v]], [0, 1]
        kept = [i for i in (0, 1) if np.isfinite(ends[i])]
        return _paying(
            np.concatenate((np.array([costs[i] for i in kept], dtype=np.int64), opened[0])),
            np.concatenate((np.array([ends[i] for i in kept]), opened[1])),
        )

    def traced(
        self, v: int, opened: Points, at: int, limit: float
    ) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the inner nodes and the ends that reach a point of `opened`."""
        nodes, ended = [], []
        waiting = [(v, int(opened[0][at]), float(opened[1][at]))]
        while waiting:
            u, cost, value = waiting.pop()
            nodes.append(u)
            parts = self._parts(u)
            sums: list[Points] = [(np.ones(1, dtype=np.int64), np.zeros(1))]
            for part in parts[:-1]:
                sums.append(_merged(sums[-1], part, limit))
            for k in range(len(parts) - 1, -1, -1):
                i, j = _pair(sums[k], parts[k], cost, value)
                taken = int(parts[k][0][j]), float(parts[k][1][j])
                cost, value = int(sums[k][0][i]), float(sums[k][1][i])
                if k == 0:
                    ended += self._leaf_ends(u, taken[0])
                    continue
                child = int(self._inner(u)[k - 1])
                if taken == (1, self.side.own[child]):
                    ended.append(child)
                elif taken != (0, self.every):
                    waiting.append((child, *taken))
        return tuple(nodes), tuple(ended)

    def _children(self, v: int) -> IntArray:
        starts, order = self.side.tree.children
        return order[starts[v] : starts[v + 1]]

    def _inner(self, v: int) -> IntArray:
        children = self._children(v)
        return children[~self.side.tree.is_leaf[children]]

    def _parts(self, v: int) -> list[Points]:
        """Points of all leaf children together, and of every other child."""
        return [self._leaves(v), *(self.points[int(c)] for c in self._inner(v))]

    def _gains(self, v: int) -> tuple[IntArray, FloatArray]:
        """Leaf children in descending order of the gain from their own bounds, and these gains."""
        children = self._children(v)
        leaves = children[self.side.tree.is_leaf[children]]
        gain = self.side.own[leaves] - (self.every if np.isfinite(self.every) else 0.0)
        order = np.argsort(-gain, kind="stable")
        return leaves[order], gain[order]

    def _leaves(self, v: int) -> Points:
        leaves, gain = self._gains(v)
        if not np.isfinite(self.every):
            if not np.isfinite(gain).all():
                return np.zeros(0, dtype=np.int64), np.zeros(0)
            return np.array([leaves.size]), np.array([gain.sum()])
        paid = np.concatenate(([0.0], np.cumsum(gain[gain > 0])))
        return np.arange(paid.size), leaves.size * self.every + paid

    def _leaf_ends(self, v: int, cost: int) -> list[int]:
        return [int(u) for u in self._gains(v)[0][:cost]]


def _merged(a: Points, b: Points, limit: float) -> Points:
    cost = (a[0][:, None] + b[0]).ravel()
    value = (a[1][:, None] + b[1]).ravel()
    kept = cost <= limit
    return _paying(cost[kept], value[kept])


def _paying(cost: IntArray, value: FloatArray) -> Points:
    """Keep, by ascending cost, the points whose sum exceeds that of all cheaper points."""
    order = np.lexsort((-value, cost))
    cost, value = cost[order], value[order]
    before = np.concatenate(([-np.inf], np.maximum.accumulate(value)[:-1]))
    kept = value > before
    return cost[kept], value[kept]


def _pair(a: Points, b: Points, cost: int, value: float) -> tuple[int, int]:
    """Positions in two lists whose points add up to a given point."""
    gap = np.abs(a[1][:, None] + b[1] - value)
    gap[a[0][:, None] + b[0] != cost] = np.inf
    i, j = np.unravel_index(int(np.argmin(gap)), gap.shape)
    return int(i), int(j)
