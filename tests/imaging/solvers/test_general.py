"""Projections under crossing sums, bounds and inequalities, against linear programmes and lists."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import linprog

import congenial as cg
from congenial.errors import InfeasibleError, UnsupportedError
from congenial.imaging.closest import project
from congenial.imaging.solvers import general
from congenial.invariants.written import (
    at_least,
    bounds,
    exactly,
    linear,
    nonnegative,
    resolve_invariant,
)
from congenial.randomness import seeded
from support.crossing_problems import cases

pytestmark = pytest.mark.kernels


def least_slope(resolved, y, slope):
    """Smallest value of a linear form on the invariant, by a linear programme; -inf if none."""
    lo = np.where(resolved.pinned, y, resolved.lo)
    hi = np.where(resolved.pinned, y, resolved.hi)
    b, c = resolved.inequalities
    found = linprog(
        slope,
        A_ub=-b if c.size else None,
        b_ub=-c if c.size else None,
        A_eq=resolved.equalities[0],
        b_eq=resolved.equalities[1],
        bounds=np.stack((lo, hi), axis=1),
    )
    return found.fun if found.status == 0 else -np.inf


def gap(resolved, y, weight, z):
    """How much further down the distance goes within the invariant, to first order."""
    slope = weight * (z - y)
    return float(slope @ z - least_slope(resolved, y, slope))


@pytest.mark.parametrize("spread", [0.0, 2.0])
def test_unmeasured_entries_move_least_among_the_closest(spread):
    rng = np.random.default_rng(3)
    many = 0
    for _, y, given, invariant, resolved in cases(150, 4):
        open_ = (rng.random(resolved.n) < 0.5) & ~resolved.pinned
        weight = np.where(open_, 0.0, given * 10.0 ** rng.uniform(-spread, spread, resolved.n))
        z = project(np.where(open_, np.nan, y), invariant, weights=weight)
        assert (z >= resolved.lo - 1e-12).all() and (z <= resolved.hi + 1e-12).all()
        np.testing.assert_allclose(resolved.equalities[0] @ z, resolved.equalities[1], atol=1e-8)
        assert (resolved.inequalities[0] @ z - resolved.inequalities[1] > -1e-8).all()
        scaled = weight / max(weight.max(), 1e-300)
        assert gap(resolved, y, scaled, z) < 1e-6
        measured = replace(resolved, pinned=resolved.pinned | ~open_)
        assert gap(measured, np.where(open_, 0.0, z), open_ * 1.0, z) < 1e-5
        many += open_.sum() >= 2
    assert many > 80


def test_two_unmeasured_entries_under_an_inequality():
    tree = cg.Tree.from_parents([-1, 0, 0])
    invariant = cg.consistent(tree) & nonnegative() & at_least([0, 1, -1], 0)
    z = project([-44, 357, -1156], invariant, [0, 0, 0.652])
    np.testing.assert_allclose(z, 0.0, atol=1e-9)
    z = project([np.nan, np.nan, 3.0], invariant, [0, 0, 1])
    np.testing.assert_allclose(z, [6.0, 3.0, 3.0], atol=1e-9)


def test_unmeasured_entries_between_very_unequal_weights():
    # what binds is found with a larger weight for the unmeasured entries alone
    tree = cg.Tree.from_parents([-1, -1, 0, 2, 2, 2])
    within = bounds([0, 3, 0, 0, 0, 0], [np.inf, np.inf, 8, np.inf, 8, 1])
    invariant = cg.consistent(tree) & within & at_least([0, 1, 0, 0, 0, -1], 0)
    weight = np.array([25.0, 0.0, 0.088, 0.0, 0.0, 0.078])
    y = np.array([-195.0, -55.0, 26.0, -32.0, -48.0, 46.0])
    z = project(y, invariant, weights=weight)
    # nothing else holds the sums at 0, where the largest weight wants them
    np.testing.assert_allclose(z[[0, 2, 3, 4, 5]], 0.0, atol=1e-9)
    assert z[1] >= 3.0 - 1e-12


@pytest.mark.parametrize("integer", [False, True])
def test_a_point_where_nothing_binds_stays(integer):
    for invariant in (at_least([1, -1], 0), nonnegative() & at_least([1, -1], 0)):
        assert project([3.0, 1.0], invariant, integer=integer).tolist() == [3, 1]


@pytest.mark.parametrize("integer", [False, True])
def test_entries_that_are_all_published_exactly(integer):
    invariant = exactly([0, 1]) & at_least([1, -1], 0)
    assert project([3.0, 1.0], invariant, integer=integer).tolist() == [3, 1]
    with pytest.raises(InfeasibleError, match="published exactly cannot all hold"):
        project([1.0, 3.0], invariant, integer=integer)
    # an entry of a single value, and no pin
    equal = bounds([3.0, 1.0], [3.0, 1.0]) & at_least([1, -1], 0)
    assert project([7.0, 7.0], equal, integer=integer).tolist() == [3, 1]


def test_draws_of_an_image_where_nothing_binds():
    people = cg.Table({"age": ("0-17", "18+")}, name="people")
    homes = cg.Table({"taken": ("yes", "no")}, name="homes")
    both = cg.Workload.of(people) + cg.Workload.of(homes)
    more = cg.at_least_as_many((people, {"age": "18+"}), (homes, {"taken": "yes"}))
    drawn = cg.image(cg.Additive(cg.DiscreteLaplace(2.0), both), more).sample(
        both.answers([50, 30], [20, 10]), 20, cg.seeded(1)
    )
    assert np.array_equal(drawn, np.rint(drawn))


def test_the_check_of_the_minimum_sees_another_point():
    seen = [
        gap(resolved, y, weight / weight.max(), x.astype(float))
        for x, y, weight, _, resolved in cases(80, 2)
        if not resolved.pinned.any()
    ]
    assert sum(g > 1e-3 for g in seen) > 20


def test_a_forest_gives_the_same_both_ways():
    rng = np.random.default_rng(5)
    for _ in range(20):
        y = rng.normal(0.0, 4.0, 6)
        disjoint = linear([[1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1]], [4, 5]) & nonnegative()
        # a third sum that follows from the two makes them cross
        crossing = disjoint & linear(np.ones(6), 9)
        np.testing.assert_allclose(project(y, crossing), project(y, disjoint), atol=1e-8)


def test_large_counts_keep_their_last_digit():
    y = np.array([2.0**40 + 0.25, 3.0, -2.0, 2.0**40])
    invariant = linear([[1, 1, 0, 0], [0, 1, 1, 0]], [2.0**40 + 3, 1]) & nonnegative()
    z = project(y, invariant)
    assert z[0] + z[1] == pytest.approx(2.0**40 + 3, abs=1e-3)
    assert abs(z[3] - 2.0**40) < 1e-3
    assert project(y, invariant, integer=True, rng=seeded(1))[1:3].sum() == 1


def test_infeasible_conditions_are_reported():
    with pytest.raises(InfeasibleError, match=r"no count below 0 and row 0"):
        project([1.0, 2.0, 3.0], linear([[1, 1, 0], [0, 1, 1]], [-1, 2]) & nonnegative())
    half = linear([[2, 2, 0], [0, 2, 2]], [3, 4]) & nonnegative()
    with pytest.raises(InfeasibleError, match="satisfy row 0"):
        project([1.0, 2.0, 3.0], half, integer=True, rng=seeded(1))


def test_a_missing_solver_is_named(monkeypatch):
    monkeypatch.setattr(general, "_NEEDED", ("no_such_solver",))
    with pytest.raises(UnsupportedError, match=r"no_such_solver.*pip install no_such_solver"):
        project([1.0, 2.0, 3.0], linear([[1, 1, 0], [0, 1, 1]], [1, 2]) & nonnegative())


@pytest.mark.parametrize("seed", [107, 731, 971])
def test_tight_bounds_with_too_many_apparently_active(seed):
    table = cg.Table({"a": ("0", "1", "2"), "b": ("0", "1", "2"), "c": ("0", "1", "2")})
    workload = cg.Workload.of(table, ["c", ("a", "b")])
    n = len(workload)
    rng = np.random.default_rng(seed)
    x = workload.answers(rng.poisson(200, table.shape))
    invariant = cg.consistent(workload) & bounds(x - 4 * rng.random(n), x + 4 * rng.random(n))
    scale = rng.choice([1.0, 2.0, 30.0, np.inf], n)
    y = x + rng.laplace(0.0, np.where(np.isinf(scale), 0.0, scale))
    weight = 1.0 / scale**2
    z = project(y, invariant, weights=weight)
    resolved = resolve_invariant(invariant, n, workload)
    assert (z >= resolved.lo - 1e-12).all() and (z <= resolved.hi + 1e-12).all()
    assert np.abs(workload.sums.gaps(z)).max() < 1e-6
    # no feasible direction goes further down, by a linear programme over the table's sums
    rows, values = general.sum_rows(resolved)
    assert gap(replace(resolved, equalities=(rows, values)), y, weight, z) < 1e-5


def test_conditions_that_differ_only_by_rounding_do_not_contradict():
    rows = [[0.2, -0.1], [-0.2, 0.1]]
    for off in (0.0, 1e-9, 1e-6, 1e-3):
        close = at_least(rows, [0.2 - off, -0.2 - off]) & bounds(-9, 9)
        z = project([2.4, 2.2], close)
        assert (rows @ z >= np.array([0.2, -0.2]) - off - 1e-9).all()


def test_an_image_of_a_table_keeps_its_margins():
    table = np.array([[4, 0, 3], [1, 2, 9]])
    rows = np.kron(np.eye(2), np.ones(3))
    columns = np.kron(np.ones(2), np.eye(3))
    a = np.vstack((rows, columns))
    mechanism = cg.Additive(cg.DiscreteLaplace(2.0), 6)
    imaged = cg.image(mechanism, linear(a, a @ table.ravel()) & nonnegative(), integer=True)
    draws = imaged.sample(table.ravel(), 20, seeded(6))
    assert (draws >= 0).all() and len(np.unique(draws, axis=0)) > 5
    np.testing.assert_array_equal(draws @ a.T, np.tile(a @ table.ravel(), (20, 1)))


@pytest.mark.parametrize("size", [1e8, 1e10, 1e12])
@pytest.mark.parametrize("shape", [(2, 2), (2, 3)])
def test_redundant_margins_of_large_tables_do_not_contradict_each_other(size, shape):
    rng = np.random.default_rng(7)
    rows = np.kron(np.eye(shape[0]), np.ones(shape[1]))
    columns = np.kron(np.ones(shape[0]), np.eye(shape[1]))
    a = np.vstack((rows, columns, np.ones(rows.shape[1])))
    for _ in range(20):
        x = rng.integers(1, int(size), rows.shape[1]).astype(float)
        y = x + rng.laplace(0.0, 1.0, x.size)
        plain = project(y, linear(a, a @ x))
        bounded = project(y, linear(a, a @ x) & nonnegative())
        np.testing.assert_allclose(plain, bounded, atol=1e-15 * size + 1e-9)
        np.testing.assert_allclose(a @ plain - a @ x, 0.0, atol=8e-16 * size)
