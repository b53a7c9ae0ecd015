"""Invariants: how they are joined, resolved against a vector, and refused."""

from __future__ import annotations

import numpy as np
import pytest

import congenial as cg
from congenial.errors import (
    ArgumentError,
    InfeasibleError,
    InvariantError,
    UnsupportedError,
)
from congenial.invariants.written import Union, resolve_invariant

TREE = cg.Tree.from_paths(["city/north/a", "city/north/b", "city/south"])
INF = np.inf


def test_and_joins_parts_in_any_order():
    a, b, c = cg.consistent(TREE), cg.exactly("root"), cg.nonnegative()
    for joined in ((a & b) & c, a & (b & c), c & a & b):
        resolved = resolve_invariant(joined, 5)
        assert resolved.tree is TREE
        assert resolved.pinned.tolist() == [True, False, False, False, False]
        assert (resolved.lo == 0).all()
        assert np.isposinf(resolved.hi).all()
    assert len((a & b & c).parts) == 3


def test_or_keeps_alternatives_in_order():
    a, b, c = cg.bounds(0, 1), cg.bounds(2, 3), cg.bounds(4, 5)
    for joined in ((a | b) | c, a | (b | c)):
        assert isinstance(joined, Union)
        assert joined.alternatives == (a, b, c)
    assert ((a | b) | (b | c)).alternatives == (a, b, b, c)


@pytest.mark.parametrize(
    "joined",
    [
        lambda a, b: a and b,
        lambda a, b: (a | b) and a,
        lambda a, b: a or b,
        lambda a, b: not a,
        lambda a, b: 1 if a else 0,
    ],
)
def test_no_part_is_dropped_by_and_or_and_not(joined):
    with pytest.raises(InvariantError, match=r"join two invariants with & or \|"):
        joined(cg.consistent(TREE), cg.nonnegative())


@pytest.mark.parametrize("other", [1, None, "x", TREE])
def test_an_invariant_joins_no_other_thing(other):
    with pytest.raises(TypeError):
        _ = cg.nonnegative() & other
    with pytest.raises(TypeError):
        _ = cg.nonnegative() | other


def test_joined_bounds_keep_the_tightest():
    joined = cg.bounds(-3, 9) & cg.bounds([-5, 0, 1], [4, 20, INF]) & cg.nonnegative()
    resolved = resolve_invariant(joined, 3)
    assert resolved.lo.tolist() == [0, 0, 1]
    assert resolved.hi.tolist() == [4, 9, 9]
    assert resolved.has_inequalities


def test_only_inequalities_on_free_entries_count():
    assert not resolve_invariant(cg.consistent(TREE), 5).has_inequalities
    assert not resolve_invariant(cg.exactly([0, 1]) & cg.bounds([0, 0], INF), 2).has_inequalities
    assert resolve_invariant(cg.exactly(0) & cg.bounds([0, 0], INF), 2).has_inequalities
    assert resolve_invariant(cg.at_least([1, 1], 0), 2).has_inequalities
    assert not resolve_invariant(cg.linear([1, 1], 0), 2).has_inequalities
    assert not resolve_invariant(cg.bounds(), 2).has_inequalities


@pytest.mark.parametrize(
    ("given", "pinned"),
    [
        (0, [0]),
        (np.int64(4), [4]),
        ("north", [1]),
        ("root", [0]),
        ("city/north/b", [3]),
        (["north", "south"], [1, 4]),
        ([2, "south", ("city", "north")], [1, 2, 4]),
        (np.array([1, 4]), [1, 4]),
        ((0, 0), [0]),
    ],
)
def test_exactly_names_nodes_in_every_way(given, pinned):
    for invariant in (cg.exactly(given), cg.consistent(TREE) & cg.exactly(given)):
        resolved = resolve_invariant(invariant, 5, TREE)
        assert np.flatnonzero(resolved.pinned).tolist() == pinned


