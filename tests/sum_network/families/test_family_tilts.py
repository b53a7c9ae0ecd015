"""Tilts put the tables of families where draws lie, however wide the noise is."""

from __future__ import annotations

import numpy as np
import pytest

import congenial as cg
from congenial.sum_network.families import family_draws, family_sums
from congenial.sum_network.families.equal_subtrees import merge_equal
from support.bounded_trees import compiled, conditioned, filled

pytestmark = pytest.mark.kernels


def sparse(scale):
    """Return tables of a tree with 4,000 leaves of which most are 0, all counts at least 0."""
    levels = [np.repeat(np.arange(m), k) for m, k in ((1, 5), (5, 8), (40, 100))]
    starts = (0, 1, 6)
    parents = np.concatenate([[-1], *(s + a for s, a in zip(starts, levels, strict=True))])
    tree = cg.Tree.from_parents(parents)
    source = np.random.default_rng(3)
    leaves = source.poisson(9.0, 4000) * (source.random(4000) < 0.1)
    return filled(conditioned(tree, scale), tree.roll_up(leaves))


@pytest.mark.parametrize("scale", [5.0, 20.0, 50.0, 100.0])
def test_draws_lie_where_the_errors_of_tables_are_small(scale):
    sums = sparse(scale)
    values = np.zeros((sums.n + sums.order.size, 20), dtype=np.int64)
    doubts = np.zeros(20)
    family_draws._choose(sums, values, doubts, cg.seeded(1))
    # without tilts they are above 1/2, and draws never end
    assert doubts.max() < 1e-8


@pytest.mark.parametrize("scale", [5.0, 100.0])
def test_members_are_hardly_tilted_again_for_a_fixed_sum(scale):
    sums = sparse(scale)
    # by less than one deviation, which is some scales
    assert np.abs(sums.retilt).max() * scale < 1.0


@pytest.mark.parametrize("near", [False, True])
def test_tilts_stay_near_those_above_if_asked(near):
    tree = cg.Tree.from_parents([-1, 0, 0, 1, 1, 1, 2, 2])
    made = compiled(conditioned(tree, 5.0, pinned=False), tree.roll_up(np.arange(5)))
    rounds = family_sums._Filling(merge_equal(made.forest, made.weights), near=near).rounds
    # the bounds of sums follow from those of leaves, so a weight falls by 1 / scale on both sides
    held = rounds.owner >= 0
    np.testing.assert_allclose(rounds.least[held], 0.2 if near else np.inf)
    np.testing.assert_allclose(rounds.most[held], 0.2 if near else np.inf)
