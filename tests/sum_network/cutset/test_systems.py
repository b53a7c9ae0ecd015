"""Sums with a few cycles: the simpler forms that sums take, the cut set, its error and its cost."""

from __future__ import annotations

import numpy as np
import pytest

import congenial as cg
from congenial.conditioning.laws.cutset_sampler import CutConditioned
from congenial.errors import (
    EmptyNeighbourhoodError,
    PrivacyError,
)
from congenial.invariants.written import resolve_invariant
from congenial.sum_network.cutset.assignments import choose_cut, enumerate_cut, weigh
from congenial.sum_network.cutset.boxes import place_box
from congenial.sum_network.cutset.systems import cycle_closers, sum_system
from support.conditioning_cases import INF
from support.enumeration import assert_same_law
from support.goodness_of_fit import FAILS, fit
from support.sum_networks import margins, scaled, table_case

SQUARE = [1, 2, 0, 0, 3, 1, 2, 2, 1]
TABLES = {
    "narrow": table_case((3, 3), 0.6, SQUARE),
    "nonnegative": table_case((3, 3), 0.8, SQUARE, lo=0),
    "unequal": table_case((3, 3), np.linspace(0.4, 0.7, 9), SQUARE),
    "gaussian": table_case((3, 3), 0.8, SQUARE, kind="gaussian"),
    "gaussian, nonnegative": table_case((3, 3), 1.0, SQUARE, lo=0, kind="gaussian"),
    "three by four": table_case((3, 4), 0.6, [*SQUARE, 0, 1, 2], lo=0),
}


def system_of(matrix, n):
    return sum_system(resolve_invariant(cg.linear(matrix, np.zeros(len(matrix))), n))


@pytest.mark.parametrize("name", TABLES)
def test_tables_have_their_law(name):
    case = TABLES[name]
    conditioned = case.condition()
    assert isinstance(conditioned, CutConditioned)
    assert_same_law(conditioned, case.law(), case.x)


@pytest.mark.parametrize("name", TABLES)
def test_draws_follow_the_law_and_fail_at_a_wrong_scale(name):
    case = TABLES[name]
    draws = case.condition().sample(case.x, size=20_000, rng=cg.seeded(8))
    assert fit(draws, case.law(), range(case.n)) > FAILS
    for off in (0.7, 1.3):
        assert fit(draws, scaled(case, off), range(case.n)) < FAILS


def test_the_test_fails_for_cut_values_drawn_uniformly():
    case = TABLES["narrow"]
    law = case.law()
    uniform = np.resize(law.states, (20_000, case.n))
    assert fit(uniform, law, range(case.n)) < FAILS


@pytest.mark.parametrize("columns", [2, 3, 23])
def test_two_rows_and_any_columns_are_a_forest(columns):
    # one row sum follows from the others
    x = np.arange(2 * columns) % 5
    rows = margins(2, columns)
    conditioned = cg.condition(
        cg.Additive(cg.DiscreteLaplace(1.0), x.size), cg.linear(rows, rows @ x)
    )
    assert not isinstance(conditioned, CutConditioned)
    draws = conditioned.sample(x, size=50, rng=cg.seeded(1))
    assert (draws @ rows.T == rows @ x).all()


def test_totals_by_sex_and_by_voting_age_are_a_forest():
    cells = np.arange(46)
    female, adult = cells < 23, cells % 23 >= 5
    rows = np.array([cells >= 0, female, adult, female & adult], dtype=int)
    x = cells % 7
    for mandated in (rows, rows[:3]):
        conditioned = cg.condition(
            cg.Additive(cg.DiscreteLaplace(2.0), 46),
            cg.linear(mandated, mandated @ x) & cg.nonnegative(),
        )
        assert not isinstance(conditioned, CutConditioned)
        draws = conditioned.sample(x, size=200, rng=cg.seeded(2))
        assert (draws @ mandated.T == mandated @ x).all()
        assert draws.min() == 0
        assert (draws != x).any(axis=0).all()


def test_simpler_forms_have_the_same_solutions():
    rows = np.array([[1, -1, 1, 1, 0, 0, 0], [1, -1, 0, 0, 1, 1, 0], [0, 0, 1, 0, -1, 0, 1]])
    system = system_of(rows, 7)
    assert system.size > 7  # two entries that occur together were joined
    grid = np.array(np.meshgrid(*[[-1, 0, 1]] * 7)).reshape(7, -1).T
    solves = (grid @ rows.T == 0).all(axis=1)
    whole = np.zeros((len(grid), system.size), dtype=int)
    whole[:, :7] = grid
    fresh = system.rows[7 - system.size :]  # the rows of block sums come last
    for v, row in enumerate(fresh, start=7):
        assert row[v] == -1
        whole[:, v] = sum(a * whole[:, w] for w, a in row.items() if w != v)
    held = np.array([sum(a * whole[:, v] for v, a in row.items()) for row in system.rows]) == 0
    np.testing.assert_array_equal(held.all(axis=0), solves)


