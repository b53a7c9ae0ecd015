"""Pairs of neighbours to compare: chosen ones and random ones."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

import congenial as cg
from congenial.auditing.pairs import (
    chosen_pairs,
    everyone_moves,
    random_moves,
    random_pairs,
    untouched,
)
from congenial.auditing.space import space_of

SCRIPT = Path(__file__).parents[2] / "examples" / "audit" / "faults.py"


UNEVEN = cg.Tree.from_parents([-1, 0, 0, 1, 1, 2, 2, 2])


@pytest.fixture(scope="module")
def faults():
    spec = importlib.util.spec_from_file_location("planted_faults", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


@pytest.mark.parametrize("bounded", [True, False])
@pytest.mark.parametrize("relation", ["substitute", "add-remove"])
def test_chosen_pairs_are_neighbours_and_reach_every_cell(relation, bounded):
    mandates = cg.consistent(UNEVEN) & cg.nonnegative()
    if relation == "substitute":
        mandates &= cg.exactly([0, 1])
    high = np.full(8, np.inf)
    high[[3, 2]] = 4, 9
    if bounded:
        mandates &= cg.bounds(hi=high)
    space = space_of(cg.condition(cg.Additive(cg.DiscreteLaplace(2.0), UNEVEN), mandates))
    pairs = chosen_pairs(space, relation, cg.seeded(3))
    assert len({tuple(map(bytes, pair)) for pair in pairs}) > 16
    for one, other in pairs:
        change = (other - one)[space.entries]
        assert sorted(change[change != 0]) in (
            [[-1, 1]] if relation == "substitute" else [[1], [-1]]
        )
        for x in (one, other):
            assert (UNEVEN.roll_up(x[UNEVEN.leaves]) == x).all()
            assert (x >= 0).all()
            assert not bounded or (x <= high).all()
        if relation == "substitute":
            assert (one[[0, 1]] == other[[0, 1]]).all()
    assert not untouched(space, pairs).any()
    whole = everyone_moves(space, relation, cg.seeded(3))
    assert (whole[0] != whole[1])[space.entries].sum() >= 4
    moved = {cell for move in random_moves(space, relation, cg.seeded(1)) for cell in move}
    assert moved >= set(range(5))


def test_pairs_at_random_seldom_reach_a_leaf(faults):
    """So that the test above can fail."""
    space = space_of(faults.made(faults.LARGE))
    pairs = [*space.hard_pairs("substitute"), *random_pairs(space, "substitute", cg.seeded(0), 4)]
    assert untouched(space, pairs).sum() > 280
