"""Names of the counts that a guarantee leaves unprotected."""

from __future__ import annotations

import numpy as np
import pytest

import congenial as cg
from congenial.errors import (
    EmptyNeighbourhoodError,
)
from congenial.invariants.written import resolve_invariant


def test_counts_that_follow_from_pins_are_listed():
    tree = cg.Tree.from_paths(["city/a/x", "city/a/y", "city/b/z"])
    invariant = cg.consistent(tree) & cg.exactly(["root", "a"])
    released = cg.condition(cg.Additive(cg.DiscreteLaplace(2.0), tree), invariant)
    listed = " ".join(released.guarantee("substitute").unprotected)
    assert "city" in listed
    assert "level 1" in listed
    assert "city/b/z" in listed
    assert "city/a/x" not in listed
    known = resolve_invariant(invariant, len(tree), tree).determined
    assert [tree.names[v] for v in np.flatnonzero(~known)] == ["x", "y"]


@pytest.mark.parametrize(
    ("leaves", "pins", "listed"),
    [
        (["A/a1", "A/a2", "B/b1"], [], ("the number of records",)),
        (["A"], [], None),
        (
            ["A/a1", "A/a2", "B/b1"],
            ["A"],
            (
                "the number of records",
                "the exact count of city/A",
                "the count of city/B, which is the same in all neighbouring datasets",
                "the count of city/B/b1, which is the same in all neighbouring datasets",
            ),
        ),
        (
            ["A/a1", "A/a2", "B/b1", "B/b2"],
            ["A"],
            (
                "the number of records",
                "the exact count of city/A",
                "the count of city/B, which is the same in all neighbouring datasets",
            ),
        ),
        (
            ["A/a1", "A/a2", "B/b1", "C/c1"],
            ["a1"],
            ("the number of records", "the exact count of city/A/a1"),
        ),
        (
            ["A/a1", "A/a2", "A/a3", "B/b1", "C/c1"],
            ["a1", "B", "C"],
            (
                "the number of records",
                "the exact count of city/B",
                "the exact count of city/C",
                "the count of city/A, which is the same in all neighbouring datasets",
                "the exact count of city/A/a1",
                "the exact count of city/B/b1",
                "the exact count of city/C/c1",
            ),
        ),
    ],
)
def test_counts_that_are_equal_in_all_neighbours_are_listed(leaves, pins, listed):
    tree = cg.Tree.from_paths([f"city/{leaf}" for leaf in leaves])
    invariant = cg.consistent(tree) & cg.nonnegative()
    if pins:
        invariant = invariant & cg.exactly(pins)
    released = cg.condition(cg.Additive(cg.DiscreteLaplace(2.0), tree), invariant)
    if listed is None:
        with pytest.raises(EmptyNeighbourhoodError):
            released.guarantee("substitute")
        assert released.guarantee("add-remove").unprotected == ()
        return
    assert released.guarantee("substitute").unprotected == listed
    if not pins:
        assert released.guarantee("add-remove").unprotected == ()


def test_many_counts_are_listed_by_some_names_and_their_number():
    # only the last two entries weigh the same, so that a record moves between them
    invariant = cg.linear([1, 2, 3, 4, 5, 6, 7, 8, 8], 90)
    released = cg.image(cg.Additive(cg.DiscreteLaplace(2.0), 9), invariant)
    assert released.guarantee("substitute").unprotected == (
        "the values of entry 0, entry 1, entry 2, entry 3, entry 4 and 2 other entries, "
        "which are the same in all neighbouring datasets",
        "1 fixed linear totals",
    )