def test_root_stands_for_every_root():
    forest = cg.Tree.from_paths(["a/x", "b/x"])
    resolved = resolve_invariant(cg.exactly("root"), 4, forest)
    assert np.flatnonzero(resolved.pinned).tolist() == [0, 2]


@pytest.mark.parametrize("given", ["nowhere", 5, -1, [0, 9], ["north", "x"]])
def test_exactly_refuses_nodes_that_are_not_there(given):
    with pytest.raises(ArgumentError):
        resolve_invariant(cg.exactly(given), 5, TREE)


@pytest.mark.parametrize("given", [[], (), np.array([], dtype=int)])
def test_exactly_refuses_an_empty_list(given):
    with pytest.raises(ArgumentError, match="no node"):
        cg.exactly(given)


@pytest.mark.parametrize("given", [None, 1.5, [1.5], [None], [True], True])
def test_exactly_refuses_unknown_nodes(given):
    with pytest.raises(ArgumentError):
        resolve_invariant(cg.exactly(given), 5, TREE)


def test_names_need_a_tree():
    with pytest.raises(ArgumentError, match="give an index from 0 to 2"):
        resolve_invariant(cg.exactly("root"), 3)
    assert resolve_invariant(cg.exactly(2), 3).pinned.tolist() == [False, False, True]


@pytest.mark.parametrize("make", [cg.linear, cg.at_least])
def test_linear_shapes(make):
    kind = "equalities" if make is cg.linear else "inequalities"
    for matrix, value, shape in (
        ([1, 1, 0], 5, (1, 3)),
        ([[1, 1, 0]], [5], (1, 3)),
        ([[1, 1, 0], [0, 1, -1]], [5, 6], (2, 3)),
    ):
        rows, values = getattr(resolve_invariant(make(matrix, value), 3), kind)
        assert rows.shape == shape
        assert values.shape == (shape[0],)
    both = make([1, 1, 0], 5) & make([0, 0, 1], 2)
    rows, values = getattr(resolve_invariant(both, 3), kind)
    assert rows.tolist() == [[1, 1, 0], [0, 0, 1]]
    assert values.tolist() == [5, 2]


@pytest.mark.parametrize("make", [cg.linear, cg.at_least])
@pytest.mark.parametrize(
    ("matrix", "value"),
    [
        ([1, 1], [1, 2]),
        ([[1, 1], [0, 1]], [1]),
        ([[1, 1], [0, 1]], 1),
        ([1, np.nan], 1),
        ([1, np.inf], 1),
        ([1, 1], np.nan),
        ([1, 1], np.inf),
        (np.zeros((1, 1, 2)), [1]),
        ([1, 1], [[1]]),
    ],
)
def test_linear_refuses_shapes_and_numbers(make, matrix, value):
    with pytest.raises(ArgumentError, match=r"^(linear|at_least)\(\) was given"):
        make(matrix, value)


@pytest.mark.parametrize("make", [cg.linear, cg.at_least])
@pytest.mark.parametrize(
    ("matrix", "value"), [(["a", "b"], 1), ([[1], [1, 2]], [1, 2]), ([1, 1], "x"), (None, 1)]
)
def test_linear_refuses_values_that_are_not_numbers(make, matrix, value):
    with pytest.raises(ArgumentError):
        make(matrix, value)


@pytest.mark.parametrize("bad", [np.nan, [0, np.nan]])
def test_bounds_refuse_nan(bad):
    for arguments in ((bad, INF), (-INF, bad)):
        with pytest.raises(ArgumentError, match=r"(lo|hi)=nan"):
            cg.bounds(*arguments)


@pytest.mark.parametrize("bad", ["low", [[0], [1, 2]]])
def test_bounds_refuse_values_that_are_not_numbers(bad):
    with pytest.raises(ArgumentError):
        cg.bounds(bad)


@pytest.mark.parametrize("wrong", [[0, 0], [[0, 0, 0]]])
def test_bounds_of_another_shape_are_refused(wrong):
    with pytest.raises(InvariantError, match="give a number or 3 numbers"):
        resolve_invariant(cg.bounds(wrong), 3)


