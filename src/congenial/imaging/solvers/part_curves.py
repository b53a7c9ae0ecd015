"""The closest point of a tree in L2, and its rounding, part by part in the memory of one part.

A part sends its curve: the total that it prefers at each price for one more unit. This curve is a
nondecreasing polyline; its points lie where a bound starts or ceases to bind. A long curve is sent
as some of its points, and the top is solved as if the curve were straight between them. Parts whose
total lies on a piece that may not be straight, or is next to one, send further points of it.

The rounds end: each part that is asked sends a point that it had not sent, and it has finitely
many. Then the curves used are the true ones around each total, so that prices and totals satisfy
the conditions of optimality of the whole tree. The problem is convex, so the point is the closest.
If a part is indifferent between totals at its price, all of them are on known pieces, so that the
preferred ones are those of the whole tree. Without bounds a curve is one straight line, and one
round is enough.

In L2, each part is then solved with its total fixed. It sends its cost with the values at a bound
fixed, one parabola, and the top follows from all parabolas. These are the two passes of Hay,
Rastogi, Miklau and Suciu (2010), which remove the rounding errors of the curves. They are repeated
until the top stays. In the end the conditions of optimality are checked for the whole tree, with
the prices of all parts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from congenial.domain.tree import Tree
from congenial.domain.workers import HERE, Workers
from congenial.imaging.solvers.problem import (
    NO_WORDS,
    TOLERANCE,
    Task,
    certified,
    checked_values,
    link,
    missed,
    prepare,
    within_reach,
)
from congenial.imaging.solvers.two_pass import (
    changes,
    least_cost,
    least_point,
    near,
    rise,
    solve_l2,
)
from congenial.invariants.resolved import ResolvedInvariant
from congenial.kernels.projection.check import add_determined, refine, settle
from congenial.kernels.projection.curves import inverse
from congenial.kernels.projection.forest import NO_CURVES, Costs, Curves
from congenial.randomness import Randomness
from congenial.types import BoolArray, FloatArray, IntArray, Words

# Points of all curves in memory after the first round, 16 bytes each, and the fewest of a part.
POINTS = 2**20
FEWEST = 64
# Most rounds in which parts and the top are solved again, with the values at a bound fixed.
_MOST_ROUNDS = 8
# Change of the top between two of these rounds, relative to the largest number, that is rounding.
SETTLED = 2.0**-44
_NO_SUMS: FloatArray = np.zeros(0)


@dataclass(frozen=True, eq=False)
class TreePiece:
    """The top of a tree, or a part of it with its root first.

    The root of a part is in the top too. Its measurement and its bounds are those of the top.
    """

    nodes: IntArray  # shape (n,): The nodes in the whole tree, for whoever stores the result.
    tree: Tree
    resolved: ResolvedInvariant  # With pins and bounds, and no other conditions.
    y: FloatArray  # shape (n,)
    weight: FloatArray  # shape (n,): From `checked_weights` of the whole tree.
    whole: bool = False  # Whether bounds and exact values are to be integers.


Fetch = Callable[[int], TreePiece]
Store = Callable[[TreePiece, FloatArray], None]
# Values of a part and, in L2, its line.
_Values = tuple[FloatArray, tuple[float, float]]
# Solves and stores a part with its total fixed, given one more argument.
Solve = Callable[[TreePiece, Task, Any], _Values]


@dataclass(frozen=True, eq=False)
class _Curve:
    """Some points of a part's curve of (price, total)."""

    points: FloatArray  # shape (2, k): Nondecreasing.
    places: IntArray  # shape (k,): Places among all points of the curve; first and last included.
    ray: FloatArray  # shape (2,): Slopes before the first and after the last point.

    def unknown(self, total: float) -> int | None:
        """Return a piece, by its end, that may not be straight and decides about a total.

        Such a piece holds the total, or is next to all totals that are as good at its price: the
        part might prefer another of them.
        """
        prices, totals = self.points
        # a total that misses a point by rounding is at that point
        slack = TOLERANCE * max(1.0, abs(total))
        i = int(np.searchsorted(totals, total - slack))
        j = int(np.searchsorted(totals, total + slack, side="right"))
        between = i == j and 0 < i < totals.size and prices[i - 1] < prices[i]
        if between:
            ends = range(i, i + 1)
        else:
            low, high = prices[min(i, totals.size - 1)], prices[max(j - 1, 0)]
            first = int(np.searchsorted(prices, min(low, high)))
            last = int(np.searchsorted(prices, max(low, high), side="right"))
            ends = range(max(first, 1), min(last + 1, totals.size))
        for end in ends:
            bent = self.points[:, end - 1] < self.points[:, end]
            if bent.all() and self.places[end] > self.places[end - 1] + 1:
                return end
        return None


