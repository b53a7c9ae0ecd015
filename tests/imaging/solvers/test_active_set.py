"""Newton's method for the closest point in L2: against the dynamic programme, and where it ends."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from congenial.domain.tree import Tree
from congenial.errors import InfeasibleError
from congenial.imaging.closest import Projector, project
from congenial.imaging.solvers.active_set import ActiveSet, active_set
from congenial.imaging.solvers.problem import (
    checked_weights,
    link,
    prepare,
    residual,
)
from congenial.imaging.solvers.two_pass import solve_l2
from congenial.invariants.written import (
    bounds,
    consistent,
    exactly,
    linear,
    nonnegative,
    resolve_invariant,
)
from support.projection_cases import problems
from support.wide_trees import city

pytestmark = pytest.mark.kernels

MEASURED = (1e-3, 0.5, 1.0, 1.0, 1.0, 7.3, 1e3)


def off_optimum(z, y, tree, resolved, weight):
    """Residual of the certificate that every solution must pass, which looks at `z` alone."""
    task = prepare(link(tree, resolved.n), resolved, np.zeros(0), y, weight, integer=False)
    zeros = np.zeros_like(task.y)
    return residual(task, z - task.center, (task.y, task.y, zeros, task.weight), quadratic=True)


def set_up(tree, invariant, weight):
    resolved = resolve_invariant(invariant, len(tree))
    relative = checked_weights(weight, len(tree))
    return resolved, relative, Projector(resolved, relative, "l2", integer=False).active_set


def one_sided(draw_lo, x, tree):
    """Lower bounds of the leaves alone, which some x satisfies."""
    return np.where(tree.is_leaf, x - draw_lo, -np.inf)


@given(
    problems(most=14, weights=MEASURED),
    st.lists(st.sampled_from((0.0, 1.0, 2.5, np.inf)), min_size=14, max_size=14),
)
@settings(max_examples=200, deadline=None)
def test_bounds_on_one_side_of_the_leaves_are_always_solved(problem, slack):
    tree, y, invariant, weight, x = problem
    pins = resolve_invariant(invariant, len(tree)).pinned
    for sign in (1.0, -1.0):
        lo = one_sided(np.array(slack[: len(tree)]), x, tree)
        box = bounds(lo) if sign > 0 else bounds(hi=2.0 * x - lo)
        imposed = consistent(tree) & box
        if pins.any():
            imposed = imposed & exactly(np.flatnonzero(pins))
        resolved, relative, found = set_up(tree, imposed, weight)
        z = found.solve(y.astype(float))
        assert z is not None
        assert off_optimum(z, y, tree, resolved, relative) <= 1e-9


@given(problems(most=14, weights=MEASURED))
@settings(max_examples=200, deadline=None)
def test_both_solvers_find_the_same_point(problem):
    tree, y, invariant, weight, _ = problem
    resolved, relative, found = set_up(tree, invariant, weight)
    z = found.solve(y.astype(float))
    assume(z is not None)
    assert off_optimum(z, y, tree, resolved, relative) <= 1e-9
    task = prepare(
        link(tree, resolved.n), resolved, np.zeros(0), y.astype(float), relative, integer=False
    )
    assert z == pytest.approx(task.released(solve_l2(task)), abs=1e-7)


@pytest.mark.parametrize("seed", range(4))
def test_large_trees_in_any_order_reach_the_optimum(seed):
    tree, x, rng = city(3000, 2 + seed, seed)
    n = len(tree)
    weight = np.array([1.0, 0.2, 5.0, 1.0, 0.01, 3.0])[tree.level]
    y = x + rng.normal(0.0, 3.0, n) / np.sqrt(weight)
    y[tree.roots] = x[tree.roots]
    resolved, relative, found = set_up(
        tree, consistent(tree) & exactly("root") & nonnegative(), weight
    )
    z = found.solve(y)
    assert z is not None and (z[tree.is_leaf] >= 0.0).all()
    assert 10 < (z[tree.is_leaf] == 0.0).sum() < n
    assert off_optimum(z, y, tree, resolved, relative) <= 1e-9
    moved = z.copy()
    moved[tree.leaves[:2]] += 1e-6, -1e-6
    assert off_optimum(moved, y, tree, resolved, relative) > 1e-9


@pytest.mark.parametrize("total", [0.0, 3.0, 1e5])
def test_families_all_below_their_bounds_at_first_are_solved(total):
    # nothing moves at the price where the search begins
    tree = Tree.from_parents([-1, 0, 0, 1, 1, 1, 2, 2])
    y = np.array([total, -5.0, 2.0, -7.0, -3.0, -900.0, -1.0, 4.0])
    invariant = consistent(tree) & exactly([0]) & nonnegative()
    resolved, weight, fast = set_up(tree, invariant, None)
    z = fast.solve(y)
    assert z is not None
    assert z[0] == pytest.approx(total, abs=1e-9)
    assert off_optimum(z, y, tree, resolved, weight) < 1e-9


def test_the_dynamic_programme_solves_cases_that_the_active_set_does_not(monkeypatch):
    tree, x, rng = city(60, 3, 9)
    y = x + rng.normal(0.0, 3.0, len(tree))
    imposed = consistent(tree) & nonnegative()
    found = project(y, imposed)
    monkeypatch.setattr(ActiveSet, "solve", lambda self, values: None)
    assert project(y, imposed) == pytest.approx(found, abs=1e-9)


def test_leaves_without_a_measurement_are_left_to_the_other_solver():
    tree = Tree.from_parents([-1, 0, 0])
    resolved = resolve_invariant(consistent(tree), 3)
    links = link(tree, 3)
    nothing = np.zeros(0)
    assert active_set(links, nothing, resolved, np.array([1.0, 1.0, 0.0]), integer=False) is None
    assert (
        active_set(links, nothing, resolved, np.array([0.0, 1.0, 1.0]), integer=False) is not None
    )
    assert project([np.nan, 2.0, 3.0], consistent(tree), [0, 1, 1]).tolist() == [5.0, 2.0, 3.0]


@pytest.mark.parametrize(
    ("y", "invariant"),
    [
        ([5.0, 2.0, 9.0], exactly([0, 1]) & nonnegative() & bounds(hi=2.5)),
        ([-1.0, 2.0, 9.0], exactly([0]) & nonnegative()),
        ([5.0, 2.0, 9.0], exactly([0, 1, 2])),
        ([5.0, -2.0, 9.0], exactly([1]) & nonnegative()),
    ],
)
def test_infeasible_problems_have_no_result(y, invariant):
    tree = Tree.from_parents([-1, 0, 0])
    imposed = consistent(tree) & invariant
    _, _, found = set_up(tree, imposed, None)
    assert found.solve(np.array(y)) is None
    with pytest.raises(InfeasibleError):
        project(y, imposed)


def test_nan_is_left_to_the_check():
    tree = Tree.from_parents([-1, 0, 0])
    _, _, found = set_up(tree, consistent(tree), None)
    for bad in (np.nan, np.inf, 2.0**54):
        for place in range(3):
            y = np.ones(3)
            y[place] = bad
            assert found.solve(y) is None


def test_disjoint_sums_of_a_plain_vector_and_lone_entries():
    total = linear([[1, 1, 1, 0, 0], [0, 0, 0, 2, 0]], [6, 10])
    z = project([1.0, 2.0, -9.0, 9.0, -4.0], total & nonnegative())
    assert z == pytest.approx([2.5, 3.5, 0.0, 5.0, 0.0])
    resolved = resolve_invariant(total & nonnegative(), 5)
    found = Projector(resolved, np.ones(5), "l2", integer=False).active_set
    assert found.solve(np.array([1.0, 2.0, -9.0, 9.0, -4.0])) == pytest.approx(z)
