"""What is refused before a projection."""

from __future__ import annotations

import numba
import numpy as np
import pytest

from congenial.domain.tree import Tree
from congenial.errors import (
    ArgumentError,
    InfeasibleError,
    UnsupportedError,
)
from congenial.imaging.closest import project
from congenial.imaging.solvers.problem import NO_WORDS, checked_weights, link, prepare
from congenial.imaging.top_down import topdown
from congenial.invariants.written import (
    at_least,
    bounds,
    consistent,
    exactly,
    linear,
    nonnegative,
    resolve_invariant,
)
from congenial.randomness import secure, seeded
from support.projection_cases import feasible

pytestmark = pytest.mark.kernels


def test_entries_without_any_measurement_share_alike():
    tree = Tree.from_parents([-1, 0, 0, 0])
    z = project([9.0, np.nan, np.nan, 3.0], consistent(tree), [1, 0, 0, 1])
    assert z == pytest.approx([9, 3, 3, 3])
    empty = project([np.nan] * 4, consistent(tree) & bounds(2, 20), [0, 0, 0, 0])
    feasible(empty, tree, empty, consistent(tree) & bounds(2, 20), 1e-12)


TREE = Tree.from_parents([-1, 0, 0], names=["city", "east", "west"])


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: project([1.0, 2.0], consistent(TREE)), ArgumentError, "3 counts"),
        (lambda: project([1, np.nan, 2], consistent(TREE)), ArgumentError, "city/east"),
        (lambda: project([1, 2.0**60, 2], consistent(TREE)), ArgumentError, "2\\^53"),
        (lambda: project([1, 2, 3], consistent(TREE), [1, -1, 1]), ArgumentError, "weights"),
        (lambda: project([1, 2, 3], consistent(TREE), [1, 1]), ArgumentError, "weights"),
        (lambda: project([1, 2, 3], consistent(TREE), norm="l3"), ArgumentError, "'l3'"),
        (lambda: project([1, 2, 3], consistent(TREE), rng=7), ArgumentError, "rng"),
        (lambda: project([[1, 2, 3]], consistent(TREE)), ArgumentError, "shape"),
        (
            lambda: project([771, 2, 3], consistent(TREE) & exactly([0, 1, 2])),
            InfeasibleError,
            "'city'",
        ),
        (
            lambda: project([771, -5, 3], consistent(TREE) & exactly("east") & nonnegative()),
            InfeasibleError,
            "'city/east'",
        ),
        (
            lambda: project([771.5, 0, 3], consistent(TREE) & exactly("root"), integer=True),
            InfeasibleError,
            "integer",
        ),
        (
            lambda: project([1, 2, 3], linear(np.ones((2, 3)), [1, 2])),
            InfeasibleError,
            "rows 0 and 1 of linear",
        ),
        (
            lambda: project([1, 2, 3], at_least([1, 1, 0], 2), norm="l1"),
            UnsupportedError,
            "at_least",
        ),
        (
            lambda: project([1, 2, 3], linear([1, 2, 3], 4), norm="l1"),
            UnsupportedError,
            "l2",
        ),
        (
            lambda: topdown([1, 2, 3], TREE, linear([1, 1, 0], 4)),
            UnsupportedError,
            "project",
        ),
        (lambda: topdown([1, np.inf, 3], TREE, nonnegative()), ArgumentError, "city/east"),
    ],
)
def test_unsupported_problems_are_refused_without_a_count(call, error, words):
    with pytest.raises(error, match=words) as caught:
        call()
    text = str(caught.value)
    assert "771" not in text
    assert text.count(". ") == 0 and text.endswith(".")


def test_no_words_have_the_type_of_random_ones():
    # of another type, each kernel that takes words would be compiled once more
    kinds = {numba.typeof(words) for words in (NO_WORDS, secure().bits(1), seeded(1).bits(1))}
    assert len(kinds) == 1


def test_weights_are_relative_and_no_further_apart_than_doubles_resolve():
    assert checked_weights(None, 2).tolist() == [1.0, 1.0]
    assert checked_weights(3.0, 2).tolist() == [1.0, 1.0]
    assert checked_weights([0.0, 5e-324, 2.0, 1.0], 4).tolist() == [0.0, 1e-12, 1.0, 0.5]
    assert checked_weights([0.0, 0.0], 2).tolist() == [0.0, 0.0]
    for wrong in ([1.0, -1.0], [1.0, np.nan], [1.0, np.inf]):
        with pytest.raises(ArgumentError, match="negative or not finite"):
            checked_weights(wrong, 2)


def test_a_problem_does_not_depend_on_a_shift_of_the_counts():
    """Of 2^50 records and of none: the same noise, bounds and preferred values around them."""
    tree = Tree.from_parents([-1, 0, 0, 1, 1])
    links = link(tree, 5)
    x = tree.roll_up(np.array([2.0**49, 2.0**48, 2.0**48]))
    y = np.array([3.0, -2.0, 0.0, 1.0, 4.0])
    weight = np.array([1.0, 1.0, 0.0, 1.0, 1.0])
    made = []
    for at in (np.zeros(5), x):
        known = consistent(tree) & bounds(at - 7.0) & exactly([3])
        resolved = resolve_invariant(known, 5, tree)
        given = np.where(weight > 0, at + y, 0.0)
        made.append(prepare(links, resolved, np.zeros(0), given, weight, integer=True))
    few, many = made
    assert tree.is_consistent(many.center)
    for name in ("y", "lo", "hi", "prefer"):
        one, two = (getattr(task, name) + task.center for task in made)
        moved = np.isfinite(one)
        if name in ("y", "prefer"):  # a leaf without a measurement prefers 0
            moved &= weight > 0
        np.testing.assert_array_equal(two[moved] - one[moved], x[moved])
    assert few.weight.tolist() == many.weight.tolist() == [1.0, 1.0, 0.0, 0.0, 1.0]
    assert many.size < 100.0