@dataclass(frozen=True, eq=False)
class _Message:
    """Numbers that the top is sent of a part, relative to `center`."""

    center: float  # An integer.
    lo: float  # Range of the total.
    hi: float
    prefer: float  # Sum of the measurements below the root; NaN if one is missing.
    curve: _Curve
    line: tuple[float, float] | None  # The part without bounds: stiffness and best total.


@dataclass(frozen=True, eq=False)
class _Solved:
    """Results of a part that was solved with its total fixed."""

    line: tuple[float, float]  # Stiffness and best total, with the values at a bound fixed.
    prices: tuple[float, float]  # Least and largest price at which it prefers its total.
    worst: float  # Violation of its optimality conditions.
    size: float  # Its largest number.


def solve_parts(
    top: TreePiece, roots: IntArray, fetch: Fetch, store: Store, workers: Workers = HERE
) -> FloatArray:
    """Minimise ``sum(weight * (z - y)**2)`` over a tree of which one part is held at a time.

    Parameters
    ----------
    top : TreePiece
        The nodes down to the cut.
    roots : ndarray of int64, shape (k,)
        Nodes of the top with a part below them.
    fetch : callable
        Returns a part, by its number. Each part is fetched twice or more, and must not change
        meanwhile. No part is kept while the next is fetched.
    store : callable
        Takes a part and its values, shape (n,), the value of its root included. It may be called
        again for the same part. Then the last values count; after an error, none do.
    workers : Workers
        They fetch, solve and store the parts.

    Returns
    -------
    ndarray of float64, shape (len(top.nodes),)
        The values of the top.

    Raises
    ------
    ArgumentError
        If a value is not finite.
    InfeasibleError
        If no values add up.
    NumericalError
        If the solution violates its optimality conditions by more than 1e-9 of the largest number.
    """
    free = np.flatnonzero(~top.resolved.pinned[roots])
    off = np.inf
    # as in `solve_l2`, bounds far from every value are first left out of the curves
    for everything in (False, True):
        parts = _Parts(fetch, free, everything=everything)
        joined = _join(top, roots[free], parts.messages(workers))
        z = _curved(joined, parts, workers)
        kept, last = None, np.inf
        for _ in range(_MOST_ROUNDS):
            size = max(joined.task.size, float(np.abs(z).max()))
            solve, sizes = partial(_solve, parts, partial(_squares, store)), [size] * roots.size
            lines, checks = _solved(joined, z, parts, solve, sizes, workers)
            worst, largest = checks.max(axis=0)
            off = float(worst / largest)
            again = joined.refined(z, lines)
            change = float(np.abs(again - z).max()) / size
            if off <= TOLERANCE:
                if change <= SETTLED or change >= 0.5 * last or z is kept:
                    return joined.task.released(z)
                kept = z
            elif kept is not None:  # the earlier point was better: solve there again
                z = kept
                continue
            elif not everything:  # a far bound binds
                break
            z, last = again, change
    raise missed(off)


def round_parts(
    top: TreePiece,
    roots: IntArray,
    fetch: Fetch,
    store: Store,
    rng: Randomness,
    workers: Workers = HERE,
) -> FloatArray:
    """Minimise ``sum(abs(z - y))`` over integers z that add up and keep bounds and exact values.

    As `round_whole`, part by part. All values are given, as multiples of a power of two.
    Smaller differences are ties. Weights are 1.

    Parameters
    ----------
    top, roots, fetch, store, workers
        As for `solve_parts`; each part is stored once.
    rng : Randomness
        It breaks ties.

    Returns
    -------
    ndarray of float64, shape (len(top.nodes),)
        The integers of the top.

    Raises
    ------
    InfeasibleError, NumericalError
        As `solve_parts`.
    """
    parts = _Parts(fetch, np.flatnonzero(~top.resolved.pinned[roots]), rounding=True)
    joined = _join(top, roots[parts.free], parts.messages(workers))
    z = _curved(joined, parts, workers, rng.bits(joined.task.y.size))
    sources = [workers.source(rng) for _ in range(roots.size)]
    solve = partial(_solve, parts, partial(_changes, store))
    _, checks = _solved(joined, z, parts, solve, sources, workers)
    off = float((checks[:, 0] / checks[:, 1]).max())
    if not off <= TOLERANCE:
        raise missed(off)
    return joined.task.released(z)


