"""Which route draws a table whose margins cross, and that entries which follow are no obstacle."""

from __future__ import annotations

import numpy as np
import pytest

import congenial as cg
from congenial.conditioning.laws.closing_sampler import ClosingConditioned
from congenial.conditioning.laws.cutset_sampler import CutConditioned
from congenial.conditioning.laws.forest_sampler import Conditioned
from congenial.conditioning.samplers.gibbs import GibbsConditioned
from congenial.errors import PrivacyError, UnsupportedError
from congenial.invariants.written import resolve_invariant
from congenial.sum_network.cutset.systems import sum_system
from support.crossing_tables import crossing
from support.enumeration import assert_same_law, enumerate_law
from support.table_cases import masks, rows_of

LAWS = {"laplace": cg.DiscreteLaplace, "gaussian": cg.DiscreteGaussian}


def measured(workload, exact, scale, kind="laplace"):
    """Return noise on all that is not exact, and the invariant."""
    scales = np.full(len(workload), scale)
    mechanism = cg.Additive(LAWS[kind](scales), workload)
    return mechanism, cg.consistent(workload) & cg.nonnegative() & cg.exactly(margins=exact)


@pytest.mark.parametrize("kind", LAWS)
@pytest.mark.parametrize(
    ("sizes", "exact", "route"),
    [
        ((2, 2), ["axis0"], Conditioned),
        ((2, 2), ["axis1"], Conditioned),
        ((2, 2), [()], CutConditioned),
        ((2, 3), ["axis1"], Conditioned),
        ((2, 3), ["axis0"], CutConditioned),
        ((2, 2, 2), ["axis0", "axis1", "axis2"], CutConditioned),
    ],
)
def test_a_total_that_follows_from_an_exact_margin_closes_no_cycle(sizes, exact, route, kind):
    workload = crossing(*sizes)
    mechanism, invariant = measured(workload, exact, 0.3, kind)
    made = cg.condition(mechanism, invariant)
    assert type(made) is route
    assert made.fixed[0]
    x = workload.answers(np.random.default_rng(3).integers(1, 4, sizes))
    resolved = made.resolved
    pins = np.flatnonzero(resolved.pinned)
    law = enumerate_law(
        rows_of(workload), kind, mechanism.scales, x, pins, resolved.lo, resolved.hi, flat=200
    )
    assert law.states.shape[0] > 5
    assert_same_law(made, law, x, most=300)


@pytest.mark.parametrize("sizes", [(2, 2), (2, 5), (2, 23)])
@pytest.mark.parametrize("bounded", [True, False])
def test_two_rows_of_a_table_are_a_forest_at_any_scale(sizes, bounded):
    workload = crossing(*sizes)
    invariant = cg.consistent(workload) & cg.exactly(margins=["axis1"])
    if bounded:
        invariant = invariant & cg.nonnegative()
    noise = cg.calibrate(workload, invariant, epsilon=0.1, neighbours="substitute")
    made = cg.condition(cg.Additive(noise, workload), invariant, "exact")
    assert type(made) is Conditioned
    x = workload.answers(np.full(sizes, 30))
    z = made.sample(x, 50, cg.seeded(2))
    assert workload.consistent_with(z).all()
    columns = workload.block("axis1").entries
    assert (z[:, columns] == x[columns]).all()
    assert (z[:, 0] == x[0]).all()
    assert len(np.unique(z[:, 1])) > 10


def test_entries_that_several_sums_determine_together_are_fixed():
    # the cells of three pairs in a ring, of which every sum of two neighbours is told
    workload = crossing(3, 3, impossible=np.eye(3, dtype=bool)[::-1])
    resolved = cg.condition(*measured(workload, ["axis0", "axis1"], 0.3)).resolved
    system = sum_system(resolved)
    assert system.fixed[0]
    free = np.flatnonzero(~system.fixed)
    assert set(free) <= set(workload.cells)
    square = crossing(2, 2, impossible=[[True, False], [False, False]])
    assert sum_system(cg.condition(*measured(square, ["axis0"], 0.3)).resolved).fixed[0]


def test_bounds_that_leave_one_value_fix_nothing_of_a_sum():
    # the data of a union need not be in all its alternatives
    workload = crossing(2, 2)
    invariant = cg.consistent(workload) & cg.bounds(3, 3, margin="axis0")
    mechanism = cg.Additive(cg.DiscreteLaplace(0.3), workload)
    assert not cg.condition(mechanism, invariant).fixed.any()


