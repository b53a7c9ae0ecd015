"""Trees of bounded counts, their tables of families, and draws against exact laws."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy import stats

import congenial as cg
from congenial import sum_network
from congenial.sum_network.families import narrow_families
from congenial.sum_network.families.family_sums import fill_families


def random_tree(source, n):
    """Return a tree with leaves at several depths, and counts of which many are 0."""
    parents = [-1, *(int(source.integers(0, min(v, max(1, n // 3)))) for v in range(1, n))]
    tree = cg.Tree.from_parents(parents)
    mean = source.choice([0.3, 3.0, 12.0])
    return tree, tree.roll_up(source.poisson(mean, tree.leaves.size))


def conditioned(tree, scale, *, pinned=True, noise=cg.DiscreteLaplace):
    """Return noise with a floor of 0; `pinned` is whether the root is exact, or exact nodes."""
    invariant = cg.consistent(tree) & cg.nonnegative()
    if pinned is not False:
        invariant &= cg.exactly([0] if pinned is True else pinned)
    return cg.condition(cg.Additive(noise(scale), tree), invariant, sampler="exact")


def compiled(released, x):
    weights = released._shared_weights(released._checked(x), released.forest.orientation)
    return sum_network.compile(released.forest, weights, whole=False)


def filled(released, x):
    made = compiled(released, x)
    return fill_families(made.forest, made.weights)


def posterior_filled(tree, scale, y, *, pinned=False):
    """Return the flat posterior of measurements, and its tables of families and their zero."""
    invariant = cg.consistent(tree) & cg.nonnegative()
    if pinned:
        invariant &= cg.exactly([0])
    law = cg.posterior(y, cg.Additive(cg.DiscreteLaplace(scale), tree), invariant, prior="flat")
    made, zero = law._law._sums
    found = fill_families(made.forest, made.weights)
    return law, None if found is None else replace(found, freed=made.freed), zero


def p_values(draws, released, x):
    """Yield a p-value for every node: draws against its law by the tables of all merges."""
    for v in range(draws.shape[1]):
        yield from p_value(draws[:, v], *released.marginal(v, x))


def p_value(drawn, values, probabilities):
    """Yield a p-value of draws of one number, if there are enough to tell."""
    at = np.clip(drawn - values[0], 0, values.size - 1)
    observed = np.bincount(at, minlength=values.size).astype(float)
    expected = probabilities * len(drawn)
    often = expected >= 10.0
    if often.sum() < 2:
        return
    rest = max(expected[~often].sum(), 1e-9)
    groups = (
        np.append(observed[often], observed[~often].sum()),
        np.append(expected[often], rest),
    )
    kept = groups[1] >= 5.0
    statistic = ((groups[0] - groups[1])[kept] ** 2 / groups[1][kept]).sum()
    yield stats.chi2.sf(statistic, int(kept.sum()) - 1)


def divide_above(most, monkeypatch):
    """Divide families of more than `most` members into groups, however narrow the noise is."""
    monkeypatch.setattr(narrow_families, "_MOST", most)
    monkeypatch.setattr(narrow_families, "scales_are_wide", lambda *_: True)
