"""What is projected part by part, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import congenial as cg
from congenial.errors import ArgumentError, InfeasibleError, InvariantError, UnsupportedError
from congenial.imaging.closest_in_parts import project_by_parts

pytestmark = pytest.mark.kernels

TREE = cg.Tree.from_parents([-1, 0, 0, 1, 1, 2, 2])
Y = np.array([9.0, 6.0, 4.0, 3.0, 3.0, 6.0, -2.0])
OBEYING = cg.consistent(TREE) & cg.nonnegative()


def test_the_public_name():
    assert cg.imaging.project_by_parts is project_by_parts


@pytest.mark.parametrize(
    ("invariant", "norm", "words"),
    [
        (
            OBEYING & cg.linear([[0, 0, 0, 1, 1, 0, 0]], [3]),
            "l2",
            r"several parts.*use project\(\)",
        ),
        (OBEYING & cg.at_least([[0, 0, 0, 1, 0, 1, 0]], [3]), "l2", "several parts"),
        (OBEYING, "l1", r"norm is 'l1'.*use project\(\)"),
    ],
)
def test_what_parts_do_not_cover_is_refused(invariant, norm, words):
    with pytest.raises(UnsupportedError, match=words):
        project_by_parts(Y, invariant, 1, norm=norm)


def test_crossing_margins_are_refused():
    table = cg.Table({"sex": ("f", "m"), "age": ("0", "1", "2")})
    crossing = cg.Workload.of(table, ["sex", "age"])
    with pytest.raises(UnsupportedError, match=r"margins of the workload cross.*use project\(\)"):
        project_by_parts(np.zeros(len(crossing)), cg.consistent(crossing), 0)


def test_wrong_arguments_are_refused():
    with pytest.raises(ArgumentError, match="level is 2"):
        project_by_parts(Y, OBEYING, 2)
    with pytest.raises(ArgumentError, match="add consistent"):
        project_by_parts(Y, cg.nonnegative(), 1)
    with pytest.raises(ArgumentError, match="norm is 'l3'"):
        project_by_parts(Y, OBEYING, 1, norm="l3")
    with pytest.raises(ArgumentError, match="integer is 1"):
        project_by_parts(Y, OBEYING, 1, integer=1)
    with pytest.raises(ArgumentError, match="y has shape"):
        project_by_parts(Y[None], OBEYING, 1)
    with pytest.raises(ArgumentError, match="not finite"):
        project_by_parts(np.where(np.arange(7) == 4, np.nan, Y), OBEYING, 1)
    with pytest.raises(ArgumentError, match="negative"):
        project_by_parts(Y, OBEYING, 1, -1.0)


def test_infeasible_bounds_are_refused_with_the_bounds_named():
    invariant = OBEYING & cg.bounds(hi=np.where(np.arange(7) == 4, -1.0, np.inf))
    with pytest.raises(InfeasibleError):
        project_by_parts(Y, invariant, 1)


def test_a_root_given_as_zero_over_positive_entries_is_refused():
    with pytest.raises(InvariantError, match="y is 0 at node"):
        project_by_parts(np.append(0.0, np.full(6, 500.0)), OBEYING & cg.exactly([0]), 1)


def test_entries_of_weight_zero_may_be_nan():
    y, weight = np.where(np.arange(7) == 4, np.nan, Y), np.where(np.arange(7) == 4, 0.0, 1.0)
    whole = cg.project(y, OBEYING, weight)
    # a few roundings of numbers below 10
    assert np.abs(project_by_parts(y, OBEYING, 1, weight) - whole).max() < 1e-13


@pytest.mark.parametrize("weights", [None, 2.0])
def test_exact_counts_may_be_roots_of_parts(weights):
    invariant = OBEYING & cg.exactly([0, 2])
    got = project_by_parts(Y, invariant, 1, weights)
    assert np.abs(got - cg.project(Y, invariant, weights)).max() < 1e-13
    assert got[[0, 2]].tolist() == Y[[0, 2]].tolist()


def test_a_workload_of_nested_margins_is_cut_too():
    nested = cg.Workload.of(cg.Table({"sex": ("f", "m"), "age": ("0", "1", "2")}), [(), "sex"])
    y = np.array([9.0, 6.0, 4.0, 3.0, -3.0, 6.0, 4.0, 2.0, 1.0])
    invariant = cg.consistent(nested) & cg.nonnegative()
    y, depth = y[: len(nested)], nested.tree.depth
    for level in range(depth - 1):
        got = project_by_parts(y, invariant, level)
        assert np.abs(got - cg.project(y, invariant)).max() < 1e-13
