"""What can be conditioned by parts, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import congenial as cg
from congenial.conditioning.parted import condition_by_parts
from congenial.errors import ArgumentError, UnsupportedError

TREE = cg.Tree.from_parents([-1, 0, 0, 1, 1, 2, 2])
NOISY = cg.Additive(cg.DiscreteLaplace(1.0), TREE)
OBEYING = cg.consistent(TREE) & cg.nonnegative()


def test_the_public_name():
    assert cg.conditioning.condition_by_parts is condition_by_parts


@pytest.mark.parametrize(
    ("mechanism", "invariant", "told"),
    [
        (cg.Additive(cg.Gaussian(1.0), TREE), cg.consistent(TREE), "integer noise on a tree"),
        (cg.Additive(cg.DiscreteLaplace(1.0), 7), cg.bounds(0, 9), "integer noise on a tree"),
        (NOISY, cg.nonnegative(), "integer noise on a tree"),
        (NOISY, OBEYING & cg.linear([[0, 0, 0, 1, 1, 0, 0]], [3]), "integer noise|several parts"),
        (NOISY, OBEYING & cg.at_least([[0, 0, 0, 1, 0, 1, 0]], [3]), "integer noise|several parts"),
    ],
)
def test_what_parts_do_not_cover_is_refused(mechanism, invariant, told):
    with pytest.raises(UnsupportedError, match=told):
        condition_by_parts(mechanism, invariant, 1)


def test_a_level_with_nothing_below_is_refused():
    with pytest.raises(ArgumentError, match="level is 2"):
        condition_by_parts(NOISY, OBEYING, 2)


def test_an_exact_count_may_be_the_root_of_a_part():
    parted = condition_by_parts(NOISY, OBEYING & cg.exactly([1]), 1)
    x = TREE.roll_up(np.array([1, 2, 0, 4]))
    drawn = parted.sample(x, 20, cg.seeded(1))
    assert (drawn[:, 1] == x[1]).all()
    assert TREE.is_consistent(drawn)