def test_columns_of_another_number_are_refused():
    for make in (cg.linear, cg.at_least):
        with pytest.raises(InvariantError, match="2 columns; give 3"):
            resolve_invariant(make([1, 1], 1), 3)


@pytest.mark.parametrize(
    "infeasible", [cg.bounds(3, 2), cg.bounds(lo=1) & cg.bounds(hi=0), cg.bounds(0.2, 0.8)]
)
def test_bounds_that_leave_no_integer_are_refused(infeasible):
    with pytest.raises(InfeasibleError, match="leaves no integer"):
        resolve_invariant(infeasible, 2)


def test_bounds_between_integers_are_satisfied_by_reals():
    between = cg.bounds(0.2, 0.8)
    assert cg.project([1.0, 0.5, 0.1], between).tolist() == [0.8, 0.5, 0.2]
    mechanism = cg.Additive(cg.DiscreteLaplace(1.0), 3)
    drawn = cg.image(mechanism, between).sample([1, 0, 0], 20, cg.seeded(1))
    assert ((drawn >= 0.2) & (drawn <= 0.8)).all()
    star = cg.Tree.from_parents([-1, 0, 0])
    found = cg.topdown([1, 0.9, 0.1], star, cg.bounds(0.2, [2, 0.8, 0.8]), integer=False)
    np.testing.assert_allclose(found, [1.0, 0.8, 0.2])
    for refuse in (
        lambda: cg.project([1.0, 0.5, 0.1], between, integer=True),
        lambda: cg.image(mechanism, between, integer=True),
        lambda: cg.condition(mechanism, between),
    ):
        with pytest.raises(InfeasibleError, match="leaves no integer"):
            refuse()
    with pytest.raises(InfeasibleError, match="leaves no number"):
        cg.project([1.0, 0.5, 0.1], cg.bounds(0.8, 0.2))


def test_single_inequalities_that_leave_no_integer_are_refused():
    invariant = cg.at_least([[1, 0], [-1, 0]], [3, -2])
    with pytest.raises(InfeasibleError):
        cg.condition(cg.Additive(cg.DiscreteLaplace(1.0), 2), invariant)


def test_trees_must_fit_the_vector_and_each_other():
    other = cg.Tree.from_parents([-1, 0, 0, 0, 0])
    with pytest.raises(InvariantError, match="two different trees"):
        resolve_invariant(cg.consistent(TREE) & cg.consistent(other), 5)
    same = cg.Tree.from_parents(TREE.parents)
    assert resolve_invariant(cg.consistent(TREE) & cg.consistent(same), 5).tree is not None
    with pytest.raises(InvariantError, match="5 nodes and the mechanism 4"):
        resolve_invariant(cg.consistent(TREE), 4)


@pytest.mark.parametrize("wrong", [None, "nonnegative", 1, cg.bounds(0, 1) | cg.bounds(2, 3)])
def test_an_object_that_is_not_an_invariant_is_refused(wrong):
    with pytest.raises(ArgumentError, match="the invariant is a"):
        resolve_invariant(wrong, 5)


@pytest.mark.parametrize("wrong", [None, [-1, 0], "tree"])
def test_consistent_takes_a_tree(wrong):
    with pytest.raises(ArgumentError, match="give a Tree"):
        cg.consistent(wrong)


def test_an_inequality_of_unequal_weights_is_not_covered_by_the_exact_sampler():
    with pytest.raises(UnsupportedError, match="weighs its entries differently"):
        cg.condition(cg.Additive(cg.DiscreteLaplace(1.0), 2), cg.at_least([1, 2], 0))


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        ([[2, 1, 0]], "other than -1, 0 and 1"),
        ([[0.5, 1, 0]], "other than -1, 0 and 1"),
    ],
)
def test_rows_that_are_not_sums_are_not_covered(rows, told):
    invariant = cg.linear(rows, np.zeros(len(rows)))
    with pytest.raises(UnsupportedError, match=told):
        cg.condition(cg.Additive(cg.DiscreteLaplace(1.0), 3), invariant)
