"""The law of a tree's counts under a `DirichletTree` prior, by messages of its families."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from congenial.domain.tree import Tree
from congenial.errors import InfeasibleError, NumericalError
from congenial.imaging.closest import project
from congenial.inference.splits.dirichlet_tree import DirichletTree, SplitGradient
from congenial.invariants.written import bounds, consistent
from congenial.kernels.network import kept_laws
from congenial.kernels.network import splits as kernels
from congenial.kernels.network.marginals import HIGH, LOW, MEDIAN, VARIANCE
from congenial.kernels.network.split_families import PART, FamilyMessages, Measured, Splits
from congenial.kernels.network.splits import Summarised
from congenial.kernels.numerics import laws
from congenial.randomness import Randomness
from congenial.types import BoolArray, FloatArray, IntArray, Words

# Draws some nodes, shape (rows, nodes).
Draw = Callable[[int, Randomness], IntArray]
# Mean, variance, median and shortest interval of every node.
Summaries = tuple[FloatArray, FloatArray, IntArray, IntArray, IntArray]

# Nats below its largest weight where a message is truncated, tried in this order; and the number of
# nodes above which they grow with its logarithm, since the errors of all nodes are added up.
_NATS = (34.0, 34.0, 50.0, 80.0, 150.0)
_FEW = 50_000
# Most probability beyond the truncation, summed over the laws of all nodes.
MOST_LOST = 1e-7
# Most values of a batch of draws of some nodes.
_VALUES = 1 << 22
# Largest error of a measured count, in scales of Laplace noise and in deviations of normal noise.
FAR_LAPLACE, FAR_NORMAL = 20.0, 6.5
# Least expected count of a family, relative to its largest error: the messages of a family that is
# expected to be empty would be truncated before the counts that its own measurement allows.
_FLOOR = 0.2
# Least expected count of a family that is known exactly, because p must be positive.
_LEAST = 0.05
_NO_LOGS: FloatArray = np.zeros(0)


@dataclass(frozen=True, eq=False)
class PartLogs:
    """Log weights that the parts below a cut give to the counts of its nodes.

    Those of node ``nodes[i]`` are ``logs[place[i]:place[i + 1]]``, from the count ``first[i]`` on.
    """

    nodes: IntArray  # shape (k,)
    first: IntArray  # shape (k,)
    place: IntArray  # shape (k + 1,)
    logs: FloatArray

    @classmethod
    def of(cls, nodes: IntArray, messages: Sequence[RootLogs]) -> PartLogs:
        """Return the log weights that some messages give."""
        first = np.array([one.first for one in messages], dtype=np.int64)
        place = np.cumsum([0, *(one.logs.size for one in messages)]).astype(np.int64)
        return cls(nodes, first, place, np.concatenate([one.logs for one in messages]))


class RootLogs(NamedTuple):
    """Log weights of a root's counts, from the count `first` on."""

    first: int
    logs: FloatArray


