"""The pair of neighbouring datasets with the largest loss under a guarantee."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from congenial.accounting.guarantee import Guarantee
from congenial.accounting.loss.inequalities import PROVED, TRIVIAL, Pairs, bounded_loss, charged
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
    bounds, and falls with the smallest change over scale among its entries whose bounds count.
    """
    zcdp = mechanism.noise.measure == "zcdp"
    moves = guarantee.moves
    known, pairs = (None, None) if moves is None else (moves.worst, moves.pairs)
    if resolved.equalities[1].size or resolved.inequalities[1].size:
        raise PrivacyError(
            f"the worst pair of {mechanism.noise.name} noise under these invariants is not worked "
            "out; use a tree without linear conditions."
        )
    grid, change = mechanism.granularity, mechanism.per_record
    resolved = with_implied(resolved, tree, grid=grid, change=change)
    cost = np.where(resolved.pinned, 0.0, mechanism.per_record / mechanism.scales)
    if zcdp:
        # the guarantee is the rho of the costliest pair, converted to epsilon
        move = _dearest(0.5 * cost**2, resolved, tree, guarantee, one_sided, known)
        return WorstPair(
            move.origin,
            move.destination,
            _changed(tree, move).size,
            guarantee.base_epsilon,
            guarantee.epsilon,
        )

    def found(weight: FloatArray, known: WorstMove | None = None) -> WorstPair:
        move = _dearest(weight, resolved, tree, guarantee, one_sided, known)
        return _charge(move, cost, resolved, tree, mechanism, guarantee)

    most = found(cost, known)
    if guarantee.gamma_source != PROVED or pairs is None:
        return most
    if most.loss >= pairs.loss() * (1.0 - CLOSE):
        return most
    # the worst pair under bounds changes a certain entry; an extra cost forces that change
    through = costs_through(cost, resolved, tree, guarantee.neighbours, one_sided=one_sided)
    node = _node(pairs, cost, through, resolved, mechanism)
    extra = np.zeros(len(tree))
    extra[node] = 2.0 * pairs.worst
    return found(cost + extra)


def _dearest(
    cost: FloatArray,
    resolved: ResolvedInvariant,
    tree: Tree | Workload,
    guarantee: Guarantee,
    one_sided: bool,
    known: WorstMove | None = None,
) -> WorstMove:
    move = known or worst_move(cost, resolved, tree, guarantee.neighbours)
    if one_sided:
        alone = one_sided_costs(cost, resolved, tree)[tree.leaves]
        at = int(np.argmax(alone))
        if alone[at] > move.cost * (1.0 + CLOSE):
            return WorstMove(float(alone[at]), int(tree.leaves[at]), None)
    return move


def _node(
    pairs: Pairs,
    cost: FloatArray,
    through: FloatArray,
    resolved: ResolvedInvariant,
    mechanism: Additive,
) -> int:
    """First entry whose worst pair is charged the most."""
    losses = bounded_loss(pairs.base, pairs.alpha, pairs.steps)
    at = int(np.flatnonzero(losses >= losses.max() * (1.0 - CLOSE))[0])
    here = charged(resolved, mechanism.granularity) & (cost == pairs.alpha[at])
    return int(np.argmax(np.where(here, through, -np.inf)))


def _charge(
    move: WorstMove,
    cost: FloatArray,
    resolved: ResolvedInvariant,
    tree: Tree | Workload,
    mechanism: Additive,
    guarantee: Guarantee,
) -> WorstPair:
    """Return a pair with the loss that a guarantee charges it."""
    changed = _changed(tree, move)
    base = float(cost[changed].sum())
    loss = base
    if guarantee.gamma_source == TRIVIAL:
        loss = 2.0 * base
    elif guarantee.gamma_source == PROVED:
        grid = mechanism.granularity
        counts = changed[charged(resolved, grid)[changed]]
        if counts.size:
            alpha = float(cost[counts].min())
            loss = float(bounded_loss(base, alpha, mechanism.per_record / grid))
    return WorstPair(move.origin, move.destination, int(changed.size), base, loss)


def _changed(tree: Tree | Workload, move: WorstMove) -> IntArray:
    """Nodes whose counts a move changes."""
    leaves = [leaf for leaf in (move.origin, move.destination) if leaf is not None]
    counts = tree.chain[:, np.searchsorted(tree.leaves, leaves)]
    nodes, times = np.unique(counts[counts >= 0], return_counts=True)
    return np.asarray(nodes[times == 1])
