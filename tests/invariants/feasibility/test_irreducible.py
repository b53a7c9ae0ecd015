"""Irreducible infeasible subsets of random families, against all subsets."""

from __future__ import annotations

import numpy as np
import pytest

from congenial.invariants.feasibility.irreducible import irreducible


class Intervals:
    """Invariants that each keep some of ten points; they hold together where a point is left."""

    def __init__(self, kept):
        self.kept = kept

    def holds(self, kept):
        common = np.ones(10, dtype=bool)
        for i in kept:
            common &= self.kept[i]
        return bool(common.any())


@pytest.mark.parametrize("seed", range(40))
def test_a_subset_is_infeasible_and_its_proper_subsets_are_feasible(seed):
    rng = np.random.default_rng(seed)
    oracle = Intervals(rng.random((8, 10)) < 0.6)
    everything = frozenset(range(8))
    if oracle.holds(everything):
        oracle.kept[0] = ~oracle.kept[1]
    found = irreducible(oracle.holds, everything)
    assert not oracle.holds(found)
    assert all(oracle.holds(found - {i}) for i in found)
