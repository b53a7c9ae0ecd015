"""The worst pair that is named against all pairs of small trees, one by one."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

import congenial as cg
from congenial.accounting.guarantee import conditioned_guarantee, imaged_guarantee
from congenial.accounting.loss.inequalities import (
    PROVED,
    TRIVIAL,
    bounded_loss,
    charged,
)
from congenial.accounting.worst_pair import worst_pair
from congenial.errors import EmptyNeighbourhoodError, PrivacyError
from congenial.invariants.written import resolve_invariant

TREES = [
    (-1, 0, 0),
    (-1, 0, 0, 1, 1, 2),
    (-1, 0, 0, 0, 1, 1, 2, 2, 3),
    (-1, 0, 0, 1, 1, 3, 3, 2, 7),
]


def ancestry(tree, leaf):
    path = set()
    while leaf >= 0:
        path.add(leaf)
        leaf = int(tree.parents[leaf])
    return path


def every_pair(tree, pinned, neighbours, one_sided):
    """Leaves between which, or into which, a record may move, and the nodes that change."""
    leaves = [int(v) for v in tree.leaves]
    pairs = []
    if neighbours == "substitute":
        pairs += [
            ((a, b), ancestry(tree, a) ^ ancestry(tree, b)) for a, b in combinations(leaves, 2)
        ]
    if neighbours == "add-remove" or one_sided:
        pairs += [((a, None), ancestry(tree, a)) for a in leaves]
    return {ends: changed for ends, changed in pairs if not pinned[list(changed)].any()}


def linked(tree, pinned):
    """For each node, the nodes that one sum after the other ties to it, without pinned ones."""
    sets = {v: {v} for v in range(len(tree))}
    for total in range(len(tree)):
        members = [total, *np.flatnonzero(tree.parents == total).tolist()]
        free = [v for v in members if not pinned[v]]
        if len(members) > 1 and len(free) == 2:
            joined = sets[free[0]] | sets[free[1]]
            sets.update(dict.fromkeys(joined, joined))
    return sets


def charge(changed, cost, bounded, sets, source):
    base = float(cost[sorted(changed)].sum())
    if source == TRIVIAL:
        return base, 2 * base
    alphas = [sum(cost[m] for m in sets[v]) for v in changed if bounded[v]]
    if source != PROVED or not alphas:
        return base, base
    return base, float(bounded_loss(base, min(alphas)))


def cases(seed):
    """Trees with a scale of its own at every node; some are pinned, not measured or bounded."""
    rng = np.random.default_rng(seed)
    for _ in range(60):
        tree = cg.Tree.from_parents(TREES[rng.integers(len(TREES))])
        n = len(tree)
        invariant = cg.consistent(tree)
        pins = [v for v in range(n) if rng.random() < 0.15]
        if pins:
            invariant = invariant & cg.exactly(pins)
        if rng.random() < 0.7:
            lo = np.where(rng.random(n) < 0.5, 0.0, -np.inf)
            invariant = invariant & cg.bounds(lo)
        resolved = resolve_invariant(invariant, n, tree)
        scales = rng.choice([0.5, 1.0, 1.7, 3.0, 20.0, np.inf], n, p=[0.2, 0.2, 0.2, 0.2, 0.1, 0.1])
        scales[tree.is_leaf & ~np.isfinite(scales)] = 2.0
        yield tree, resolved, cg.Additive(cg.DiscreteLaplace(scales), tree)


@pytest.mark.parametrize("state", [conditioned_guarantee, imaged_guarantee])
@pytest.mark.parametrize(
    ("neighbours", "one_sided"),
    [("substitute", False), ("substitute", True), ("add-remove", False)],
)
def test_the_worst_pair_has_the_largest_loss_of_all_pairs(state, neighbours, one_sided):
    tried = bounds_decide = 0
    for tree, resolved, noise in cases(20_261_121):
        pinned = resolved.determined
        pairs = every_pair(tree, pinned, neighbours, one_sided)
        try:
            claim = state(noise, resolved, neighbours, sampler_error=0.0, one_sided=one_sided)
        except EmptyNeighbourhoodError:
            continue
        found = worst_pair(noise, resolved, tree, claim, one_sided=one_sided)
        cost = np.where(pinned, 0.0, 1.0 / noise.scales)
        bounded = charged(replace(resolved, pinned=pinned))
        sets = linked(tree, pinned)
        charges = {
            ends: charge(changed, cost, bounded, sets, claim.gamma_source)
            for ends, changed in pairs.items()
        }
        ends = (found.origin, found.destination)
        ends = ends if ends in pairs else ends[::-1]
        assert found.changed == len(pairs[ends])
        assert (found.base_loss, found.loss) == pytest.approx(charges[ends])
        assert found.loss == pytest.approx(max(loss for _, loss in charges.values()))
        assert found.loss == pytest.approx(claim.epsilon)
        tried += 1
        bounds_decide += found.base_loss < 0.999 * claim.base_epsilon
    assert tried >= 15
    if state is conditioned_guarantee and neighbours == "substitute":
        assert bounds_decide >= 1


def test_unsupported_cases_are_refused():
    tree = cg.Tree.from_parents(TREES[0])
    noise = cg.Additive(cg.DiscreteGaussian(2.0), tree)
    resolved = resolve_invariant(cg.consistent(tree) & cg.linear(np.ones((1, 3)), [4]), 3, tree)
    claim = conditioned_guarantee(noise, resolved, "substitute", sampler_error=0.0)
    with pytest.raises(PrivacyError, match="worst pair"):
        worst_pair(noise, resolved, tree, claim)


@pytest.mark.parametrize("bound", [None, cg.nonnegative()])
def test_gaussian_noise_has_the_pair_with_the_largest_rho(bound):
    tree = cg.Tree.from_parents([-1, 0, 0, 1, 1, 2])
    sigmas = np.array([np.inf, 2.0, 1.0, 1.5, 3.0, 0.8])
    noise = cg.Additive(cg.DiscreteGaussian(sigmas), tree)
    invariant = cg.consistent(tree) if bound is None else cg.consistent(tree) & bound
    resolved = resolve_invariant(invariant & cg.exactly(0), 6, tree)
    claim = conditioned_guarantee(noise, resolved, "substitute", sampler_error=0.0)
    found = worst_pair(noise, resolved, tree, claim)
    paths = {3: {3, 1}, 4: {4, 1}, 5: {5, 2}}
    rho = {
        (a, b): sum(0.5 / sigmas[v] ** 2 for v in paths[a] ^ paths[b])
        for a, b in combinations(paths, 2)
    }
    assert {found.origin, found.destination} == set(max(rho, key=rho.get))
    assert claim.rho == pytest.approx(max(rho.values()))
    assert (found.base_loss, found.loss) == (claim.base_epsilon, claim.epsilon)
    assert claim.whole_orders == (bound is not None)
