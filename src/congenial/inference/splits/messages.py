"""The law of a tree's counts under a `DirichletTree` prior, by messages of its families."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from congenial.domain.tree import Tree
from congenial.errors import InfeasibleError, NumericalError
from congenial.imaging.closest import project
from congenial.inference.splits.dirichlet_tree import DirichletTree
from congenial.invariants.written import bounds, consistent
from congenial.kernels.network import kept_laws
from congenial.kernels.network import splits as kernels
from congenial.kernels.network.marginals import HIGH, MEAN
from congenial.kernels.network.split_families import FamilyMessages, Measured, Splits
from congenial.kernels.network.splits import Summarised
from congenial.kernels.numerics import laws
from congenial.randomness import Randomness
from congenial.types import BoolArray, FloatArray, IntArray

# Nats below its largest weight where a message is cut off, tried in this order.
_NATS = (34.0, 34.0, 50.0, 80.0, 150.0)
# Share of all laws together that may lie beyond the ends of their windows.
_MOST_LOST = 1e-7
# Scales of Laplace noise, and deviations of normal noise, that a measured count may be off.
_FAR_LAPLACE, _FAR_NORMAL = 20.0, 6.5
# Least expected count of a family, as a share of how far it may be off: a family that is expected
# to be empty would have messages cut off before the counts that its own measurement allows.
_FLOOR = 0.2
# The same where a family is known exactly: p must be positive.
_LEAST = 0.05


@dataclass(frozen=True, eq=False)
class Evidence:
    """The evidence about each node of a tree: its measurement, and the ends of its count."""

    tree: Tree
    kind: IntArray  # shape (n,): Law of the noise; FLAT where there is no measurement.
    scale: FloatArray  # shape (n,)
    y: FloatArray  # shape (n,)
    lo: FloatArray
    hi: FloatArray

    def part(self, nodes: IntArray) -> Evidence:
        """Return what is known of some nodes; one whose parent is not among them is a root."""
        number = np.full(len(self.tree) + 1, -1, dtype=np.int64)
        number[nodes] = np.arange(nodes.size)
        tree = Tree.from_parents(number[self.tree.parents[nodes]])
        known = self.scale[nodes], self.y[nodes], self.lo[nodes], self.hi[nodes]
        return Evidence(tree, self.kind[nodes], *known)

    def estimate(self) -> FloatArray:
        """Return counts near the measurements: their nonnegative least squares fit, shape (n,)."""
        variance = np.where(self.kind == laws.GAUSSIAN, 1.0, 2.0) * self.scale**2
        weight = np.where(self.kind == laws.FLAT, 0.0, 1.0 / variance)
        known = consistent(self.tree) & bounds(self.lo, self.hi)
        return np.asarray(project(self.y, known, weights=weight if weight.any() else None))

    @cached_property
    def one_sided(self) -> BoolArray:
        """Leaves whose weight is geometric in their counts, which have no other end than 0."""
        found = (self.kind == laws.FLAT) | ((self.kind == laws.LAPLACE) & (self.y <= 0.0))
        return np.asarray(self.tree.is_leaf & found & (self.lo == 0.0) & np.isinf(self.hi))

    @cached_property
    def children(self) -> IntArray:
        """Children by parent, shape (n - roots,): leaves before others, those alike together."""
        child = self.tree.children[1]
        keys = self.y, ~self.one_sided, ~self.tree.is_leaf, self.tree.parents
        return np.asarray(child[np.lexsort([key[child] for key in keys])])

    def misplaced(self, center: FloatArray) -> FloatArray:
        """Return `center` of families whose messages may add up to another sum, or -1.

        They are families of inner nodes, and of leaves whose measurements add up to another sum:
        counts that are not negative add up to more than measurements of many empty ones do.
        """
        tree, n = self.tree, len(self.tree)
        child = np.flatnonzero(tree.parents >= 0)
        above = tree.parents[child]
        known = tree.is_leaf & (self.kind != laws.FLAT)
        variance = np.where(self.kind == laws.GAUSSIAN, 1.0, 2.0) * self.scale**2
        apart = np.bincount(above, np.maximum(self.y[child], 0.0), n) - center
        error = np.bincount(above, variance[child], n)
        other = np.bincount(above, ~known[child], n) > 0
        leaves = np.bincount(above, tree.is_leaf[child], n) > 0
        placed = np.where(other, ~leaves, apart**2 > error)
        return np.where(placed & ~tree.is_leaf, center, -1.0)

    def slack(self, center: FloatArray) -> FloatArray:
        """Return how far each node's count may be from `center`, shape (n,)."""
        tree = self.tree
        normal = self.kind == laws.GAUSSIAN
        own = np.where(normal, _FAR_NORMAL, _FAR_LAPLACE) * self.scale
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
            # a count that is measured neither here nor below is part of the parent's count
            above = center[tree.parents[at]] + own[tree.parents[at]]
            own[at] = np.where(np.isinf(own[at]), above, own[at])
        return np.where(np.isinf(own), center, own)


