"""Which sums have tables of families, and tilts that match means of messages."""

from __future__ import annotations

import numpy as np
import pytest

import congenial as cg
from congenial.sum_network import families
from congenial.sum_network.windows import tilts
from support.bounded_trees import compiled

pytestmark = pytest.mark.kernels


def sums_of(scale, *, n=20, low=True, count=30):
    """Return the sums of a tree of equal leaves, and their weights."""
    tree = cg.Tree.from_parents([-1, 0, 0, *[1] * n, *[2] * n])
    mechanism, known = cg.Additive(cg.DiscreteLaplace(scale), tree), cg.consistent(tree)
    released = cg.condition(mechanism, known & cg.nonnegative() if low else known)
    made = compiled(released, tree.roll_up(np.full(2 * n, count)))
    return made.forest, made.weights


@pytest.mark.parametrize("scale", [2.0, 4.0, 50.0])
def test_noise_is_wide_from_a_scale_on_if_leaves_have_a_bound(scale):
    assert families.have_wide_noise(*sums_of(scale)) == (scale >= 4.0)
    assert not families.have_wide_noise(*sums_of(scale, low=False))
    assert not families.are_worthwhile(*sums_of(scale))


@pytest.mark.parametrize(
    ("scale", "count", "wide"), [(0.2, 0, False), (0.25, 0, True), (3.0, 2, True), (3.0, 3, False)]
)
def test_noise_is_wide_if_most_leaves_are_less_than_its_scale_away_from_their_bounds(
    scale, count, wide
):
    assert families.have_wide_noise(*sums_of(scale, count=count)) == wide


@pytest.mark.parametrize(
    ("scale", "count", "worth"),
    [(0.2, 0, False), (0.25, 0, True), (0.45, 1, False), (0.5, 1, True), (50.0, 30, True)],
)
def test_tables_of_families_are_worthwhile_for_many_counts(scale, count, worth):
    assert families.are_worthwhile(*sums_of(scale, count=count, n=200_000)) == worth
    assert not families.are_worthwhile(*sums_of(scale, count=count))
    assert not families.are_worthwhile(*sums_of(scale, count=count, low=False, n=200_000))


@pytest.mark.parametrize(("scale", "alike"), [(2.0, True), (20.0, False)])
def test_matched_tilts_are_settled_ones_where_noise_is_wide(scale, alike):
    forest, weights = sums_of(scale)
    found, single = families.matched_tilts(forest, weights), tilts(forest, weights)
    assert (found == single).all() == alike
    if not alike:
        assert (found == families.settled(forest, weights).tilt).all()
