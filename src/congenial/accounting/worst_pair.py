"""The pair of neighbouring datasets with the largest loss under a guarantee."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from congenial.accounting.guarantee import POST_PROCESSED, TWO_BINS, Guarantee
from congenial.accounting.loss.inequalities import PROVED, TRIVIAL, Pairs, bounded_loss, charged
from congenial.accounting.loss.together import moving_together
from congenial.accounting.neighbours.leeway import with_implied
from congenial.accounting.neighbours.single_moves import (
    WorstMove,
    costs_through,
    one_sided_costs,
    worst_move,
)
from congenial.domain.tree import Tree
from congenial.domain.workload import Workload
from congenial.errors import PrivacyError
from congenial.invariants.resolved import ResolvedInvariant
from congenial.noise.additive import Additive
from congenial.types import FloatArray, IntArray

# Relative difference below which two losses count as equal, so that all machines pick one pair.
CLOSE = 1e-9


@dataclass(frozen=True)
class WorstPair:
    """Two neighbouring datasets, described by the leaves of the record in which they differ."""

    origin: int  # Leaf that holds the record in one of them.
    # Leaf that holds it in the other dataset; None if the other dataset lacks it.
    destination: int | None
    changed: int  # Number of counts that differ.
    base_loss: float  # Loss of the noise alone; under Gaussian noise at the guarantee's delta.
    loss: float  # The pair's loss in the guarantee, bounds included.


def worst_pair(
    mechanism: Additive,
    resolved: ResolvedInvariant,
    tree: Tree | Workload,
    guarantee: Guarantee,
    *,
    one_sided: bool = False,
) -> WorstPair:
    """Find the pair of neighbours with the largest loss under the guarantee of one release.

    Its loss is the guarantee's epsilon.

    References
    ----------
    `proofs/inequalities.md`, the theorem: the loss of a pair rises with its loss without the
    bounds, and falls with the smallest change over scale among its entries whose bounds count,
    summed over the entries that move together.
    """
    if guarantee.gamma_source in (POST_PROCESSED, TWO_BINS):
        resolved = resolved.exact_part
    if resolved.equalities[1].size or resolved.n_inequalities:
        raise PrivacyError(
            f"the worst pair of {mechanism.noise.name} noise under these invariants is not worked "
            "out; use a tree without linear conditions."
        )
    grid, change = mechanism.granularity, mechanism.per_record
    together = moving_together(resolved)
    resolved = with_implied(resolved, tree, grid=grid, change=change)
    cost = np.where(resolved.pinned, 0.0, change / mechanism.scales)
    search = _Search(mechanism, resolved, tree, guarantee, one_sided, cost, together.sum(cost))
    moves = guarantee.moves
    known, pairs = (None, None) if moves is None else (moves.worst, moves.pairs)
    # a zCDP guarantee is the rho of the costliest pair, converted to epsilon
    zcdp = mechanism.noise.measure == "zcdp"
    most = search.charged(known, 0.5 * cost**2 if zcdp else cost)
    if guarantee.gamma_source != PROVED or pairs is None:
        return most
    if most.loss >= pairs.loss() * (1.0 - CLOSE):
        return most
    # the worst pair under bounds changes a certain entry; an extra cost forces that change
    extra = np.zeros(len(tree))
    extra[search.entry(pairs)] = 2.0 * pairs.worst
    return search.charged(None, cost + extra)


@dataclass(frozen=True)
class _Search:
    """A release, its guarantee, and the cost of a change of each entry, shape (n,)."""

    mechanism: Additive
    resolved: ResolvedInvariant
    tree: Tree | Workload
    guarantee: Guarantee
    one_sided: bool
    cost: FloatArray
    summed: FloatArray  # shape (n,): The same, summed over the entries that move together.

    def charged(self, known: WorstMove | None, weight: FloatArray) -> WorstPair:
        """Return a known pair, or that of the largest weight, with its loss in the guarantee."""
        guarantee, grid = self.guarantee, self.mechanism.granularity
        move = known or worst_move(weight, self.resolved, self.tree, guarantee.neighbours)
        if self.one_sided:
            alone = one_sided_costs(weight, self.resolved, self.tree)[self.tree.leaves]
            at = int(np.argmax(alone))
            if alone[at] > move.cost * (1.0 + CLOSE):
                move = WorstMove(float(alone[at]), int(self.tree.leaves[at]), None)
        changed = self._changed(move)
        base = loss = float(self.cost[changed].sum())
        if self.mechanism.noise.measure == "zcdp":
            base, loss = guarantee.base_epsilon, guarantee.epsilon
        elif guarantee.gamma_source == TRIVIAL:
            loss = 2.0 * base
        elif guarantee.gamma_source == PROVED:
            counts = changed[charged(self.resolved, grid)[changed]]
            if counts.size:
                alpha = float(self.summed[counts].min())
                loss = float(bounded_loss(base, alpha, self.mechanism.per_record / grid))
        return WorstPair(move.origin, move.destination, int(changed.size), base, loss)

    def entry(self, pairs: Pairs) -> int:
        """First entry whose worst pair is charged the most."""
        losses = bounded_loss(pairs.base, pairs.alpha, pairs.steps)
        at = int(np.flatnonzero(losses >= losses.max() * (1.0 - CLOSE))[0])
        here = charged(self.resolved, self.mechanism.granularity)
        here &= self.summed == pairs.alpha[at]
        neighbours, one_sided = self.guarantee.neighbours, self.one_sided
        through = costs_through(
            self.cost, self.resolved, self.tree, neighbours, one_sided=one_sided
        )
        return int(np.argmax(np.where(here, through, -np.inf)))

    def _changed(self, move: WorstMove) -> IntArray:
        """Nodes whose counts a move changes."""
        leaves = [leaf for leaf in (move.origin, move.destination) if leaf is not None]
        if isinstance(self.tree, Tree):
            counts = np.concatenate([self.tree.above(leaf) for leaf in leaves])
        else:
            counts = self.tree.chain[:, np.searchsorted(self.tree.leaves, leaves)]
        nodes, times = np.unique(counts[counts >= 0], return_counts=True)
        return np.asarray(nodes[times == 1])
