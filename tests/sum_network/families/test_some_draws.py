"""Draws of some variables have the law that draws of all have."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import congenial as cg
from congenial.sum_network.families import family_draws
from congenial.sum_network.families.some_draws import draws_of_some
from support.bounded_trees import compiled, conditioned, divide_above, filled, p_value, random_tree

pytestmark = pytest.mark.kernels

LEAST = 1e-6


@pytest.mark.parametrize("most", [64, 2])
@pytest.mark.parametrize("seed", range(8))
def test_some_variables_have_their_laws_and_sums(seed, most, monkeypatch):
    divide_above(most, monkeypatch)
    source = np.random.default_rng(seed)
    tree, x = random_tree(source, int(source.integers(8, 30)))
    scale, pinned = float(source.choice([0.7, 2.0, 6.0])), bool(source.integers(2))
    released = conditioned(tree, scale, pinned=pinned)
    sums = filled(released, x)
    nodes = source.permutation(len(tree))[: int(source.integers(1, 6))]
    some = draws_of_some(sums, nodes)
    assert some.n <= sums.n and some.order.size <= sums.order.size
    drawn = family_draws.sample(some, 20_000, cg.seeded(seed), first=nodes.size)
    whole = family_draws.sample(sums, 20_000, cg.seeded(seed + 100), first=len(tree))
    other = conditioned(tree, 1.3 * scale, pinned=pinned)
    told = []
    for column, v in enumerate(nodes.tolist()):
        law = released.marginal(v, x)
        assert min(p_value(x[v] + drawn[:, column], *law), default=1.0) > LEAST
        told += p_value(x[v] + drawn[:, column], *other.marginal(v, x))
    if scale > 1.0 and len(told) == nodes.size:
        assert min(told) < LEAST
    # the law of their sum is that of whole draws
    one, two = drawn.sum(axis=1), whole[:, nodes].sum(axis=1)
    every = np.union1d(one, two)
    steps = [np.searchsorted(np.sort(part), every, side="right") / part.size for part in (one, two)]
    # Kolmogorov and Smirnov: probability below 1e-6
    assert np.abs(steps[0] - steps[1]).max() < 2.7 * np.sqrt(2.0 / one.size)


def test_a_family_adds_up_whatever_the_order_of_its_variables():
    tree = cg.Tree.from_parents([-1, 0, 0, 1, 1, 1, 2, 2, *np.repeat([3, 4, 5, 6, 7], 4)])
    x = tree.roll_up(np.random.default_rng(1).poisson(2.0, tree.leaves.size))
    sums = filled(conditioned(tree, 3.0, pinned=False), x)
    for family in ([5, 3, 1, 4], [2, 0, 1], [8, 11, 3, 9, 10]):
        some = draws_of_some(sums, np.array(family))
        drawn = family_draws.sample(some, 200, cg.seeded(2), first=len(family))
        above = [i for i, v in enumerate(family) if v == tree.parents[family].max()]
        rest = [i for i in range(len(family)) if i not in above]
        assert (drawn[:, above[0]] == drawn[:, rest].sum(axis=1)).all()


def test_variables_that_follow_from_others_are_drawn_with_all():
    tree = cg.Tree.from_parents([-1, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 4, 5, 5, 6, 6])
    x = tree.roll_up(np.random.default_rng(4).poisson(2.0, tree.leaves.size))
    scales = np.full(len(tree), 3.0)
    scales[0] = np.inf
    released = conditioned(tree, scales, pinned=False)
    sums = replace(filled(released, x), freed=compiled(released, x).freed)
    follows = np.flatnonzero(sums.freed.follows)
    assert follows.size
    assert draws_of_some(sums, follows[:1]) is None
    others = np.setdiff1d(np.arange(len(tree)), follows)
    some = draws_of_some(sums, others)
    drawn = x[others] + family_draws.sample(some, 20_000, cg.seeded(3), first=others.size)
    for column, v in enumerate(others.tolist()):
        assert min(p_value(drawn[:, column], *released.marginal(v, x)), default=1.0) > LEAST


def test_whole_draws_are_hardly_ever_rejected():
    """What is left out of draws of some variables changes their law by no more than this."""
    tree, x = random_tree(np.random.default_rng(5), 400)
    for scale in (4.0, 20.0):
        sums = filled(conditioned(tree, scale), x)
        values, doubts = np.zeros((sums.rows, 500), dtype=np.int64), np.zeros(500)
        family_draws._choose(sums, values, doubts, cg.seeded(3))
        assert 0.0 < doubts.mean() < 1e-8
