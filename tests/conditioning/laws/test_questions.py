"""Questions asked of a conditional law: nodes by name or number, releases, counts."""

from __future__ import annotations

import numpy as np
import pytest

import congenial as cg
from congenial.conditioning.laws.questions import (
    checked_counts,
    checked_rows,
    find_node,
    find_nodes,
)
from congenial.errors import ArgumentError, InvariantError

TREE = cg.Tree.from_paths([("a", "b"), ("a", "c")])
K = cg.condition(
    cg.Additive(cg.DiscreteLaplace(1.0), TREE),
    cg.consistent(TREE) & cg.exactly([0]) & cg.bounds(0, 9),
)
ASKED = K.mechanism, K.resolved


def test_nodes_are_found_by_name_or_number():
    for node, name in enumerate(TREE.names):
        assert find_node(*ASKED, name) == find_node(*ASKED, node) == node
    assert find_nodes(*ASKED, [1, TREE.names[2]]) == [1, 2]
    for wrong in ("nosuch", len(TREE), -1, 1.5):
        with pytest.raises(ArgumentError):
            find_node(*ASKED, wrong)
    with pytest.raises(ArgumentError):
        find_nodes(*ASKED, 1)


def test_releases_and_counts_have_the_right_shape():
    n = len(TREE)
    assert checked_rows(K.mechanism, np.zeros((3, n))).shape == (3, n)
    for wrong in (np.zeros(n + 1), np.zeros((1, 1, n)), ["x"] * n):
        with pytest.raises(ArgumentError):
            checked_rows(K.mechanism, wrong)
    x = TREE.roll_up(np.array([3, 4]))
    assert checked_counts(*ASKED, x).tolist() == x.tolist()
    with pytest.raises(ArgumentError):
        checked_counts(*ASKED, x + np.eye(n, dtype=int)[0])
    beyond = TREE.roll_up(np.array([-1, 4]))
    with pytest.raises(InvariantError):
        checked_counts(*ASKED, beyond)
    assert checked_counts(*ASKED, beyond, bounds_hold=False).tolist() == beyond.tolist()
