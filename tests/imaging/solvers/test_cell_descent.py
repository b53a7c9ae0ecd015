"""TopDown of crossing margins: what it keeps, what it depends on, and what happens without room."""

from __future__ import annotations

import itertools
import logging

import numpy as np
import pytest

import congenial as cg
from congenial.errors import InfeasibleError, UnsupportedError
from congenial.imaging import topdown_image
from congenial.imaging.following import follows
from support.cross_tables import TOWN, plan_of

AXES = {"a": ("x", "y", "z"), "b": ("p", "q", "r")}
LEVELS = ("city", "town", "street")
STREETS = cg.Tree.from_paths([("c", f"t{i // 3}", str(i)) for i in range(7)])
EVERY = [(), ("a",), ("b",)]


def world(rng, impossible=None, mean=2.0):
    table = cg.Table(AXES, geography=STREETS, levels=LEVELS, impossible=impossible)
    workload = cg.Workload.of(table, EVERY)
    counts = rng.poisson(mean * rng.dirichlet(np.full(9, 0.4), size=7)).reshape(7, 3, 3)
    return workload, workload.answers(counts * table.possible.reshape(7, 3, 3))


def invariants(workload, x, rng):
    """Invariants that data may have: bounds, exact margins that cross, at several levels."""
    limit = workload.array(x, (), "street") + rng.integers(0, 3, size=7)
    return {
        "nonnegative": cg.nonnegative(),
        "total": cg.nonnegative() & cg.exactly(margins=[()], level="city"),
        "capacity": cg.bounds(0, limit, margin=(), level="street") & cg.nonnegative(),
        "crossing": cg.nonnegative() & cg.exactly(margins=[("a",), ("b",)], level="town"),
        "signed": cg.exactly(margins=[("b",)], level="street"),
    }


def test_releases_keep_every_invariant_and_follow_from_their_measurements():
    rng = np.random.default_rng(0)
    for seed in range(12):
        workload, x = world(rng, [{"a": "x", "b": "p"}] if seed % 2 else None)
        noise = cg.DiscreteLaplace(float(rng.choice([0.5, 3.0, 20.0])))
        for invariant in invariants(workload, x, rng).values():
            engine = topdown_image(
                cg.Additive(noise, workload), cg.consistent(workload) & invariant
            )
            noisy = engine.measure(x, rng=cg.seeded(seed))
            z = engine.apply(noisy, cg.seeded(seed))
            assert engine.resolved.satisfied_by(z, noisy)
            assert follows(engine, noisy, z, cg.seeded(1))
    moved = z.copy()
    # two units between two streets of a town, twice, so that everything still adds up
    cells = workload.block(("a", "b"), "street").ids
    moved[cells[0, 1]] += 5
    moved[cells[1, 1]] -= 5
    assert not follows(engine, noisy, moved, cg.seeded(1))


def test_without_noise_the_release_is_the_data():
    rng = np.random.default_rng(1)
    workload, x = world(rng)
    invariant = cg.consistent(workload) & cg.nonnegative()
    for integer in (True, False):
        z = cg.topdown(x, workload, invariant, cg.seeded(1), integer=integer)
        np.testing.assert_allclose(z, x, atol=1e-9)
    real = cg.topdown(x + 0.25, workload, invariant, integer=False)
    assert workload.consistent_with(np.round(real, 6)).all() or (
        np.abs(workload.sums.gaps(real)).max() < 1e-9
    )


def test_weights_are_those_of_the_measurements():
    rng = np.random.default_rng(2)
    workload, x = world(rng, mean=50.0)
    invariant = cg.consistent(workload) & cg.nonnegative()
    scales = workload.scales({(): 0.2, ("a",): 0.2, ("b",): 9.0, ("a", "b"): 9.0})
    errors = []
    for seed in range(20):
        engine = topdown_image(cg.Additive(cg.DiscreteLaplace(scales), workload), invariant)
        z = engine.sample(x, rng=cg.seeded(seed))
        errors.append(np.abs(z - x))
    mean = np.mean(errors, axis=0)
    assert mean[workload.block(("a",), "street").entries].mean() < 1.5
    assert mean[workload.block(("b",), "street").entries].mean() > 3.0


