"""Irreducible infeasible subsets of random families, against all subsets."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from congenial.invariants.feasibility.irreducible import fewest, hitting_set, irreducible


class Intervals:
    """Invariants that each keep some of ten points; they hold together where a point is left."""

    def __init__(self, kept):
        self.kept = kept

    def holds(self, kept):
        common = np.ones(10, dtype=bool)
        for i in kept:
            common &= self.kept[i]
        if not common.any():
            return None
        return self.kept[:, int(np.flatnonzero(common)[0])]


@pytest.mark.parametrize("seed", range(40))
def test_a_subset_is_infeasible_and_its_proper_subsets_are_feasible(seed):
    rng = np.random.default_rng(seed)
    oracle = Intervals(rng.random((8, 10)) < 0.6)
    everything = frozenset(range(8))
    if oracle.holds(everything) is not None:
        oracle.kept[0] = ~oracle.kept[1]
    found = irreducible(oracle, everything)
    assert oracle.holds(found) is None
    assert all(oracle.holds(found - {i}) is not None for i in found)
    least = next(
        size
        for size in range(1, 9)
        if any(oracle.holds(frozenset(some)) is None for some in combinations(range(8), size))
    )
    smallest = fewest(oracle, 8, everything)
    assert smallest.fewest
    assert len(smallest.members) == least
    assert oracle.holds(smallest.members) is None


@pytest.mark.parametrize("seed", range(40))
def test_a_hitting_set_meets_every_set_and_is_smallest(seed):
    rng = np.random.default_rng(seed)
    sets = [frozenset(rng.choice(7, int(rng.integers(1, 4)), replace=False)) for _ in range(6)]
    found = hitting_set(sets, 7)
    assert all(found & each for each in sets)
    for size in range(len(found)):
        assert not any(
            all(set(some) & each for each in sets) for some in combinations(range(7), size)
        )
