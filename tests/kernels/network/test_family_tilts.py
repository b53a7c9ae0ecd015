"""Settled tilts give each sum about the mean which its owner has."""

from __future__ import annotations

import numpy as np
import pytest

from congenial.kernels.network import family_tilts as kernels
from congenial.sum_network.families.equal_subtrees import merge_equal
from congenial.sum_network.families.family_sums import _Filling
from support.bounded_trees import compiled, conditioned, random_tree

pytestmark = pytest.mark.kernels


def filling(seed, scale):
    """Return the families of a random tree whose counts are at least 0."""
    tree, x = random_tree(np.random.default_rng(seed), 120)
    made = compiled(conditioned(tree, scale), x)
    return _Filling(merge_equal(made.forest, made.weights))


def distances(rounds):
    """Return how far sums are from the means of their owners, in deviations."""
    owner = rounds.owner
    aim = np.where(owner >= 0, rounds.mean[owner], 0.0)
    return (aim - rounds.own_mean) / np.sqrt(np.maximum(rounds.own_variance, kernels.LEAST))


@pytest.mark.parametrize("scale", [4.0, 40.0, 100.0])
def test_means_of_sums_settle_near_those_of_their_owners(scale):
    far = 0
    for seed in range(1000):
        rounds = filling(seed, scale).rounds
        rounds.theta[:], rounds.stale[:] = 0.0, True
        rounds._settle(0)
        far += np.abs(distances(rounds)).max() > 1.0
        rounds.settle()
        # a tilt that may not move further leaves its sum where it is
        over = np.where(rounds.over >= 0, rounds.theta[rounds.over], 0.0)
        ends = rounds.theta - over + np.stack((rounds.least, -rounds.most))
        free = np.abs(ends).min(axis=0) > 1e-12
        of = np.concatenate(rounds.levels)
        assert np.abs(distances(rounds)[of[free[of]]]).max(initial=0.0) < 1.0
    assert far > 500


def test_moments_are_those_of_members_added_up():
    rounds = filling(3, 10.0).rounds
    rounds.stale[:] = True
    rounds._settle(0)
    tree, *_ = rounds._fixed
    begins, members, times = tree[:3]
    for f in np.concatenate(rounds.levels):
        of = slice(begins[f], begins[f + 1])
        if not tree[6][f]:
            assert rounds.own_mean[f] == pytest.approx((times[of] * rounds.mean[members[of]]).sum())


def test_only_families_that_moved_are_worked_out_again():
    rounds = filling(4, 10.0).rounds
    before = rounds.own_mean.copy()
    rounds.own_mean += 100.0
    rounds.stale[:] = False
    rounds._settle(0)
    assert (rounds.own_mean == before + 100.0).all()
    rounds.stale[rounds.levels[-1]] = True
    rounds._settle(0)
    of = rounds.levels[-1]
    assert rounds.own_mean[of] == pytest.approx(before[of])
