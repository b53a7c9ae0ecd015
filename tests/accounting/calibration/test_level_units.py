"""The units of the noise of levels: what neighbouring datasets change at most."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from congenial.accounting.calibration.level_units import LevelUnits, level_units
from congenial.accounting.neighbours.joint_moves import JointMoves
from congenial.domain.tree import Tree
from congenial.invariants.written import consistent, exactly, linear, resolve_invariant

TREE = Tree.from_paths(["a/p", "a/q", "b/p", "b/q"])
LEAVES = TREE.leaves


def units(invariant, neighbours="substitute", **options):
    return level_units(TREE, resolve_invariant(invariant, len(TREE), TREE), neighbours, **options)


@pytest.mark.parametrize(("neighbours", "unit"), [("substitute", 2.0), ("add-remove", 1.0)])
def test_a_record_that_moves_alone_changes_two_counts_of_a_level(neighbours, unit):
    found = units(consistent(TREE), neighbours)
    assert found.joint is None
    assert found.of(np.array([0.3, 0.7])).tolist() == [unit, unit]


@pytest.mark.parametrize(
    ("pins", "records", "most"), [(TREE.roots, 2, [0.0, 4.0]), ([], 1, [2.0, 2.0])]
)
def test_units_are_the_largest_change_by_the_fewest_records_that_can_move(pins, records, most):
    """Exact are both roots and the sum of the p's: p to q in one needs q to p in the other."""
    row = np.zeros(len(TREE))
    row[LEAVES[[0, 2]]] = 1.0
    known = consistent(TREE) & linear(row, 3)
    found = units(known & exactly(list(pins)) if len(pins) else known)
    moves = []
    for move in itertools.product(range(-records, records + 1), repeat=LEAVES.size):
        gain = TREE.roll_up(np.array(move))
        fixed = sum(move) == 0 and row @ gain == 0 and not gain[pins].any()
        if fixed and 0 < sum(np.abs(move)) <= 2 * records:
            moves.append([np.abs(gain[TREE.level == depth]).sum() for depth in range(2)])
    moves = np.array(moves, dtype=float)
    used = moves.max(axis=0) > 0
    assert moves.max(axis=0).tolist() == most
    assert found.largest[used].tolist() == moves.max(axis=0)[used].tolist()
    share = np.array([0.4, 0.6]) * used
    # some pair of neighbours uses all of the shares
    assert (moves @ (share / found.of(share))).max() == pytest.approx(share.sum(), rel=1e-12)


def test_units_shrink_where_no_pair_changes_every_level_most():
    sums = np.array([[4.0, 2.0, 0.0], [1.0, 6.0, 0.0]])
    none = np.zeros(0, dtype=np.int64)
    joint = JointMoves(2, 1.0, 2, np.ones(3, dtype=bool), none, sums)
    share = np.array([0.5, 0.3, 0.2])
    unit = LevelUnits(np.array([4.0, 6.0, 2.0]), joint).of(share)
    # no move changes the last level, so that its share is not used
    assert (sums @ (share / unit)).max() == pytest.approx(0.8, rel=1e-12)
    assert (unit[:2] < [4.0, 6.0]).all()