@dataclass(frozen=True, eq=False)
class Evidence:
    """The evidence about each node of a tree: its measurement, and the ends of its count.

    The leaves of a tree that is the top of a larger one may have the log weights of parts. Their
    measurements then say only where their counts are.
    """

    tree: Tree
    kind: IntArray  # shape (n,): Law of the noise; FLAT where there is no measurement.
    scale: FloatArray  # shape (n,)
    y: FloatArray  # shape (n,)
    lo: FloatArray
    hi: FloatArray
    parts: PartLogs | None = None

    def estimate(self) -> FloatArray:
        """Return the nonnegative least squares fit to the measurements, shape (n,)."""
        return self._estimate.copy()

    @cached_property
    def _estimate(self) -> FloatArray:
        weight = np.where(self.kind == laws.FLAT, 0.0, 1.0 / self.variance)
        known = consistent(self.tree) & bounds(self.lo, self.hi)
        return np.asarray(project(self.y, known, weights=weight if weight.any() else None))

    @property
    def variance(self) -> FloatArray:
        """Variance of each measurement's noise, about; shape (n,)."""
        return np.where(self.kind == laws.GAUSSIAN, 1.0, 2.0) * self.scale**2

    @cached_property
    def one_sided(self) -> BoolArray:
        """Leaves whose weight is geometric in their counts, with 0 as the only bound."""
        found = (self.kind == laws.FLAT) | ((self.kind == laws.LAPLACE) & (self.y <= 0.0))
        return np.asarray(self.leaf & found & (self.lo == 0.0) & np.isinf(self.hi))

    @cached_property
    def leaf(self) -> BoolArray:
        """Leaves of the whole tree, shape (n,)."""
        found = self.tree.is_leaf.copy()
        if self.parts is not None:
            found[self.parts.nodes] = False
        return found

    @cached_property
    def children(self) -> IntArray:
        """Children by parent, shape (n - roots,): leaves first, and equal leaves together."""
        child = self.tree.children[1]
        keys = self.y, ~self.one_sided, ~self.tree.is_leaf, self.tree.parents
        return np.asarray(child[np.lexsort([key[child] for key in keys])])

    def misplaced(self, center: FloatArray) -> FloatArray:
        """Return `center` of families whose messages may be centred elsewhere; -1 of others.

        These are families of inner nodes, and families of leaves whose measurements add up to
        another sum: with many empty leaves, the nonnegative counts have a larger sum.
        """
        tree, n = self.tree, len(self.tree)
        child = np.flatnonzero(tree.parents >= 0)
        above = tree.parents[child]
        known = self.leaf & (self.kind != laws.FLAT)
        apart = np.bincount(above, np.maximum(self.y[child], 0.0), n) - center
        error = np.bincount(above, self.variance[child], n)
        other = np.bincount(above, ~known[child], n) > 0
        leaves = np.bincount(above, self.leaf[child], n) > 0
        placed = np.where(other, ~leaves, apart**2 > error)
        return np.where(placed & ~tree.is_leaf, center, -1.0)

    def slack(self, center: FloatArray) -> FloatArray:
        """Return how far each node's count may be from `center`, shape (n,)."""
        tree = self.tree
        normal = self.kind == laws.GAUSSIAN
        own = np.where(normal, FAR_NORMAL, FAR_LAPLACE) * self.scale
        own[self.kind == laws.FLAT] = np.inf
        own[self.lo == self.hi] = 0.0
        squares = np.zeros(len(tree))
        levels = [np.flatnonzero(tree.level == depth) for depth in range(tree.depth)]
        for at in reversed(levels):
            inner = at[~tree.is_leaf[at]]
            own[inner] = np.minimum(own[inner], np.sqrt(squares[inner]))
            below = at[tree.parents[at] >= 0]
            squares += np.bincount(tree.parents[below], own[below] ** 2, len(tree))
        for at in levels[1:]:
            # without a measurement of the node or below it, the parent's count bounds its count
            above = center[tree.parents[at]] + own[tree.parents[at]]
            own[at] = np.where(np.isinf(own[at]), above, own[at])
        return np.where(np.isinf(own), center, own)


@dataclass(frozen=True, eq=False)
class Laws:
    """The law under a `DirichletTree`: of each node, without tails of less than 1e-11."""

    messages: SplitLaw
    mean: FloatArray
    # shape (n, 2): Means of digamma(z + a) - digamma(a), with a node's alpha as a, and with the
    # sum of its children's.
    rises: FloatArray
    # Each law's first value, its size (0 if it is not kept), and its start in `flat`; equal leaves
    # share one law.
    first: IntArray
    size: IntArray
    place: IntArray
    flat: FloatArray
    error: float  # Approximate probability beyond the truncation, summed over all laws.

    @property
    def log_total(self) -> float:
        """Log of the sum of the weights of all counts."""
        return self.messages.log_total

    def sample(self, rows: int, rng: Randomness) -> IntArray:
        """Draw the counts `rows` times, independently."""
        return self.messages.sample(rows, rng)

    def draws_of(self, nodes: IntArray) -> Draw:
        """Return a function that draws some nodes without all others."""
        return self.messages.draws_of(nodes)

    def logs(self, v: int) -> RootLogs:
        """Return the log probabilities of a node's count."""
        values, chance = self.marginal(v)
        with np.errstate(divide="ignore"):
            return RootLogs(int(values[0]), np.log(chance))

    def summary(self, alpha: float) -> Summaries:
        """Summarise the law of every node."""
        out = np.empty((self.first.size, HIGH + 1))
        kept_laws.summaries(alpha, self.first, self.size, self.place, self.flat, out)
        median, low, high = (np.rint(out[:, c]).astype(np.int64) for c in (MEDIAN, LOW, HIGH))
        return self.mean.copy(), out[:, VARIANCE], median, low, high

    def gradient(self) -> SplitGradient:
        """Return the derivatives of the log evidence in each node's alpha (Fisher's identity)."""
        parents = self.messages.tree.parents
        above = self.rises[np.maximum(parents, 0), 1]
        return SplitGradient(np.where(parents >= 0, self.rises[:, 0] - above, 0.0))

    def marginal(self, v: int) -> tuple[IntArray, FloatArray]:
        """Return the values of a node's count and their probabilities."""
        found = self.flat[self.place[v] : self.place[v] + self.size[v]]
        return self.first[v] + np.arange(found.size), found / found.sum()

    def chances(self, first: IntArray, size: IntArray) -> FloatArray:
        """Return the probability that each count is at most each value of its window."""
        out = np.empty(int(size.sum()))
        kept_laws.up_to(first, size, self.first, self.size, self.place, self.flat, out)
        return out

    def expected_error(self, table: IntArray, weights: FloatArray) -> float:
        """Return the expected absolute error of a table, summed over its nodes by `weights`."""
        of = self.first, self.size, self.place, self.flat
        return float(kept_laws.expected_errors(table, weights, *of))


