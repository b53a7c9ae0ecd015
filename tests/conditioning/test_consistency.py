"""Fixed sums that follow from others are dropped; sums that contradict others are named."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import congenial as cg
from congenial.conditioning.consistency import check_consistent
from congenial.conditioning.laws.normal import ConditionedGaussian
from congenial.conditioning.laws.sparse_subspace import Sparse
from congenial.errors import InfeasibleError, UnsupportedError
from congenial.invariants.written import resolve_invariant
from support.continuous_cases import compare, equalities
from support.enumeration import assert_same_law, enumerate_law
from support.sum_networks import margins

TREE = cg.Tree.from_parents([-1, 0, 0, 1, 1])
SQUARE = np.array([1, 2, 0, 0, 3, 1, 2, 2, 1])
NOISE = [
    cg.DiscreteLaplace(0.5),
    cg.DiscreteGaussian(0.5, 0.25),
    cg.Gaussian(1.0),
    cg.Laplace(1.0),
]


def sparse(n, sigma, rows, tree=None, pinned=()):
    """A conditional Gaussian that is solved sparsely at every size."""
    mechanism = cg.Additive(cg.Gaussian(sigma), n if tree is None else tree)
    invariant = cg.linear(rows, np.zeros(len(rows)))
    if tree is not None:
        invariant = invariant & cg.consistent(tree)
    if pinned:
        invariant = invariant & cg.exactly(list(pinned))
    space = Sparse(resolve_invariant(invariant, n, tree))
    space.check(np.isfinite(mechanism.scales))
    return ConditionedGaussian(mechanism, resolve_invariant(invariant, n, tree), space)


DEPENDENT = {
    "margins": (margins(3, 3), None, ()),
    "twice and turned": (np.vstack((margins(3, 3), -margins(3, 3)[:2])), None, ()),
    "margins, a cell published": (margins(3, 3), None, (4,)),
    "a sum of others": ([[1, 1, 0, 0, 0], [0, 0, 3, -1, 0], [2, 2, 3, -1, 0]], None, ()),
    "what the tree says": ([[1, -1, -1, 0, 0], [1, 0, -1, -1, -1], [0, 0, 0, 1, -1]], TREE, ()),
    "what pins make one": ([[0, 1, 1, 0, 0], [0, 0, 1, 1, 1]], TREE, (0, 1)),
}


@pytest.mark.parametrize("name", DEPENDENT)
def test_sparse_rows_that_follow_from_others_are_dropped(name):
    rows, tree, pinned = DEPENDENT[name]
    rows = np.array(rows)
    n = rows.shape[1]
    sigma = np.linspace(0.5, 2.0, n)
    everything = equalities(n, tree, pinned, rows)
    made = sparse(n, sigma, rows, tree, pinned)
    compare(made, everything, sigma)
    free = [v for v in range(n) if v not in pinned]
    assert made.space.rows.shape[0] == np.linalg.matrix_rank(everything[len(pinned) :, free])


@st.composite
def repeated(draw):
    n, m = draw(st.integers(2, 10)), draw(st.integers(1, 4))
    entry = st.integers(-2, 2)
    rows = np.array([[draw(entry) for _ in range(n)] for _ in range(m)])
    more = [[draw(entry) for _ in range(m)] for _ in range(draw(st.integers(0, 3)))]
    order = draw(st.permutations(range(m + len(more))))
    return np.vstack((rows, np.array(more, dtype=int).reshape(-1, m) @ rows))[list(order)]


@settings(max_examples=60, deadline=None, derandomize=True)
@given(repeated())
def test_any_sparse_rows_may_repeat(rows):
    sigma = np.linspace(0.5, 2.0, rows.shape[1])
    compare(sparse(sigma.size, sigma, rows), rows.astype(float), sigma)


def test_all_margins_of_a_large_table():
    n = 1600
    rows = margins(40, 40)
    made, fewer = (
        cg.condition(cg.Additive(cg.Gaussian(2.0), n), cg.linear(r, np.zeros(len(r))))
        for r in (rows, rows[:-1])
    )
    x = np.zeros(n)
    assert made.log_normalizer(x) == pytest.approx(fewer.log_normalizer(x), abs=1e-8)
    a, b = (k.sample(x, 3, cg.seeded(1)) for k in (made, fewer))
    np.testing.assert_allclose(a, b, atol=1e-9)
    assert made.marginal(7, x).sd == pytest.approx(2.0 * 39 / 40)


def test_undetermined_unmeasured_entries_are_still_refused():
    sigma = np.ones(9)
    sigma[[0, 1, 3, 4]] = np.inf  # they can move in a ring
    with pytest.raises(UnsupportedError, match="do not determine the unmeasured queries"):
        sparse(9, sigma, margins(3, 3))
    sigma[4] = 1.0
    compare(sparse(9, sigma, margins(3, 3)), margins(3, 3).astype(float), sigma)


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_integer_rows_that_follow_from_others_change_no_law(kind):
    noise = {"laplace": cg.DiscreteLaplace, "gaussian": cg.DiscreteGaussian}[kind](0.4)
    rows = margins(3, 3)
    twice = np.vstack((rows, -rows[::-1], rows[0] + rows[1]))
    known = cg.condition(cg.Additive(noise, 9), cg.linear(twice, twice @ SQUARE))
    assert_same_law(known, enumerate_law(rows, kind, 0.4, SQUARE), SQUARE, most=200)


# rows, tree, how they are told without a solver, and by name
CONTRADICTIONS = [
    (([[1, 1, 0, 0, 0]] * 2, [3, 4]), None, "row 1 .* contradicts row 0;", "rows 0 and 1 of"),
    (
        ([[1, 1, 0, 0, 0], [0, 0, 1, 0, 0], [-1, -1, 1, 0, 0]], [3, 1, 0]),
        None,
        "rows 0 and 1;",
        "rows 0, 1 and 2 of",
    ),
    (
        ([[1, 1, 0, 0, 0], [0, 1, 1, 0, 0], [1, 1, 0, 0, 0]], [3, 1, 2]),
        None,
        "row 2 .* row 0;",
        "rows 0 and 2 of",
    ),
    (([[0, 0, 0, 0, 0]], [1]), None, "row 0 .* only zero coefficients", "row 0 of"),
    (
        ([[0, 1, 0, -1, -1]], [1]),
        TREE,
        "row 0 .* contradicts the tree;",
        r"row 0 of .* and the sum of the tree at '\d.*'",
    ),
    (
        ([[0, 0, 0, 1, 1], [1, 0, -1, 0, 0]], [2, 3]),
        TREE,
        "row 1 .* contradicts row 0 and the",
        "rows 0 and 1 of .* and the sums of the tree at ",
    ),
    (([[1, 0, 0, 0, 0]] * 2, [2, 3]), TREE, "row 1 .* contradicts row 0;", "rows 0 and 1 of"),
]


@pytest.mark.parametrize("noise", NOISE)
@pytest.mark.parametrize(("rows", "tree", "told", "named"), CONTRADICTIONS)
def test_a_row_that_contradicts_others_is_named(rows, tree, told, named, noise):
    invariant = cg.linear(*rows)
    if tree is not None:
        invariant = invariant & cg.consistent(tree)
    with pytest.raises(InfeasibleError, match=told) as caught:
        check_consistent(resolve_invariant(invariant, 5))
    assert "\n" not in str(caught.value)
    assert str(caught.value).endswith("leave it out.")
    with pytest.raises(InfeasibleError, match=named):
        cg.condition(cg.Additive(noise, 5 if tree is None else tree), invariant)


def test_a_long_list_of_rows_is_cut_short():
    rows = margins(40, 40)
    value = np.zeros(80)
    value[3] = 1.0
    invariant = cg.linear(rows, value)
    with pytest.raises(InfeasibleError, match=r"row 79 .* rows 0, 1, 2, 3 and 75 more;"):
        check_consistent(resolve_invariant(invariant, 1600))
    for noise in NOISE:
        with pytest.raises(InfeasibleError, match=r"80 .*: rows 0, 1, 2, 3 and 76 more of"):
            cg.condition(cg.Additive(noise, 1600), invariant)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(repeated(), st.data())
def test_sums_of_the_data_are_consistent_and_a_changed_dependent_sum_is_not(rows, data):
    n = rows.shape[1]
    x = np.array([data.draw(st.sampled_from((0, 1, 7, -3, 2**40))) for _ in range(n)])
    value = rows @ x
    check_consistent(resolve_invariant(cg.linear(rows, value), n))
    k = data.draw(st.integers(0, len(rows) - 1))
    follows = np.linalg.matrix_rank(np.delete(rows, k, axis=0)) == np.linalg.matrix_rank(rows)
    changed = value.astype(float)
    changed[k] += max(1.0, 1e-3 * np.abs(value).max())
    resolved = resolve_invariant(cg.linear(rows, changed), n)
    if follows:
        with pytest.raises(InfeasibleError, match="linear conditions"):
            check_consistent(resolved)
    else:
        check_consistent(resolved)
