"""Tables by every method: conditional laws by enumeration, guarantees over all pairs, images."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import congenial as cg
from congenial.conditioning.laws.forest_sampler import Conditioned
from congenial.errors import (
    EmptyNeighbourhoodError,
    InvariantError,
    PrivacyError,
)
from congenial.sum_network.cutset import assignments
from support.enumeration import Law, assert_same_law, enumerate_law
from support.table_cases import PAIR, TWO, counts, masks, rows_of
from support.table_worlds import CASES, GROUPS, LAWS, SMALL, small, world

INF = np.inf


# name: table, margins, scales, further invariants, the class that draws


@pytest.mark.parametrize("kind", LAWS)
@pytest.mark.parametrize("name", CASES)
def test_conditional_laws_are_those_of_enumeration(name, kind):
    workload, x, mechanism, more = world(name, kind)
    made = cg.condition(mechanism, cg.consistent(workload) & more)
    assert isinstance(made, CASES[name][-1])
    resolved = made.resolved
    law = enumerate_law(
        rows_of(workload),
        kind,
        mechanism.scales,
        x,
        np.flatnonzero(resolved.pinned),
        resolved.lo,
        resolved.hi,
        flat=200,
    )
    assert law.states.shape[0] > 5
    assert_same_law(made, law, x, most=300)


@pytest.mark.parametrize("name", CASES)
def test_releases_satisfy_everything_by_every_method(name):
    workload, x, mechanism, more = world(name, seed=3)
    invariant = cg.consistent(workload) & more
    made = cg.condition(mechanism, invariant)
    resolved = made.resolved
    each = masks(workload).astype(int)
    for z in (
        made.sample(x, 50, cg.seeded(1)),
        cg.image(mechanism, invariant, integer=True).sample(x, 50, cg.seeded(2)),
    ):
        np.testing.assert_array_equal(z, z[:, workload.cells] @ each.T)
        assert (z[:, resolved.pinned] == x[resolved.pinned]).all()
        assert ((z >= resolved.lo) & (z <= resolved.hi)).all()


@pytest.mark.parametrize("name", CASES)
def test_images_are_the_closest_points(name):
    workload, x, mechanism, more = world(name, seed=4)
    made = cg.image(mechanism, cg.consistent(workload) & more)
    resolved = made.resolved
    cells = workload.cells
    each = masks(workload).astype(float)
    weight = np.where(resolved.pinned, 0.0, 1.0 / mechanism.noise.variances(mechanism.scales))
    for seed in range(5):
        noisy = np.where(resolved.pinned, x, mechanism.sample(x, rng=cg.seeded(seed)))
        z = made.projector.apply(noisy.astype(float))
        np.testing.assert_allclose(z, each @ z[cells], atol=1e-8)
        # no step towards another point that satisfies everything comes closer
        slope = each.T @ (weight * (z - np.where(weight > 0, noisy, 0.0)))
        other = least(slope, each, resolved, x)
        assert slope @ z[cells] - other <= 1e-7 * (1.0 + np.abs(slope).max())


def least(slope, each, resolved, x):
    """Smallest value of a linear form over the cells, by a linear programme."""
    from scipy.optimize import linprog

    low, high = (np.where(resolved.pinned, x, side) for side in (resolved.lo, resolved.hi))
    rows = np.vstack((each[np.isfinite(high)], -each[np.isfinite(low)]))
    ends = np.concatenate((high[np.isfinite(high)], -low[np.isfinite(low)]))
    found = linprog(slope, A_ub=rows, b_ub=ends, bounds=(None, None))
    return found.fun if found.status == 0 else -INF


@pytest.mark.parametrize("name", [name for name in CASES if "cross" not in name])
def test_no_pair_of_neighbours_is_distinguished_better_than_guaranteed(name):
    workload, _, mechanism, more = world(name)
    table = workload.tables[0]
    made = cg.condition(mechanism, cg.consistent(workload) & more)
    claim = made.guarantee("substitute")
    resolved = made.resolved
    each = masks(workload).astype(np.int64)
    k = workload.cells.size
    rng = np.random.default_rng(9)
    moves = list(joint_moves(each[resolved.pinned], k, claim.records))
    assert moves
    worst = 0.0
    starts = [counts(table, rng).reshape(table.possible.shape)[table.possible] for _ in range(300)]
    inside = [
        start
        for start in starts
        if ((x := each @ start) >= resolved.lo).all() and (x <= resolved.hi).all()
    ]
    for start in inside[:6]:
        x = each @ start
        z = made.sample(x, 40, cg.seeded(int(rng.integers(2**31))))
        here = made.log_prob(z, x)
        for move in moves:
            y = x + each @ move
            if (start + move < 0).any() or not ((y >= resolved.lo) & (y <= resolved.hi)).all():
                continue
            there = made.log_prob(np.vstack((z, x, y)), y)
            ours = made.log_prob(np.vstack((z, x, y)), x)
            np.testing.assert_allclose(ours[: len(z)], here)
            gap = np.abs(there - ours)
            worst = max(worst, float(gap[np.isfinite(gap)].max()))
    assert worst <= claim.epsilon + 1e-9
    # the guarantee says what the noise costs, and not much more than is met
    assert worst >= 0.5 * claim.base_epsilon


def joint_moves(fixed, k, records):
    """Moves of so many records from cells to other cells that keep all fixed sums."""
    for gone in itertools.combinations_with_replacement(range(k), records):
        for come in itertools.combinations_with_replacement(range(k), records):
            move = np.bincount(come, minlength=k) - np.bincount(gone, minlength=k)
            if move.any() and not (fixed @ move).any():
                yield move


@pytest.mark.parametrize(
    ("margins", "exact", "records", "base"),
    [
        # a move between two cells changes both, and the margins that tell them apart
        ([], None, 1, 2 / 0.5),
        ([("sex",)], [("sex",)], 1, 2 / 0.5),
        ([("sex",), ("age",)], [("sex",)], 1, 2 / 0.5 + 2 / 0.25),
        ([("sex",), ("age",), ()], [()], 1, 2 / 0.5 + 2 / 0.25 + 2 / 0.2),
        ([("sex",), ("age",)], [("sex",), ("age",)], 2, 4 / 0.5),
    ],
)
def test_guarantees_of_small_tables_equal_those_computed_by_hand(margins, exact, records, base):
    workload = cg.Workload.of(small(), margins)
    scales = {("sex", "age"): 0.5, ("age",): 0.25, ("sex",): 0.2, (): 0.1}
    given = {m: s for m, s in scales.items() if m in margins or m == ("sex", "age")}
    mechanism = cg.Additive(cg.DiscreteLaplace(workload.scales(given)), workload)
    invariant = cg.consistent(workload)
    if exact:
        invariant = invariant & cg.exactly(margins=exact)
    claim = cg.image(mechanism, invariant).guarantee("substitute")
    assert claim.records == records
    assert claim.epsilon == pytest.approx(base)
    told = "; ".join(claim.unprotected)
    for margin in exact or ():
        assert f"of {' by '.join(margin) or 'the total'} in table" in told


def test_guarantees_name_levels_and_records_that_cannot_move_alone():
    table = cg.Table(SMALL, GROUPS, TWO, levels=("region", "place"))
    workload = cg.Workload.of(table, {"region": [("sex",), ("age",)]})
    mechanism = cg.Additive(cg.DiscreteLaplace(workload.scales({("sex", "age"): 2.0})), workload)
    exact = cg.exactly(margins=[("sex",), ("age",)], level="region")
    claim = cg.image(mechanism, cg.consistent(workload) & exact).guarantee("substitute")
    # north has two places between which records move; south has one, whose cells are told
    assert claim.records == 1
    told = [f"the exact counts of {axis} in table at level region" for axis in ("sex", "age")]
    assert list(claim.unprotected[:2]) == told
    assert claim.unprotected[2].count(" in table at south/c") == 6
    with pytest.raises(EmptyNeighbourhoodError, match="add-remove"):
        cg.image(mechanism, cg.consistent(workload) & exact).guarantee("add-remove")


def test_sensitivity_of_a_workload_is_that_of_its_query_matrix():
    for margins in ([("sex",)], [("sex",), ("age",)], [("sex", "grown"), ("age",), ()]):
        workload = cg.Workload.of(small(TWO), {1: margins, 0: [("age",)]})
        matrix = masks(workload).astype(int)
        for neighbours in ("substitute", "add-remove"):
            for norm in (1, 2):
                ours = cg.accounting.sensitivity(workload, neighbours=neighbours, norm=norm)
                theirs = cg.accounting.sensitivity(matrix, neighbours=neighbours, norm=norm)
                assert float(ours) == pytest.approx(float(theirs))


@pytest.mark.parametrize("name", ["nested groups", "one margin exact, another measured"])
def test_the_auditor_confirms_the_claims_of_tables(name):
    workload, _, mechanism, more = world(name)
    made = cg.condition(mechanism, cg.consistent(workload) & more)
    found = cg.audit(made, neighbours="substitute", method="exact", total=2)
    assert found.passed
    halved = cg.Additive(cg.DiscreteLaplace(mechanism.scales / 2), workload)
    claim = made.guarantee("substitute")
    liar = cg.condition(halved, cg.consistent(workload) & more)
    assert not cg.audit(liar, neighbours="substitute", method="exact", total=2, claim=claim).passed


def test_entries_are_named_where_a_draw_is_explained():
    workload, _, mechanism, more = world("measured margins that cross")
    told = cg.condition(mechanism, cg.consistent(workload) & more).explain()
    assert "values (entry 'sex=M, age=1 in table'; entry 'sex=M, age=2 in table')" in told


def test_a_cut_set_whose_sums_take_too_much_memory_is_given_up(monkeypatch):
    workload, _, mechanism, more = world("measured margins that cross")
    invariant = cg.consistent(workload) & more
    assert cg.condition(mechanism, invariant, "exact").cost.assignments > 100
    monkeypatch.setattr(assignments, "MOST_SUMS", 100)
    # a sum is carried along instead, and no assignments are listed
    assert cg.condition(mechanism, invariant, "exact").cost.tally is not None


def test_nested_and_crossing_tables_go_down_level_by_level():
    workload, x, mechanism, more = world("nested groups")
    z = cg.topdown(mechanism.sample(x, rng=cg.seeded(1)) * 0 + x, workload, more, cg.seeded(2))
    np.testing.assert_array_equal(z, x)
    crossing, y, _, other = world("measured margins that cross")
    np.testing.assert_array_equal(cg.topdown(y, crossing, other, cg.seeded(2)), y)


def test_gaussian_noise_under_bounds_is_refused_where_margins_cross():
    def claim(name):
        workload, _, mechanism, more = world(name, "gaussian")
        made = cg.condition(mechanism, cg.consistent(workload) & more & cg.nonnegative())
        return made.guarantee("substitute")

    assert claim("nested groups").rho is not None
    with pytest.raises(PrivacyError, match="no bound is proved"):
        claim("two rows, both margins exact")


PEOPLE = cg.Table({"age": ("0", "1")}, geography=PAIR, levels=("t", "s"), name="people")
HOMES = cg.Table({"used": ("yes", "no")}, geography=PAIR, levels=("t", "s"), name="homes")
LIVED_IN = cg.at_least_as_many((PEOPLE, ()), (HOMES, {"used": "yes"}), level="s")


def block():
    """People and homes of two streets: homes in use exact, with no more of them than people."""
    workload = cg.Workload.of(PEOPLE, {"s": [()]}) + cg.Workload.of(HOMES)
    x = workload.answers([[1, 1], [0, 2]], [[2, 1], [1, 3]])
    scales = workload.scales({"people": {"age": 0.3, (): 0.4}, "homes": {"used": 0.3}})
    invariant = cg.consistent(workload) & cg.nonnegative() & LIVED_IN
    return workload, x, cg.Additive(cg.DiscreteLaplace(scales), workload), invariant


@pytest.mark.parametrize("kind", LAWS)
def test_nobody_lives_in_fewer_than_the_homes_in_use(kind):
    workload, x, mechanism, invariant = block()
    mechanism = cg.Additive(LAWS[kind](mechanism.scales), workload)
    exact = cg.exactly(margins=["used"], level="s", table="homes")
    made = cg.condition(mechanism, invariant & exact)
    assert isinstance(made, Conditioned)
    resolved = made.resolved
    lo = resolved.lo.copy()
    for street in ("a", "b"):
        people = workload.find(at=f"town/{street}", table=PEOPLE)
        homes = workload.find({"used": "yes"}, at=f"town/{street}", table=HOMES)
        lo[people] = x[homes]
    rows = rows_of(workload)
    law = enumerate_law(
        rows, kind, mechanism.scales, x, np.flatnonzero(resolved.pinned), lo, resolved.hi, flat=200
    )
    assert_same_law(made, law, x, most=300)
    outside = law.states[0].copy()
    outside[workload.block((), "s", "people").entries] = [0, 0]
    outside[workload.block("age", "s", "people").entries] = 0
    assert made.log_prob(outside, x) == -np.inf


def test_images_keep_bounds_that_follow_from_exact_counts_and_claims_charge_them():
    workload, x, mechanism, invariant = block()
    exact = cg.exactly(margins=["used"], level="s", table="homes")
    for made in (
        cg.image(mechanism, invariant & exact, integer=True),
        cg.condition(mechanism, invariant & exact),
    ):
        z = made.sample(x, 300, cg.seeded(4))
        people = workload.array(z, (), "s", "people")
        assert (people >= workload.array(x, "used", "s", "homes")[:, 0]).all()
        assert (people == workload.array(x, "used", "s", "homes")[:, 0]).any()
    pinned = cg.image(mechanism, invariant & exact).resolved.pinned
    for seed in range(20):
        noisy = np.where(pinned, x, mechanism.sample(x, rng=cg.seeded(seed)))
        z = cg.topdown(noisy, workload, invariant & exact, cg.seeded(seed))
        people = workload.array(z, (), "s", "people")
        assert (people >= workload.array(x, "used", "s", "homes")[:, 0]).all()
    claim = cg.condition(mechanism, invariant & exact).guarantee("substitute")
    assert claim.epsilon > claim.base_epsilon
    free = cg.condition(mechanism, cg.consistent(workload) & exact).guarantee("substitute")
    assert free.epsilon == free.base_epsilon == claim.base_epsilon
    assert "the exact counts of used in homes at level s" in claim.unprotected
    with pytest.raises(InvariantError, match=r"violates the bounds .* whose tables satisfy it"):
        cg.condition(mechanism, invariant & exact).sample(
            workload.answers([[0, 1], [0, 2]], [[2, 1], [1, 3]])
        )


def test_pairs_without_an_exact_side_are_conditions_that_imaging_holds():
    workload, x, mechanism, invariant = block()
    made = cg.image(mechanism, invariant, integer=True)
    assert made.resolved.inequalities[0].shape == (2, len(workload))
    z = made.sample(x, 100, cg.seeded(4))
    used = workload.array(z, "used", "s", "homes")[..., 0]
    assert (workload.array(z, (), "s", "people") >= used).all()
    assert (used != workload.array(x, "used", "s", "homes")[..., 0]).any()


@pytest.mark.parametrize("kind", LAWS)
def test_pairs_without_an_exact_side_are_conditioned_on(kind):
    workload, x, mechanism, invariant = block()
    mechanism = cg.Additive(LAWS[kind](mechanism.scales), workload)
    made = cg.condition(mechanism, invariant, "exact")
    every = enumerate_law(rows_of(workload), kind, mechanism.scales, x, (), 0.0, INF, flat=200)
    people = [workload.find(at=f"town/{s}", table=PEOPLE) for s in "ab"]
    homes = [workload.find({"used": "yes"}, at=f"town/{s}", table=HOMES) for s in "ab"]
    inside = (every.states[:, people] >= every.states[:, homes]).all(axis=1)
    mass = every.probabilities[inside].sum()
    law = Law(
        every.states[inside],
        every.probabilities[inside] / mass,
        every.log_total + float(np.log(mass)),
    )
    assert 0.1 < mass < 0.999
    assert_same_law(made, law, x, most=300)
    if kind == "laplace":
        claim = made.guarantee("substitute")
        assert claim.epsilon == pytest.approx(2 * claim.base_epsilon)
