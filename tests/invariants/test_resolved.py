"""Resolved invariants: satisfying vectors and determined entries, against all small vectors."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import congenial as cg
from congenial.errors import NumericalError
from congenial.invariants.resolved import checked_draws
from congenial.invariants.written import resolve_invariant

TREE = cg.Tree.from_parents([-1, 0, 0, 0])
EVERY = np.array([(sum(leaves), *leaves) for leaves in product(range(4), repeat=3)])


@pytest.mark.parametrize("seed", range(25))
def test_satisfied_by_and_determined_entries_of_an_invariant(seed):
    rng = np.random.default_rng(seed)
    pinned = np.flatnonzero(rng.random(4) < 0.3).tolist()
    lo, hi = rng.integers(0, 2, 4), rng.integers(1, 4, 4)
    hi[0] = 9
    invariant = cg.consistent(TREE) & cg.bounds(lo, hi)
    if pinned:
        invariant &= cg.exactly(pinned)
    resolved = resolve_invariant(invariant, 4, TREE)
    x = EVERY[rng.integers(0, len(EVERY))]
    wanted = (EVERY[:, pinned] == x[pinned]).all(axis=1)
    wanted &= ((lo <= EVERY) & (hi >= EVERY)).all(axis=1)
    assert resolved.satisfied_by(EVERY, x).tolist() == wanted.tolist()
    assert resolved.adds_up(EVERY).all()
    assert not resolved.adds_up(EVERY + np.eye(4, dtype=int)[0]).any()
    kept = EVERY[wanted]
    if len(kept):
        assert (checked_draws(resolved, kept, x) == kept).all()
        # what is determined has one value whatever the rest, where the invariant can hold
        assert (np.ptp(kept[:, resolved.determined], axis=0) == 0).all()
    if not wanted.all():
        with pytest.raises(NumericalError):
            checked_draws(resolved, EVERY, x)


def test_the_only_unknown_of_a_sum_is_determined():
    for pins, found in (([0, 1, 2], [True] * 4), ([1, 2], [False, True, True, False])):
        resolved = resolve_invariant(cg.consistent(TREE) & cg.exactly(pins), 4, TREE)
        assert resolved.determined.tolist() == found


def test_pins_and_bounds_of_some_nodes():
    tree = cg.Tree.from_parents([-1, 0, 0, 1, 1, 2])
    invariant = cg.consistent(tree) & cg.bounds(hi=np.arange(6.0)) & cg.exactly([1, 5])
    resolved = resolve_invariant(invariant, 6, tree)
    part = tree.split(1).part(0)
    here = resolved.restricted(part.nodes, part.tree)
    assert here.tree is part.tree
    assert here.pinned.tolist() == [True, False, False]
    assert here.hi.tolist() == [1.0, 3.0, 4.0]
    assert not resolved.joins_parts
    assert resolve_invariant(invariant & cg.linear([[0, 0, 0, 1, 1, 0]], [3]), 6, tree).joins_parts