def _squares(store: Store, part: TreePiece, task: Task, largest: float) -> _Values:
    """Solve and store a part in L2; `largest` is the largest number of the top."""
    z = solve_l2(task)
    store(part, task.released(z))
    # the total is a rounded number of the top, so that values at a bound may miss it by as much
    slack = SETTLED * max(largest, task.size, float(np.abs(z).max()))
    at_lo, at_hi = z <= task.lo + slack, z >= task.hi - slack
    return z, _refined(task, np.where(at_lo, task.lo, np.where(at_hi, task.hi, z)))


def _changes(store: Store, part: TreePiece, task: Task, rng: Randomness) -> _Values:
    """Round and store a part."""
    costs = changes(task.y, task.weight)
    z = least_cost(task, costs, task.prefer, rng.bits(task.y.size))
    store(part, task.released(z))
    return z, (0.0, 0.0)


@dataclass(frozen=True, eq=False)
class _Parts:
    """The parts whose totals are not published, and how their curves are sent."""

    fetch: Fetch
    free: IntArray  # shape (m,): Their numbers.
    everything: bool = True  # Whether curves heed bounds far from every value.
    rounding: bool = False  # Whether costs are changes to integers, and not squares.

    @property
    def most(self) -> int:
        """Most points that a part sends at a time."""
        return max(FEWEST, POINTS // max(self.free.size, 1))

    def costs(self, task: Task) -> Costs:
        """The costs of a task's values."""
        return changes(task.y, task.weight) if self.rounding else task.squares

    def messages(self, workers: Workers) -> list[_Message]:
        """The first message of each part."""
        return workers.run("reading", self.message, dict.fromkeys(self.free.tolist(), ()))

    def message(self, number: int) -> _Message:
        """Return the first message of a part."""
        task, known = _task(self.fetch(number))
        total = np.where(known, task.y, np.nan)
        add_determined(task.links.forest, known, total)
        line = None if self.rounding else _line(task)
        curve = self._curve(task) if line is None else _straight(*line)
        at = np.unique(np.linspace(0, curve.places.size - 1, self.most).astype(np.int64))
        ends = float(task.lo[0]), float(task.hi[0])
        return _Message(float(task.center[0]), *ends, float(total[0]), _sample(curve, at), line)

    def further(self, number: int, known: _Curve, end: int) -> _Curve:
        """Return a part's curve with further points of the piece up to point `end`."""
        task, _ = _task(self.fetch(number))
        first, last = known.places[end - 1], known.places[end]
        at = np.linspace(first, last, max(3, self.most)).astype(np.int64)
        return _sample(self._curve(task), np.union1d(known.places, at))

    def _curve(self, task: Task) -> _Curve:
        """The whole curve of a part: that of the children of its root."""
        seen = task if self.everything else near(task)
        _, sums = rise(seen, self.costs(seen), quadratic=not self.rounding)
        first, last = sums.at[0]
        # the abscissae of `sums` are totals
        ray = np.array([inverse(slope) for slope in sums.ray[0]])
        return _Curve(sums.points[:, first:last].copy(), np.arange(last - first), ray)


def _sample(curve: _Curve, at: IntArray) -> _Curve:
    return _Curve(curve.points[:, at], curve.places[at], curve.ray)


def _straight(stiffness: float, best: float) -> _Curve:
    """The curve of a part without bounds."""
    slope = inverse(stiffness)
    return _Curve(np.array([[0.0], [best]]), np.zeros(1, dtype=np.int64), np.full(2, slope))


def _task(part: TreePiece, center: float | None = None) -> tuple[Task, BoolArray]:
    """Set up a part whose root is free and not measured; return which nodes are known, (n,).

    `center` is the integer that the root is to be relative to, if its children can add up to it.
    """
    pinned, weight, y = part.resolved.pinned.copy(), part.weight.copy(), part.y.copy()
    pinned[0], weight[0], y[0] = False, center is not None, 0.0 if center is None else center
    resolved = replace(part.resolved, pinned=pinned)
    task, known = _prepared(replace(part, resolved=resolved, weight=weight, y=y))
    known[0] = task.weight[0] = task.y[0] = 0
    return task, known


def _prepared(piece: TreePiece) -> tuple[Task, BoolArray]:
    resolved, tree = piece.resolved, piece.tree
    known = resolved.pinned | (piece.weight > 0)
    values = checked_values(piece.y, resolved.n, known, tree)
    links = link(tree, resolved.n)
    return prepare(links, resolved, _NO_SUMS, values, piece.weight, integer=piece.whole), known


def _line(task: Task) -> tuple[float, float] | None:
    """Stiffness and best total of a part without bounds below its root; None if it has some."""
    lo, hi = task.lo[1:], task.hi[1:]
    if not ((lo == hi) | (np.isneginf(lo) & np.isposinf(hi))).all():
        return None
    return _refined(task, np.clip(task.y, task.lo, task.hi))


def _refined(task: Task, z: FloatArray) -> tuple[float, float]:
    """Return the stiffness and the best total of a part, with the values at a bound fixed."""
    stiff, best = refine(task.links.forest, task.y, task.weight, task.lo, task.hi, z)
    return float(stiff[0]), float(best[0])


@dataclass(frozen=True, eq=False)
class _Joined:
    """The top, with two leaves below the root of each part whose total is not published.

    The first leaf of a part stands for the part, the second is 0. Together they ask for any range
    of prices.
    """

    task: Task
    n: int  # Number of nodes of the top.
    shift: FloatArray  # shape (m,): Integers: numbers of a part, moved to those of the top.
    messages: list[_Message]

    @property
    def leaves(self) -> slice:
        """The leaves that stand for parts."""
        return slice(self.n, self.n + self.shift.size)

    def refined(self, z: FloatArray, lines: list[tuple[float, float]]) -> FloatArray:
        """Solve the top again, with the values at a bound fixed there and a line for each part."""
        task, out = self.task, z.copy()
        stiff, best = np.array(lines).reshape(-1, 2).T
        y, weight, lo, hi = task.y.copy(), task.weight.copy(), task.lo.copy(), task.hi.copy()
        at, fixed = self.leaves, np.isposinf(stiff)
        y[at] = best
        weight[at] = np.where(fixed, 0.0, stiff)
        lo[at] = np.where(fixed, z[at], lo[at])
        hi[at] = np.where(fixed, z[at], hi[at])
        refine(task.links.forest, y, weight, lo, hi, out)
        return out

    def lined(self) -> FloatArray:
        """Solve the top if no part has bounds."""
        task = self.task
        lines = [each.line for each in self.messages if each.line is not None]
        stiff, best = np.array(lines).reshape(-1, 2).T
        y, weight = task.y.copy(), task.weight.copy()
        y[self.leaves] = best + self.shift
        weight[self.leaves] = np.where(np.isposinf(stiff), 0.0, stiff)
        return solve_l2(replace(task, y=y, weight=weight))

    def certified(
        self, z: FloatArray, prices: list[tuple[float, float]], costs: Costs, *, quadratic: bool
    ) -> tuple[float, float]:
        """Return the worst violation of the top, given the prices of its parts, and its size."""
        task = self.task
        first, second = self.leaves, slice(self.leaves.stop, None)
        below, above = np.array(prices).reshape(-1, 2).T
        lo, hi = task.lo.copy(), task.hi.copy()
        # a leaf at its least value accepts every lower price, and one at its largest every higher
        lo[first], hi[first] = z[first], np.where(np.isposinf(above), z[first], np.inf)
        lo[second], hi[second] = np.where(np.isneginf(below), 0.0, -np.inf), 0.0
        price, value = np.concatenate((above, below)), z[self.n :]
        price = np.where(np.isinf(price), 0.0, price)
        b0, b1, mid, weight = (each.copy() for each in costs)
        b0[self.n :] = value - (price if quadratic else 1.0)
        b1[self.n :], mid[self.n :], weight[self.n :] = value + 1.0, price, 1.0
        asked = replace(task, lo=lo, hi=hi)
        return certified(asked, z, Costs(b0, b1, mid, weight), quadratic=quadratic)[:2]


def _join(top: TreePiece, roots: IntArray, messages: list[_Message]) -> _Joined:
    """Set up the top with the messages of the parts below some of its nodes."""
    own, known = _prepared(top)
    tree, n, m = own.links.tree, known.size, roots.size
    links = link(Tree.from_parents(np.concatenate((tree.parents, roots, roots))), n)
    zeros = np.zeros(m)
    base, lows, highs, sums = (
        np.array([(each.center, each.lo, each.hi, each.prefer) for each in messages])
        .reshape(-1, 4)
        .T
    )
    determined = ~np.isnan(sums)
    first, second = slice(n, n + m), slice(n + m, None)
    center = np.zeros(n + 2 * m)
    # a part whose total is not determined takes what is missing above it, by its second leaf
    settled = np.concatenate((known, np.ones(m, dtype=np.bool_), determined))
    settle(links.forest, settled, np.concatenate((own.y + own.center, base, zeros)), center)
    center[first] += center[second]
    center[second] = 0.0
    known = np.concatenate((known, determined, np.ones(m, dtype=np.bool_)))
    moved, shift = own.center - center[:n], base - center[first]
    y = np.concatenate((own.y + moved, np.where(determined, sums, 0.0) + shift, zeros))
    task = Task(
        links,
        center,
        np.where(known, y, 0.0),
        np.concatenate((own.weight, zeros, zeros)),
        np.concatenate((own.lo + moved, lows + shift, zeros)),
        np.concatenate((own.hi + moved, highs + shift, zeros)),
        y,
    )
    return _Joined(within_reach(task, known, top.resolved), n, shift, messages)


def _curved(
    joined: _Joined, parts: _Parts, workers: Workers, words: Words = NO_WORDS
) -> FloatArray:
    """Solve the top, and ask for further points of curves until those used are the true ones."""
    curves = [each.curve for each in joined.messages]
    if not parts.rounding and all(each.line is not None for each in joined.messages):
        return joined.lined()
    task = joined.task if parts.everything else near(joined.task)
    costs = parts.costs(task)
    while True:
        risen = rise(task, costs, _given(joined, curves), quadratic=not parts.rounding)
        z = least_point(task, risen, task.prefer, words)
        pieces = [
            c.unknown(u)
            for c, u in zip(curves, (z[joined.leaves] - joined.shift).tolist(), strict=True)
        ]
        if all(end is None for end in pieces):
            return z
        asked = {i: (curves[i], end) for i, end in enumerate(pieces) if end is not None}
        given = {int(parts.free[i]): one for i, one in asked.items()}
        further = workers.run("reading more of", parts.further, given)
        for i, curve in zip(asked, further, strict=True):
            curves[i] = curve


def _given(joined: _Joined, curves: list[_Curve]) -> Curves:
    """The curves of the leaves that stand for parts, as the kernels read them."""
    if not curves:
        return NO_CURVES
    size = np.cumsum([0, *(curve.places.size for curve in curves)])
    at = np.zeros((joined.task.y.size, 2), dtype=np.int64)
    ray = np.zeros((joined.task.y.size, 2))
    at[joined.leaves] = np.stack((size[:-1], size[1:]), axis=1)
    ray[joined.leaves] = [curve.ray for curve in curves]
    points = np.concatenate([curve.points for curve in curves], axis=1)
    points[1] += np.repeat(joined.shift, np.diff(size))
    return Curves(points, at, ray)


def _solved(
    joined: _Joined,
    z: FloatArray,
    parts: _Parts,
    solve: Callable[..., _Solved],
    more: Sequence[object],
    workers: Workers,
) -> tuple[list[tuple[float, float]], FloatArray]:
    """Solve and store each part at the totals of the top; `more` has an argument for each part.

    Returns the line of each part whose total is not published, and the worst violation and the
    largest number of each part and of the top, shape (parts + 1, 2).
    """
    at = joined.leaves
    totals = zip(z[at].tolist(), joined.task.center[at].tolist(), strict=True)
    free = dict(zip(parts.free.tolist(), totals, strict=True))
    given = {k: (free.get(k), each) for k, each in enumerate(more)}
    solved = workers.run("moving", solve, given)
    sent = [each for number, each in enumerate(solved) if number in free]
    costs, prices = parts.costs(joined.task), [each.prices for each in sent]
    checks = [(each.worst, each.size) for each in solved]
    checks.append(joined.certified(z, prices, costs, quadratic=not parts.rounding))
    return [each.line for each in sent], np.array(checks)


def _solve(
    parts: _Parts, how: Solve, number: int, given: tuple[float, float] | None, more: Any
) -> _Solved:
    """Solve a part whose root has a total, relative to an integer, or is published."""
    part = parts.fetch(number)
    if given is None:
        task, _ = _prepared(part)
        fixed = loose = task
        shift = 0.0
    else:
        total, center = given
        task, _ = _task(part, center)
        shift = float(task.center[0]) - center  # an integer, 0 if an unknown leaf takes the rest
        total = min(max(total - shift, float(task.lo[0])), float(task.hi[0]))
        y, lo, hi, prefer = task.y.copy(), task.lo.copy(), task.hi.copy(), task.prefer.copy()
        y[0] = lo[0] = hi[0] = prefer[0] = total
        fixed = replace(task, y=y, lo=lo, hi=hi, prefer=prefer)
        # the prices of the part are those of its root without the pin, at any price
        forest = task.links.forest
        rootless = forest._replace(is_root=np.zeros_like(forest.is_root))
        loose = replace(task, links=replace(task.links, forest=rootless))
    z, (stiffness, best) = how(part, fixed, more)
    quadratic = not parts.rounding
    worst, size, prices = certified(loose, z, parts.costs(loose), quadratic=quadratic)
    below, above = (float(each[0]) for each in prices)
    return _Solved((stiffness, best + shift), (below, above), worst, size)
