"""Infeasible subsets, named as the invariant was written."""

from __future__ import annotations

import numpy as np
import pytest

import congenial as cg
import congenial.releases.making.make_release
from congenial.errors import InfeasibleError

INF = np.inf


TREE = cg.Tree.from_paths(["city/north/a", "city/north/b", "city/south"])


NAMED = [
    (
        cg.consistent(TREE) & cg.bounds([-INF, 3, -INF, -INF, 4], [5, INF, INF, INF, INF]),
        "these 4 invariants together: the bound of 'city' (at most 5), the bounds of "
        "'city/north' and 'city/south' (at least 7 together) and the sum of the tree at 'city'; "
        "relax one",
    ),
    (
        cg.consistent(TREE) & cg.nonnegative() & cg.linear([1, 0, 0, 0, 0], -2),
        "these 2 invariants together: no count below 0 and row 0 of linear(), counted from 0;",
    ),
    (
        cg.consistent(TREE) & cg.bounds(hi=2) & cg.bounds([9, *[-INF] * 4], [9, *[INF] * 4]),
        "node 'city' is bounded",
    ),
    (
        cg.bounds(0, 4) & cg.at_least([1, 1, 1, 0, 0], 13),
        "these 2 invariants together: the bound of every count (at most 4) and row 0 of "
        "at_least(),",
    ),
    (cg.linear([2, 4, 0, 0, 0], 3), "satisfy row 0 of linear(), counted from 0; correct it"),
    (cg.at_least([0, 0, 0, 0, 0], 3), "satisfy row 0 of at_least(), counted from 0; correct it"),
]


@pytest.mark.parametrize(("invariant", "text"), NAMED)
def test_members_are_named_as_the_invariant_was_written(invariant, text):
    mechanism = cg.Additive(cg.DiscreteLaplace(1.0), TREE)
    with pytest.raises(InfeasibleError) as caught:
        cg.condition(mechanism, invariant)
    assert text in str(caught.value)


INFEASIBLE = cg.consistent(TREE) & cg.bounds([-INF, 3, -INF, -INF, 4], [5, INF, INF, INF, INF])


def test_bounds_on_a_grid_are_named_as_they_were_given():
    mechanism = cg.Additive(cg.DiscreteLaplace(1.0, granularity=0.5), TREE)
    with pytest.raises(InfeasibleError, match=r"at most 5\).*at least 7 together"):
        cg.condition(mechanism, INFEASIBLE)


PEOPLE = cg.Table({"sex": ("F", "M"), "age": ("0-17", "18+")}, name="people")


CROSSING = cg.Workload.of(PEOPLE, [(), ("sex",), ("age",)])


TABLES = [
    (
        cg.bounds([3, 4], margin=("sex",)) & cg.bounds(hi=[2, 4], margin=("age",)),
        "the bounds of 'age=0-17 in people' and 'age=18+ in people' (at most 6 together), "
        "the bounds of 'sex=F in people' and 'sex=M in people' (at least 7 together)",
    ),
    (
        cg.bounds([3, 0], margin=("age",))
        & cg.bounds(hi=[2, 3], margin=("sex",))
        & cg.at_least_as_many(("people", {"age": "18+"}), ("people", {"age": "0-17"})),
        "at least as many of 'age=18+ in people' as of 'age=0-17 in people' and the sum",
    ),
    (
        cg.at_least(np.eye(9)[0], -5)
        & cg.at_least(-np.eye(9)[[0, 1]], [-3, -9])
        & cg.at_least(np.eye(9)[0], 4),
        "these 2 invariants together: rows 1 and 3 of at_least(), counted from 0;",
    ),
]


@pytest.mark.parametrize(("invariant", "text"), TABLES)
def test_counts_of_tables_are_named(invariant, text):
    whole = cg.consistent(CROSSING) & cg.nonnegative() & invariant
    with pytest.raises(InfeasibleError) as caught:
        cg.image(cg.Additive(cg.DiscreteLaplace(1.0), CROSSING), whole)
    assert text in str(caught.value)