@dataclass(frozen=True, eq=False)
class SplitLaw:
    """Messages up the tree, from which laws and draws are computed."""

    tree: Tree
    measured: Measured
    splits: Splits
    nats: float  # Nats below its largest weight where each message is truncated.
    messages: FamilyMessages
    log_total: float  # Log of the sum of the weights of all counts.
    # Log weights of the root's counts from the other parts of a tree; empty if it is whole.
    outside: FloatArray = field(default_factory=lambda: _NO_LOGS)

    @property
    def size(self) -> int:
        """Bytes in memory, about: 25 numbers of each node, and the table of messages."""
        return 200 * len(self.tree) + self.messages.table.nbytes

    def message(self) -> RootLogs:
        """Return the log weights of the first root's counts, up to a constant."""
        first, size, place = (int(each[0]) for each in self.messages[:3])
        with np.errstate(divide="ignore"):
            return RootLogs(first, np.log(self.messages.table[place : place + size]))

    def given(self, law: RootLogs) -> SplitLaw:
        """Return the law of a part, given the law of its root's count in the whole tree.

        The law of the root's count has log probabilities up to a constant.
        """
        own, known = self.message(), np.full(self.messages.size[0], -np.inf)
        begin, end = max(own.first, law.first), min(_end(own), _end(law))
        inside = slice(begin - own.first, end - own.first)
        known[inside] = law.logs[begin - law.first : end - law.first]
        table, place = self.messages.table.copy(), self.messages.offset[0]
        table[place : place + known.size] = np.exp(known - known.max())
        outside = np.full(known.size, -np.inf)
        np.subtract(known, own.logs, out=outside, where=np.isfinite(own.logs))
        return replace(self, messages=self.messages._replace(table=table), outside=outside)

    def laws(self, *, kept: bool) -> Laws:
        """Return the means of all nodes, and their laws if `kept`."""
        n = len(self.tree)
        messages = self.messages._replace(table=self.messages.table.copy())
        places = (np.zeros(n, dtype=np.int64) for _ in range(3))
        summarised = Summarised(np.zeros(n), np.zeros((n, 2)), *places)
        known = self.tree.parents, self.measured, self.splits, messages, self.nats
        flat, lost = kernels.downward(*known, self.outside, kept, summarised)
        return Laws(self, *summarised, flat, lost)

    def sample(self, rows: int, rng: Randomness) -> IntArray:
        """Draw the counts `rows` times, independently; shape (rows, n)."""
        n = len(self.tree)
        inner = int((np.diff(self.splits.starts) > 0).sum())
        roots = int((self.tree.parents < 0).sum())
        words = n - inner + roots
        bits = rng.bits(rows * words).reshape(rows, words)
        out = np.empty((rows, n), dtype=np.int64)
        self._draw(self.splits.bottom_up, np.arange(n), bits, out)
        return out

    def draws_of(self, nodes: IntArray) -> Draw:
        """Return a function that draws some nodes: the families above them, and no others."""
        tree, starts = self.tree, self.splits.starts
        drawn = np.zeros(len(tree), dtype=np.bool_)
        above = np.where(tree.parents[nodes] < 0, nodes, tree.parents[nodes])
        while above.size:
            drawn[above] = True
            above = np.unique(tree.parents[above])
            above = above[above >= 0]
        families = self.splits.bottom_up[drawn[self.splits.bottom_up]]
        filled = drawn & (tree.parents < 0)
        filled[np.flatnonzero(tree.parents >= 0)] = drawn[tree.parents[tree.parents >= 0]]
        values = int(filled.sum())
        column = np.where(filled, np.cumsum(filled) - 1, -1)
        children = np.diff(starts)[families]
        words = int((children - 1).sum() + (tree.parents[families] < 0).sum())

        def draw(rows: int, rng: Randomness) -> IntArray:
            out = np.empty((rows, values), dtype=np.int64)
            for begin in range(0, rows, max(1, _VALUES // values)):
                batch = out[begin : begin + max(1, _VALUES // values)]
                bits = rng.bits(len(batch) * words).reshape(len(batch), words)
                self._draw(families, column, bits, batch)
            return out[:, column[nodes]]

        return draw

    def _draw(self, families: IntArray, column: IntArray, bits: Words, out: IntArray) -> None:
        splits = self.splits._replace(children=self.tree.children[1], bottom_up=families)
        known = self.tree.parents, self.measured, splits, self.messages, self.nats
        kernels.draw(*known, column, bits, out)


def _end(message: RootLogs) -> int:
    """Return the count after the last of a message."""
    return message.first + message.logs.size


def split_law(
    evidence: Evidence,
    prior: DirichletTree,
    center: FloatArray,
    nats: float,
    *,
    part: bool = False,
) -> SplitLaw:
    """Send messages up the tree; `center`, shape (n,), approximates the counts.

    The tree may be a part of a larger one, which moves the law of its root's count.

    Raises InfeasibleError if no nonnegative counts satisfy the bounds.
    """
    tree = evidence.tree
    n, inner = len(tree), ~tree.is_leaf
    total = prior.totals(tree)
    slack = evidence.slack(center)
    above = np.where(evidence.kind == laws.FLAT, center, np.maximum(center, evidence.y))
    mean = np.maximum(above, np.maximum(slack * _FLOOR, _LEAST))
    p = np.where(inner, mean / (mean + np.where(inner, total, 1.0)), 0.5)
    square = evidence.kind == laws.GAUSSIAN
    inverse = np.where(square, 0.5 / evidence.scale**2, 1.0 / evidence.scale)
    measured = _with_parts(evidence, inverse)
    order = tree.bottom_up if tree.bottom_up.size else np.arange(n - 1, -1, -1)
    shape = tree.children[0], evidence.children, np.asarray(order, np.int64)
    numbers = prior.alpha, total, prior.odds_of(tree)
    splits = Splits(*shape, *numbers, p, slack, evidence.misplaced(center))
    first, size, offset = (np.zeros(n, dtype=np.int64) for _ in range(3))
    logs = np.zeros(n)
    beyond = float(slack[0]) if part else 0.0
    sent = first, size, offset, logs
    table = kernels.upward(tree.parents, measured, splits, nats, beyond, *sent)
    if not np.isfinite(logs).all():
        raise InfeasibleError("no counts satisfy the bounds; relax one of them.")
    messages = FamilyMessages(first, size, offset, table)
    return SplitLaw(tree, measured, splits, nats, messages, float(logs.sum()))


def _with_parts(evidence: Evidence, inverse: FloatArray) -> Measured:
    """Return the measurements, and in the place of some the log weights of parts."""
    kind, lo, hi = evidence.kind, evidence.lo, evidence.hi
    place, parts = np.zeros(kind.size, dtype=np.int64), evidence.parts
    if parts is not None:
        kind, lo, hi = kind.copy(), lo.copy(), hi.copy()
        kind[parts.nodes], place[parts.nodes] = PART, parts.place[:-1]
        lo[parts.nodes] = parts.first
        hi[parts.nodes] = parts.first + np.diff(parts.place) - 1
    logs = _NO_LOGS if parts is None else parts.logs
    return Measured(kind, inverse, evidence.y, lo, hi, evidence.one_sided, place, logs)


def verified_law(
    evidence: Evidence, prior: DirichletTree, center: FloatArray | None = None
) -> Laws:
    """Return laws that lose at most 1e-7 by truncation, summed over all nodes.

    Raises NumericalError if the widest messages lose more.
    """
    center = evidence.estimate() if center is None else center
    for nats in truncations(len(evidence.tree)):
        found = split_law(evidence, prior, center, nats).laws(kept=True)
        if found.error <= MOST_LOST:
            return found
        center = found.mean
    raise lost_too_much()


def truncations(n: int) -> Iterator[float]:
    """Yield the nats below its largest weight where a message is truncated, in order of trial."""
    more = math.log(max(n / _FEW, 1.0))
    yield from (least + more for least in _NATS)


def lost_too_much() -> NumericalError:
    """Say that the widest messages lose too much."""
    return NumericalError(
        "the error of the posterior's messages is above its limit; see that measurements have the "
        "noise that is stated, which may be too narrow for them, or use a prior that is less "
        "concentrated."
    )
