"""Whether sums are nested or disjoint, against sets of cells."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import congenial as cg
from congenial.accounting.neighbours.nested import nested_sums
from congenial.invariants.written import resolve_invariant

TREE = cg.Tree.from_parents([-1, 0, 0, 1, 1, 2, 2])
BELOW = [{0, 1, 2, 3}, {0, 1}, {2, 3}, {0}, {1}, {2}, {3}]


@pytest.mark.parametrize("seed", range(40))
def test_nested_sums_are_disjoint_or_one_contains_the_other(seed):
    rng = np.random.default_rng(seed)
    sums = [set(np.flatnonzero(rng.random(4) < 0.5).tolist()) or {0} for _ in range(2)]
    rows = np.zeros((2, 7))
    for row, cells in zip(rows, sums, strict=True):
        row[[3 + c for c in cells]] = 2.0
    resolved = resolve_invariant(cg.consistent(TREE) & cg.linear(rows, [4.0, 4.0]), 7, TREE)
    wanted = all(
        not a & b or a <= b or b <= a for a, b in itertools.combinations([*sums, *BELOW], 2)
    )
    assert nested_sums(resolved) == wanted


def test_a_condition_that_is_not_a_sum_of_cells_is_not_nested():
    row = np.array([[0.0, 0, 0, 1, 2, 0, 0]])
    resolved = resolve_invariant(cg.consistent(TREE) & cg.linear(row, [3.0]), 7, TREE)
    assert not nested_sums(resolved)
    assert nested_sums(resolve_invariant(cg.consistent(TREE), 7, TREE))