def test_cells_that_upper_levels_do_not_measure_are_the_sums_of_those_below():
    rng = np.random.default_rng(3)
    table = cg.Table(AXES, geography=STREETS, levels=LEVELS)
    workload = cg.Workload.of(table, {"city": [()], "town": [("a",)], "street": [("b",)]})
    counts = rng.integers(0, 9, size=(7, 3, 3))
    x = workload.answers(counts)
    invariant = cg.consistent(workload) & cg.nonnegative() & cg.exactly(margins=[()], level="city")
    z = cg.topdown(x, workload, invariant, cg.seeded(1))
    np.testing.assert_array_equal(z, x)
    scales = workload.scales({("b",): 1.0})
    with pytest.raises(UnsupportedError, match="neither measured nor published"):
        topdown_image(cg.Additive(cg.DiscreteLaplace(scales), workload), invariant)


def test_margins_that_upper_levels_do_not_measure_are_the_sums_of_those_below():
    """Only towns measure `a`, precisely; the city follows their sums, not those of streets."""
    rng = np.random.default_rng(6)
    table = cg.Table(AXES, geography=STREETS, levels=LEVELS)
    workload = cg.Workload.of(table, {"city": [()], "town": [("a",)]})
    x = workload.answers(rng.poisson(30.0, size=(7, 3, 3)))
    noise = cg.DiscreteLaplace(workload.scales({(): 50.0, ("a",): 1.0, ("a", "b"): 50.0}))
    engine = topdown_image(
        cg.Additive(noise, workload), cg.consistent(workload) & cg.exactly(margins=[()])
    )
    z = engine.sample(x, 200, cg.seeded(2))
    by_town = np.abs(workload.array(z - x, ("a",), "town"))
    # noise of scale 1 at three towns; the sums of 63 cells of scale 50 would be 100 off and more
    assert by_town.mean() < 3.0


def test_draws_together_are_those_one_after_another():
    rng = np.random.default_rng(7)
    workload, x = world(rng)
    for invariant in invariants(workload, x, rng).values():
        engine = topdown_image(
            cg.Additive(cg.DiscreteLaplace(3.0), workload), cg.consistent(workload) & invariant
        )
        noisy = engine.measure(x, 5, cg.seeded(1))
        one, other = cg.seeded(2), cg.seeded(2)
        alone = [engine.move(y, one) for y in noisy]
        assert (engine.apply_all(noisy, other) == alone).all()


def test_several_tables_and_pairs_between_them():
    rng = np.random.default_rng(4)
    people = cg.Table(AXES, geography=STREETS, levels=LEVELS, name="people")
    homes = cg.Table({"used": ("yes", "no")}, geography=STREETS, levels=LEVELS, name="homes")
    workload = cg.Workload.of(people, EVERY) + cg.Workload.of(homes, [()])
    counts = rng.integers(1, 4, size=(7, 3, 3)), rng.integers(0, 9, size=(7, 2))
    x = workload.answers(*counts)
    invariant = (
        cg.consistent(workload)
        & cg.nonnegative()
        & cg.exactly(margins=[()], level="street", table="homes")
        & cg.exactly(margins=[("used",)], level="street", table="homes")
        & cg.at_least_as_many(("people", ()), ("homes", {"used": "yes"}), level="street")
    )
    engine = topdown_image(cg.Additive(cg.DiscreteLaplace(5.0), workload), invariant)
    for seed in range(10):
        z = engine.sample(x, rng=cg.seeded(seed))
        assert engine.resolved.satisfied_by(z, x)
        used = workload.array(z, ("used",), "street", "homes")[:, 0]
        assert (workload.array(z, (), "street", "people") >= used).all()


def test_the_table_is_the_closest_where_the_descent_finds_none_and_the_log_says_so(caplog):
    rng = np.random.default_rng(5)
    told = 0
    for seed in range(60):
        workload, x = world(rng, mean=4.0)
        invariant = (
            cg.consistent(workload)
            & cg.nonnegative()
            & cg.exactly(margins=[("a",), ("b",)], level="street")
        )
        engine = topdown_image(cg.Additive(cg.DiscreteLaplace(20.0), workload), invariant)
        caplog.clear()
        with caplog.at_level(logging.WARNING, "congenial.imaging"):
            y = engine.measure(x, rng=cg.seeded(seed))
            z = engine.apply(y, cg.seeded(seed))
        assert engine.resolved.satisfied_by(z, x)
        assert follows(engine, y, z, cg.seeded(0))
        told += "found no table" in caplog.text
    assert told >= 1


