"""The law of a tree's counts under a `DirichletTree` prior, by messages of its families."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from congenial.domain.tree import Tree
from congenial.errors import InfeasibleError, NumericalError
from congenial.imaging.closest import project
from congenial.inference.splits.dirichlet_tree import DirichletTree
from congenial.invariants.written import bounds, consistent
from congenial.kernels.network import splits as kernels
from congenial.kernels.network.splits import FamilyMessages, Measured, Splits, Summarised
from congenial.kernels.numerics import laws
from congenial.randomness import Randomness
from congenial.types import BoolArray, FloatArray, IntArray

# Nats below its largest weight where a message is cut off, tried in this order.
_NATS = (34.0, 50.0, 80.0, 150.0)
# Share of all laws together that may lie beyond the ends of their windows.
_MOST_LOST = 1e-7
# Scales of Laplace noise, and deviations of normal noise, that a measured count may be off.
_FAR_LAPLACE, _FAR_NORMAL = 20.0, 6.5
# Least expected count of a family, as a share of how far it may be off: a family that is expected
# to be empty would have messages cut off before the counts that its own measurement allows.
_FLOOR = 0.1
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
    """Summaries (n, c) of laws, as `marginals.summarise` has them, and laws themselves."""

    found: FloatArray
    # shape (n, 2): Means of digamma(z + a) - digamma(a) for each node's alpha, and for its
    # children's sum.
    rises: FloatArray
    first: IntArray  # shape (n,): Least value of each law that is kept.
    offset: IntArray  # shape (n + 1,): Where it begins in `flat`; laws that are not kept are empty.
    flat: FloatArray
    lost: float  # About what laws have beyond the ends of their windows, all shares together.


@dataclass(frozen=True, eq=False)
class SplitLaw:
    """Messages that every law and draw follows from."""

    measured: Measured
    splits: Splits
    parents: IntArray
    nats: float  # How far below its largest weight each message is cut off.
    messages: FamilyMessages
    log_total: float  # Log of the summed weights of all counts.

    def laws(self, kept: BoolArray | None = None, *, shown: int = 0, alpha: float = 0.1) -> Laws:
        """Return the first columns of summaries of every node, and the laws of those kept."""
        n = self.parents.size
        keep = np.zeros(n, dtype=np.bool_) if kept is None else kept
        messages = self.messages._replace(table=self.messages.table.copy())
        found, rises = np.zeros((n, shown)), np.zeros((n, 2))
        first, size = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
        known = self.parents, self.measured, self.splits, messages, self.nats
        place = np.zeros(n, dtype=np.int64)
        summarised = Summarised(keep, found, rises, first, size, place)
        out = kernels.downward(*known, alpha, summarised)
        offset = np.concatenate(([0], np.cumsum(size)))
        flat = np.empty(offset[-1])
        kernels.in_order(out[0], place, size, offset, flat)
        return Laws(found, rises, first, offset, flat, out[1])

    def sample(self, rows: int, rng: Randomness) -> IntArray:
        """Draw the counts `rows` times, independently; shape (rows, n)."""
        n = self.parents.size
        inner = int((np.diff(self.splits.starts) > 0).sum())
        roots = int((self.parents < 0).sum())
        words = n - inner + roots
        bits = rng.bits(rows * words).reshape(rows, words)
        out = np.empty((rows, n), dtype=np.int64)
        known = self.parents, self.measured, self.splits, self.messages, self.nats
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
    mean = np.maximum(center, np.maximum(slack * _FLOOR, _LEAST))
    p = np.where(inner, mean / (mean + np.where(inner, total, 1.0)), 0.5)
    square = evidence.kind == laws.GAUSSIAN
    inverse = np.where(square, 0.5 / evidence.scale**2, 1.0 / evidence.scale)
    measured = Measured(evidence.kind, inverse, evidence.y, evidence.lo, evidence.hi)
    order = tree.bottom_up if tree.bottom_up.size else np.arange(n - 1, -1, -1)
    splits = Splits(
        *tree.children,
        np.asarray(order, np.int64),
        prior.alpha,
        total,
        prior.odds_of(tree),
        p,
        slack,
    )
    first, size, offset = (np.zeros(n, dtype=np.int64) for _ in range(3))
    logs = np.zeros(n)
    table = kernels.upward(tree.parents, measured, splits, nats, first, size, offset, logs)
    if not np.isfinite(logs).all():
        raise InfeasibleError("no counts satisfy the bounds; relax one of them.")
    messages = FamilyMessages(first, size, offset, table)
    return SplitLaw(measured, splits, tree.parents, nats, messages, float(logs.sum()))


def verified_law(evidence: Evidence, prior: DirichletTree) -> tuple[SplitLaw, float]:
    """Return messages that hold all but a share of 1e-7 of all laws together, and that share.

    Raises NumericalError if they cannot.
    """
    center = evidence.estimate()
    for nats in _NATS:
        law = split_law(evidence, prior, center, nats)
        found = law.laws(shown=1)
        if found.lost <= _MOST_LOST:
            return law, found.lost
        center = found.found[:, 0]
    raise NumericalError(
        "the messages of the posterior do not reach their error bound; use a prior that is less "
        "concentrated, or measurements with less noise."
    )
