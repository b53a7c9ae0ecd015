"""Projections against independent references, on random trees."""

from __future__ import annotations

import numpy as np
import pytest

import congenial as cg
from congenial.domain.tree import Tree
from congenial.errors import ArgumentError, InvariantError
from congenial.imaging import closest
from congenial.imaging.closest import project
from congenial.imaging.closest_in_parts import project_by_parts
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


def test_a_vector_of_another_length_than_the_tree_is_refused_by_its_name():
    tree = Tree.from_paths(["all/a", "all/b"])
    said = "y has 1 value, and the tree that the invariant imposes has 3 counts"
    with pytest.raises(ArgumentError, match=said):
        project([1], consistent(tree), integer=True)
    with pytest.raises(ArgumentError, match=said):
        project_by_parts([1], consistent(tree), 0)


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


def linked_world(rng, blocks):
    """Two tables whose counts are compared in every block, their data and invariant."""
    paths = [("c", f"t{i // 5}", f"b{i}") for i in range(blocks)]
    tree, levels = cg.Tree.from_paths(paths), ("city", "town", "block")
    people = cg.Table({"age": ("0-17", "18+")}, geography=tree, levels=levels, name="people")
    homes = cg.Table({"used": ("yes", "no")}, geography=tree, levels=levels, name="homes")
    both = cg.Workload.of(people, [(), "age"]) + cg.Workload.of(homes, [(), "used"])
    used, more = rng.poisson(rng.gamma(0.5, 6.0, blocks)), rng.poisson(3.0, (2, blocks))
    x = both.answers(np.stack((used, more[0]), 1), np.stack((used, more[1]), 1))
    link = cg.at_least_as_many(("people", ()), ("homes", {"used": "yes"}), level="block")
    exact = cg.exactly(margins=[()], level="city", table="people")
    return both, x, cg.consistent(both) & cg.nonnegative() & exact & link


def test_both_programmes_find_the_closest_point_of_linked_tables(monkeypatch):
    rng = np.random.default_rng(1)
    for blocks in [6, 9] * 20:
        both, x, invariant = linked_world(rng, blocks)
        y = x + np.rint(rng.laplace(0.0, rng.choice([1.0, 6.0, 20.0]), len(both)))
        y[both.find({}, "c", "people")] = x[both.find({}, "c", "people")]
        found = []
        for most in (10_000, 0):
            monkeypatch.setattr(closest, "DENSE", most)
            found.append(cg.project(y, invariant))
        assert np.abs(found[0] - found[1]).max() < 1e-6 * max(1.0, np.abs(y).max())


def test_linked_tables_are_rounded_cell_by_cell():
    rng = np.random.default_rng(2)
    for blocks in [30, 60, 200] * 5:
        both, x, invariant = linked_world(rng, blocks)
        made = cg.image(cg.Additive(cg.DiscreteLaplace(6.0), both), invariant, integer=True)
        z = made.sample(x, rng=cg.seeded(blocks))
        assert made.resolved.satisfied_by(z, x)
        noisy = made.measure(x, rng=cg.seeded(blocks))
        real = cg.image(made.mechanism, invariant).apply(noisy, cg.seeded(1))
        cells = both.cells
        # one unit for the cell, and the cells above it
        assert np.abs(made.apply(noisy, cg.seeded(1)) - real)[cells].max() < 2.0