def test_bounds_that_clash_are_refused_and_no_count_is_told():
    rng = np.random.default_rng(6)
    workload, x = world(rng)
    invariant = (
        cg.consistent(workload)
        & cg.nonnegative()
        & cg.exactly(margins=[()], level="city")
        & cg.bounds(0, 0, margin=(), level="street")
    )
    noise = cg.Additive(cg.DiscreteLaplace(2.0), workload)
    with pytest.raises(InfeasibleError, match="bounds") as found:
        topdown_image(noise, invariant).sample(x, rng=cg.seeded(1))
    assert str(int(x[0])) not in str(found.value)


def test_the_claim_is_the_largest_loss_of_any_two_neighbours():
    table = cg.Table(
        {"a": ("x", "y"), "b": ("p", "q")},
        geography=cg.Tree.from_paths([("c", "1"), ("c", "2")]),
    )
    workload = cg.Workload.of(table, EVERY)
    rng = np.random.default_rng(7)
    scales = rng.uniform(0.5, 3.0, size=len(workload))
    exact = {
        "nothing": [],
        "total": [cg.exactly(margins=[()], level=0)],
        "crossing": [cg.exactly(margins=[("a",)], level=0), cg.exactly(margins=[()], level=1)],
    }
    tables = [
        workload.answers(np.bincount(cells, minlength=8).reshape(2, 2, 2))
        for cells in itertools.combinations_with_replacement(range(8), 2)
    ]
    for name, pins in exact.items():
        invariant = cg.consistent(workload) & cg.nonnegative()
        for pin in pins:
            invariant = invariant & pin
        noise = cg.Additive(cg.DiscreteLaplace(scales), workload)
        engine = topdown_image(noise, invariant)
        pinned = engine.resolved.pinned
        # a release is a function of the noisy values and of the exact ones
        noisy = engine.measure(tables[0], rng=cg.seeded(1))
        np.testing.assert_array_equal(noisy[pinned], tables[0][pinned])
        again = engine.apply(noisy.copy(), cg.seeded(2))
        np.testing.assert_array_equal(engine.apply(noisy, cg.seeded(2)), again)
        largest = 0.0
        for one, other in itertools.combinations(tables, 2):
            change = np.abs(one - other)
            replaced = change[workload.cells].sum() == 2
            if replaced and not change[pinned].any():
                largest = max(largest, float((change / scales)[~pinned].sum()))
        stated = engine.guarantee("substitute")
        assert stated.epsilon == pytest.approx(largest, rel=1e-12)
        assert any("exact count" in fact for fact in stated.unprotected) == (name != "nothing")


def test_eighty_narrow_bounds_always_have_a_table_which_follows_from_its_measurements(caplog):
    """On 132 counts: cells chosen above may leave no table below; the closest is released then."""
    workload = plan_of(margins='["total", "sex", "voting", "sex by age"]').domain(TOWN)
    closest = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        x = workload.roll_up(rng.poisson(3.0, workload.cells.size))
        low, high = np.zeros(len(workload)), np.full(len(workload), np.inf)
        above, below = rng.integers(1, len(workload), (2, 40))
        high[above] = x[above] + rng.integers(0, 2, 40)
        low[below] = np.maximum(x[below] - rng.integers(0, 2, 40), 0)
        known = cg.consistent(workload) & cg.exactly([0]) & cg.bounds(low, high)
        engine = topdown_image(cg.Additive(cg.DiscreteLaplace(3.0), workload), known)
        y = engine.measure(x, rng=cg.seeded(seed))
        caplog.clear()
        with caplog.at_level(logging.WARNING, "congenial.imaging"):
            z = engine.apply(y, cg.seeded(seed))
        closest += "found no table" in caplog.text
        assert workload.is_consistent(z)
        assert ((low <= z) & (z <= high)).all()
        assert follows(engine, y, z, cg.seeded(0))
        real = cg.topdown(y, workload, known, integer=False)
        assert ((low - 1e-6 <= real) & (real <= high + 1e-6)).all()
    assert closest
