"""Projections against independent references, on random trees."""

from __future__ import annotations

import numpy as np
import pytest

from congenial.domain.tree import Tree
from congenial.errors import InvariantError
from congenial.imaging.closest import project
from congenial.invariants.written import (
    bounds,
    consistent,
    exactly,
    linear,
    nonnegative,
)
from congenial.randomness import seeded

pytestmark = pytest.mark.kernels


def test_weights_are_respected():
    tree = Tree.from_parents([-1, 0, 0])
    invariant = consistent(tree) & exactly("root")
    y = np.array([10.0, 4.0, 4.0])
    assert project(y, invariant, [1, 3, 1]) == pytest.approx([10, 4.5, 5.5])
    assert project(y, invariant, [1, 0, 1]) == pytest.approx([10, 6, 4])
    assert project(y, invariant, [1, 3, 1], norm="l1") == pytest.approx([10, 4, 6])
    assert project(y, invariant, norm="l1") == pytest.approx([10, 5, 5])


@pytest.mark.parametrize("norm", ["l2", "l1"])
@pytest.mark.parametrize("integer", [False, True])
def test_counts_of_a_trillion_keep_their_last_digit(norm, integer):
    big = 2**40
    tree = Tree.from_parents([-1, 0, 0, 0, 1, 1, 2, 2, 2])
    x = tree.roll_up(np.array([0, big, big + 1, 1, 0, big]))
    y = x + np.array([0, 3, -2, 5, -1, 4, -7, 2, -1])
    invariant = consistent(tree) & exactly("root") & nonnegative()
    z = project(y, invariant, norm=norm, integer=integer, rng=seeded(1))
    small = project(
        y - x, consistent(tree) & exactly("root") & bounds(-x.astype(float), np.inf), norm=norm
    )
    assert np.abs(z - x - small).max() <= (1.0 if integer else 2.0**-11)
    assert not integer or tree.is_consistent(z)


def test_a_plain_vector_with_disjoint_sums():
    total = linear([[1, 1, 1, 0], [0, 0, 0, 2]], [6, 10])
    assert project([1.0, 2.0, 0.0, 9.0], total) == pytest.approx([2, 3, 1, 5])
    z = project([1.0, 2.0, -9.0, 9.0], total & nonnegative(), integer=True, rng=seeded(1))
    assert sorted(z[:2].tolist()) in ([2, 4], [3, 3]) and z[2:].tolist() == [0, 5]
    assert project([1.5, -2.0], nonnegative()) == pytest.approx([1.5, 0])


def test_a_plain_vector_with_crossing_sums_is_least_squares():
    matrix = np.array([[1, 1, 0, 0, 1.0], [0, 1, 1, 0, -1]])
    value, y = np.array([4.0, 1.0]), np.array([1.0, 2.0, 3.0, 4.0, 0.5])
    weight = np.array([1.0, 2.0, 0.5, 1.0, 4.0])
    z = project(y, linear(matrix, value), weight)
    assert matrix @ z == pytest.approx(value)
    nu = np.linalg.solve(matrix / weight @ matrix.T, value - matrix @ y)
    assert z == pytest.approx(y + (matrix.T @ nu) / weight)
    pinned = project(y, linear(matrix, value) & exactly([0]), weight)
    assert pinned[0] == 1.0 and matrix @ pinned == pytest.approx(value)


@pytest.mark.parametrize("integer", [False, True])
def test_a_root_given_as_zero_over_positive_entries_is_refused(integer):
    tree = Tree.from_paths(["all/a", "all/b"])
    invariant = consistent(tree) & exactly("root") & nonnegative()
    with pytest.raises(InvariantError, match="y is 0 at node 'all', which is published exactly"):
        project([0, 500, -1], invariant, integer=integer)
    # noise around 0, unused entries, a free root, and counts that may be negative are no mistake
    assert not project([0, 5, -1], invariant, integer=integer).any()
    assert not project([0, 500, -1], invariant, 1e-4, integer=integer).any()
    assert not project([0, 500, -1], invariant, [1, 0, 1], integer=integer).any()
    assert not project([0, -500, -1], invariant, integer=integer).any()
    assert project([0, 500, -1], consistent(tree) & nonnegative(), integer=integer).any()
    assert project([0, 500, -1], consistent(tree) & exactly("root"), integer=integer).any()