def test_entries_that_differences_of_sums_determine_keep_their_value():
    rows = np.array([[1, 1, 1, 0, 0], [1, 1, 0, 0, 0], [0, 1, 0, 1, 1], [1, 0, 0, 1, 0]])
    system = system_of(rows, 5)
    np.testing.assert_array_equal(system.fixed, [False, False, True, False, False])


def test_rows_that_follow_from_others_are_dropped():
    assert len(system_of(margins(3, 3), 9).rows) == 5
    twice = np.vstack((margins(3, 3), margins(3, 3)))
    assert len(system_of(twice, 9).rows) == 5


def test_a_cut_set_leaves_a_forest_and_takes_the_narrowest():
    case = table_case((3, 3), [0.1, 9, 9, 9, 0.2, 9, 9, 9, 9], SQUARE)
    system = system_of(case.all_rows, 9)
    assert set(case.condition().by_cut.cost.cut) == {0, 4}
    rest = [{v: a for v, a in row.items() if v not in (0, 4)} for row in system.rows]
    assert cycle_closers(rest, range(9)) == []
    assert cycle_closers(system.rows, range(9)) != []


def box_of(case, budget=None):
    conditioned = case.condition()
    unary = conditioned._weights(case.x)
    system = conditioned.sums
    fixed = np.append(system.fixed, np.zeros(system.size - system.n, dtype=bool))
    return system, unary, place_box(system.rows, unary, fixed, budget or 40.0)


@pytest.mark.parametrize("budget", [4.0, 8.0, 16.0])
@pytest.mark.parametrize("name", ["narrow", "nonnegative", "gaussian"])
def test_the_truncation_is_below_its_bound(name, budget):
    case = TABLES[name]
    law = case.law()
    system, unary, box = box_of(case, budget)
    found = weigh(system, unary)
    noise = law.states - case.x
    within = ((noise >= box.lo[: case.n]) & (noise <= box.hi[: case.n])).all(axis=1)
    log_chance = found.log_total - found.box.log_within
    bound = 2 * system.size * np.exp(-budget - log_chance)
    assert law.probabilities[~within].sum() <= bound
    # the ball of the cut set's losses
    cut = choose_cut(system, box)
    listed = {tuple(v) for v in enumerate_cut(system, box, cut, 10**6)[0].tolist()}
    kept = np.array([tuple(u) in listed for u in noise[:, list(cut)].tolist()])
    assert law.probabilities[~kept].sum() <= bound + np.exp(-budget - log_chance)


def test_windows_grow_until_the_bound_is_met():
    # all counts at their bound: the sums hold with little probability, so windows must be wider
    wide = cg.condition(
        cg.Additive(cg.DiscreteLaplace(1.0), 9), cg.linear(margins(3, 3), np.zeros(6))
    )
    assert wide.error_bound == 0.0
    zeros = np.zeros(9, dtype=int)
    held = table_case((3, 3), 1.0, zeros, lo=0)
    assert (held.condition().sample(zeros, size=5, rng=cg.seeded(1)) == 0).all()


# what is said beforehand


def test_margins_leave_no_single_record_to_move():
    conditioned = TABLES["narrow"].condition()
    with pytest.raises(EmptyNeighbourhoodError):
        conditioned.guarantee("add-remove")
    # two move at once: four entries change
    claim = conditioned.guarantee("substitute")
    assert (claim.records, claim.at_once) == (2, True)
    assert claim.epsilon == pytest.approx(4 / 0.6)


# two entries of one scale: a loss of 4 becomes log(2 e^4 - 1), proofs/inequalities.md
@pytest.mark.parametrize(("lo", "gamma"), [(-INF, 0.0), (0.0, np.log(2 - np.exp(-4)) / 4)])
def test_the_loss_of_a_record_that_can_move_is_charged(lo, gamma):
    # entries 0 and 9 are in the same row and the same column
    rows = np.column_stack((margins(3, 3), margins(3, 3)[:, 0]))
    x = np.array([*SQUARE, 2])
    invariant = cg.linear(rows, rows @ x) & cg.bounds(lo)
    conditioned = cg.condition(cg.Additive(cg.DiscreteLaplace(0.5), 10), invariant)
    assert isinstance(conditioned, CutConditioned)
    got = conditioned.guarantee("substitute")
    assert got.gamma == pytest.approx(gamma)
    assert got.epsilon == pytest.approx((1 + gamma) * 2 / 0.5)
    assert got.delta == 0.0
    # the largest ratio between the two neighbours, by the law itself
    moved = x.copy()
    moved[[0, 9]] += [1, -1]
    draws = conditioned.sample(x, size=300, rng=cg.seeded(3))
    loss = conditioned.log_prob(draws, x) - conditioned.log_prob(draws, moved)
    assert np.abs(loss[np.isfinite(loss)]).max() <= got.epsilon + 1e-9


def test_sums_of_both_signs_over_a_plain_vector_give_no_guarantee():
    conditioned = cg.condition(cg.Additive(cg.DiscreteLaplace(1.0), 3), cg.linear([1, -1, -1], 0))
    with pytest.raises(PrivacyError, match="difference"):
        conditioned.guarantee("substitute")