@pytest.mark.parametrize(
    ("sizes", "exact"),
    [
        ((2, 2, 2, 2), ["axis0"]),
        ((3, 3, 3), ["axis0", "axis1"]),
        ((2, 3, 4), [()]),
    ],
)
def test_tables_of_three_attributes_and_more_are_drawn_for_studies(sizes, exact):
    workload = crossing(*sizes)
    invariant = cg.consistent(workload) & cg.nonnegative()
    if exact:
        invariant = invariant & cg.exactly(margins=exact)
    mechanism = cg.Additive(cg.DiscreteLaplace(np.full(len(workload), 20.0)), workload)
    made = cg.condition(mechanism, invariant)
    assert type(made) is GibbsConditioned
    x = workload.answers(np.random.default_rng(6).integers(0, 30, sizes))
    draw, info = made.run(x, 100, 4, cg.seeded(1))
    z = draw.values.reshape(-1, len(workload))
    assert workload.consistent_with(z).all() and z.min() >= 0
    assert (z[:, made.resolved.pinned] == x[made.resolved.pinned]).all()
    assert info.irreducible is True and info.worst[0] < 1.05 and info.worst[1] > 100
    with pytest.raises(PrivacyError, match="is not a release"):
        made.sample(x)
    with pytest.raises(PrivacyError, match="not certified"):
        made.guarantee("substitute")
    told = made.explain()
    for part in (
        "lattice basis",
        "make an exact draw too costly",
        "within bounds as well",
        "Not certified",
    ):
        assert part in told


@pytest.mark.parametrize("kind", LAWS)
def test_no_scale_is_too_wide_for_chains(kind):
    workload = crossing(3, 3)
    x = workload.answers(np.full((3, 3), 50))
    spread = []
    for scale in (1e5, 30.0):
        mechanism = cg.Additive(LAWS[kind](np.full(len(workload), scale)), workload)
        made = cg.condition(mechanism, cg.consistent(workload), "gibbs")
        draw, info = made.run(x, 500, 4, cg.seeded(3))
        assert info.worst[0] < 1.02
        spread.append((draw.values[:, :, workload.cells] - 50.0).std() / scale)
        near = min(scale, 1e4)  # exact draws take time in proportion to the scale
        mechanism = cg.Additive(LAWS[kind](np.full(len(workload), near)), workload)
        exact = cg.condition(mechanism, cg.consistent(workload))
        assert type(exact) is ClosingConditioned
        drawn = exact.sample(x, 500, cg.seeded(4))[:, workload.cells]
        assert (drawn - 50.0).std() / near == pytest.approx(spread[-1], rel=0.05)
    assert spread[0] == pytest.approx(spread[1], rel=0.05)
    if kind == "gaussian":  # least squares
        each = masks(workload).astype(float)
        assert spread[0] == pytest.approx(np.sqrt(np.linalg.inv(each.T @ each)[0, 0]), rel=0.05)


def test_undetermined_entries_are_refused_for_chains_too():
    workload = crossing(2, 2)
    mechanism = cg.Additive(
        cg.DiscreteLaplace(workload.scales({("axis0", "axis1"): np.inf, ("axis0",): 1.0})), workload
    )
    with pytest.raises(UnsupportedError, match="does not exist"):
        cg.condition(mechanism, cg.consistent(workload), "gibbs")


def test_sums_of_a_margin_that_a_crossing_one_fixes_open_cycles():
    # cell by cell: rows a and b, columns c and d, of which the columns' totals are exact
    workload = crossing(2, 2)
    listed = [sum_system(_resolved(workload, exact)) for exact in (["axis0"], [()])]
    assert listed[0].forest is not None
    # rows that follow from others are dropped: four cells, less two totals or one
    for system, dimension in zip(listed, (2, 3), strict=True):
        free = system.size - system.fixed.sum()
        assert free - len(system.rows) == dimension


def _resolved(workload, exact):
    invariant = cg.consistent(workload) & cg.exactly(margins=exact)
    return resolve_invariant(invariant, len(workload), workload)


def test_wide_tables_are_drawn_by_chains_for_studies():
    workload = crossing(3, 3)
    made = cg.condition(*measured(workload, ["axis1"], 7.0))
    assert type(made) is GibbsConditioned
    with pytest.raises(UnsupportedError, match="takes more than"):
        cg.condition(*measured(workload, ["axis1"], 7.0), "exact")