@dataclass(frozen=True, eq=False)
class Laws:
    """Means of all nodes' counts, and their laws without ends of less than 1e-11 each."""

    mean: FloatArray
    # shape (n, 2): Means of digamma(z + a) - digamma(a) for each node's alpha, and for its
    # children's sum.
    rises: FloatArray
    # Each law's first value, its size (0 where it is not kept), and where it begins in `flat`;
    # leaves that are alike share one.
    first: IntArray
    size: IntArray
    place: IntArray
    flat: FloatArray
    lost: float  # About what laws have beyond the ends of their windows, all shares together.

    def summary(self, alpha: float) -> FloatArray:
        """Return the first columns of `marginals.summarise`, shape (n, c)."""
        out = np.empty((self.first.size, HIGH + 1))
        kept_laws.summaries(alpha, self.first, self.size, self.place, self.flat, out)
        out[:, MEAN] = self.mean
        return out

    def of(self, v: int) -> tuple[IntArray, FloatArray]:
        """Return the values of a node's count and their probabilities."""
        found = self.flat[self.place[v] : self.place[v] + self.size[v]]
        return self.first[v] + np.arange(found.size), found / found.sum()

    def chances(self, first: IntArray, size: IntArray) -> FloatArray:
        """Return the chances that each count is at most each value of its window."""
        out = np.empty(int(size.sum()))
        kept_laws.up_to(first, size, self.first, self.size, self.place, self.flat, out)
        return out

    def expected_error(self, table: IntArray, weights: FloatArray) -> float:
        """Return the expected absolute error of a table, summed over its nodes by `weights`."""
        of = self.first, self.size, self.place, self.flat
        return float(kept_laws.expected_errors(table, weights, *of))


@dataclass(frozen=True, eq=False)
class SplitLaw:
    """Messages that every law and draw follows from."""

    tree: Tree
    measured: Measured
    splits: Splits
    nats: float  # How far below its largest weight each message is cut off.
    messages: FamilyMessages
    log_total: float  # Log of the summed weights of all counts.

    def laws(self, *, kept: bool) -> Laws:
        """Return the means of every node, and the laws where they are kept."""
        n = len(self.tree)
        messages = self.messages._replace(table=self.messages.table.copy())
        first, size, place = (np.zeros(n, dtype=np.int64) for _ in range(3))
        summarised = Summarised(np.zeros(n), np.zeros((n, 2)), first, size, place)
        known = self.tree.parents, self.measured, self.splits, messages, self.nats
        flat, lost = kernels.downward(*known, kept, summarised)
        return Laws(*summarised, flat, lost)

    def sample(self, rows: int, rng: Randomness) -> IntArray:
        """Draw the counts `rows` times, independently; shape (rows, n)."""
        n = len(self.tree)
        inner = int((np.diff(self.splits.starts) > 0).sum())
        roots = int((self.tree.parents < 0).sum())
        words = n - inner + roots
        bits = rng.bits(rows * words).reshape(rows, words)
        out = np.empty((rows, n), dtype=np.int64)
        splits = self.splits._replace(children=self.tree.children[1])
        known = self.tree.parents, self.measured, splits, self.messages, self.nats
        kernels.draw(*known, bits, out)
        return out


def split_law(
    evidence: Evidence, prior: DirichletTree, center: FloatArray, nats: float
) -> SplitLaw:
    """Send messages up the tree; `center` is about what the counts are, shape (n,).

    Raises InfeasibleError if no counts that are not negative satisfy the bounds.
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
    measured = Measured(
        evidence.kind, inverse, evidence.y, evidence.lo, evidence.hi, evidence.one_sided
    )
    order = tree.bottom_up if tree.bottom_up.size else np.arange(n - 1, -1, -1)
    splits = Splits(
        tree.children[0],
        evidence.children,
        np.asarray(order, np.int64),
        prior.alpha,
        total,
        prior.odds_of(tree),
        p,
        slack,
        evidence.misplaced(center),
    )
    first, size, offset = (np.zeros(n, dtype=np.int64) for _ in range(3))
    logs = np.zeros(n)
    table = kernels.upward(tree.parents, measured, splits, nats, first, size, offset, logs)
    if not np.isfinite(logs).all():
        raise InfeasibleError("no counts satisfy the bounds; relax one of them.")
    messages = FamilyMessages(first, size, offset, table)
    return SplitLaw(tree, measured, splits, nats, messages, float(logs.sum()))


def verified_law(
    evidence: Evidence, prior: DirichletTree, center: FloatArray | None = None
) -> tuple[SplitLaw, Laws]:
    """Return messages that hold all but a share of 1e-7 of all laws together, and the laws.

    Raises NumericalError if they cannot.
    """
    center = evidence.estimate() if center is None else center
    for nats in _NATS:
        law = split_law(evidence, prior, center, nats)
        found = law.laws(kept=True)
        if found.lost <= _MOST_LOST:
            return law, found
        center = found.mean
    raise NumericalError(
        "the messages of the posterior do not reach their error bound; use a prior that is less "
        "concentrated, or measurements with less noise."
    )
