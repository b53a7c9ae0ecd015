"""Arrays from a caller: accepted forms, and refusals that show no count."""

from __future__ import annotations

import numpy as np
import pytest

import congenial as cg
from congenial.domain.given import (
    as_array,
    check_values,
    leaves_of,
    limits,
    places_of,
    whole_counts,
)
from congenial.errors import ArgumentError, StructureError

TREE = cg.Tree.from_paths([("town", "a"), ("town", "b"), ("village", "a")])


def test_bounds_are_floats_and_have_no_side_that_nothing_satisfies():
    low, high = limits("bounds", [1, -np.inf], 5)
    assert (low.tolist(), float(high)) == ([1.0, -np.inf], 5.0)
    for lo, hi in ((np.nan, 1), (np.inf, 1), (0, -np.inf), ("x", 1)):
        with pytest.raises(ArgumentError, match=r"bounds\(\) was given"):
            limits("bounds", lo, hi)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([[1, 2]], "shape"),
        ([1.0, 2.0], "dtype float64"),
        ([-717, 1], "below 0"),
        (np.array([2**63 - 1, 717]), "2\\^63 or more"),
        (np.array([2**63, 717], dtype=np.uint64), "2\\^63 or more"),
        ([[1], [2, 3]], "different lengths"),
    ],
)
def test_invalid_counts_are_refused_and_not_shown(given, said):
    with pytest.raises(ArgumentError, match=said) as told:
        whole_counts("people", given, (2,))
    assert "717" not in str(told.value)


def test_counts_up_to_the_largest_sum_are_accepted():
    most = np.array([2**62, 2**62 - 1], dtype=np.uint64)
    assert whole_counts("people", most, (2,)).tolist() == [2**62, 2**62 - 1]


def test_areas_are_found_by_path_and_by_a_name_that_is_one_areas():
    assert leaves_of(["town/a", "b", "village/a"], TREE).tolist() == [0, 1, 2]
    with pytest.raises(ArgumentError, match="a value of 'areas' that the table lacks"):
        leaves_of(["a"], TREE)  # two areas are called so


def test_places_among_known_values():
    assert places_of(["M", "F", "M"], ("F", "M"), "sex").tolist() == [1, 0, 1]
    for column in ([["F"]], np.array([b"\xff"]), ["secret"]):
        with pytest.raises(ArgumentError, match="'sex'") as told:
            places_of(column, ("F", "M"), "sex")
        assert "secret" not in str(told.value)


def test_values_of_an_axis_are_unique():
    check_values("axis 'sex'", ("F", "M"))
    for wrong in ("FM", [], ["F", "F"], {"F"}):
        with pytest.raises(StructureError, match="axis 'sex'"):
            check_values("axis 'sex'", wrong)
    assert as_array("x", [[1, 2], [3, 4]]).shape == (2, 2)
