"""TopDown of two tables, counts of one of which reach those of the other in every area."""

from __future__ import annotations

import numpy as np
import pytest

import congenial as cg
from congenial.errors import UnsupportedError
from congenial.imaging import topdown_image
from congenial.imaging.following import follows

LEVELS = ("city", "town", "street")
STREETS = cg.Tree.from_paths([("c", f"t{i // 3}", str(i)) for i in range(7)])
PEOPLE = cg.Table({"age": ("0-17", "18+")}, geography=STREETS, levels=LEVELS, name="people")
HOMES = cg.Table({"used": ("yes", "no")}, geography=STREETS, levels=LEVELS, name="homes")
LIVED_IN = cg.at_least_as_many(("people", ()), ("homes", {"used": "yes"}), level="street")


def world(rng, *, homes_first=False):
    """Two tables, some of whose margins are counted, and data in which every home is lived in."""
    of_people = [[(), "age"], ["age"], {"city": [()], "town": ["age"], "street": [()]}]
    of_homes = [[(), "used"], ["used"], {"city": ["used"], "street": ["used"]}]
    people = cg.Workload.of(PEOPLE, of_people[rng.integers(3)])
    homes = cg.Workload.of(HOMES, of_homes[rng.integers(3)])
    used, empty = rng.poisson(rng.gamma(0.4, 4.0, size=7)), rng.poisson(1.0, size=7)
    lived = used + rng.poisson(0.6 * used)
    young = rng.binomial(lived, 0.3)
    counts = np.stack((young, lived - young), 1), np.stack((used, empty), 1)
    workload = homes + people if homes_first else people + homes
    return workload, workload.answers(*(counts[::-1] if homes_first else counts))


def capacity(workload, x, rng):
    """Upper bounds of the people in each street, where the workload counts these."""
    if not counts_people(workload):
        return cg.nonnegative()
    limit = workload.array(x, (), "street", "people") + rng.integers(0, 3, size=7)
    return cg.bounds(0, limit, margin=(), level="street", table="people") & cg.nonnegative()


def counts_people(workload):
    """Whether a workload counts the people in each street."""
    return any(b.table is PEOPLE and (b.level, b.margin) == (2, ()) for b in workload.blocks)


def exact_people(workload):
    """Exact totals of people at the levels that the workload counts them at."""
    found = cg.nonnegative()
    for block in workload.blocks:
        if block.table is PEOPLE and block.margin == () and block.level < 2:
            found &= cg.exactly(margins=[()], level=block.level, table="people")
    return found


@pytest.mark.parametrize("homes_first", [False, True])
def test_homes_in_use_are_lived_in_whatever_the_noise_says(homes_first):
    rng = np.random.default_rng(int(homes_first))
    bound = 0
    for seed in range(120):
        workload, x = world(rng, homes_first=homes_first)
        link = LIVED_IN
        if not counts_people(workload):
            adults = workload.array(x, "age", "street", "people")[:, 1]
            if (adults < workload.array(x, "used", "street", "homes")[:, 0]).any():
                continue
            sides = ("people", {"age": "18+"}), ("homes", {"used": "yes"})
            link = cg.at_least_as_many(*sides, level="street")
        kept = [cg.nonnegative(), capacity(workload, x, rng), exact_people(workload)][seed % 3]
        noise = cg.DiscreteLaplace(float(rng.choice([0.5, 3.0, 20.0])))
        engine = topdown_image(cg.Additive(noise, workload), cg.consistent(workload) & kept & link)
        noisy = engine.measure(x, rng=cg.seeded(seed))
        z = engine.apply(noisy, cg.seeded(seed))
        assert engine.resolved.satisfied_by(z, noisy)
        assert follows(engine, noisy, z, cg.seeded(1))
        more, fewer = engine.resolved.pairs.T
        bound += int((z[more] == z[fewer]).sum())
    assert bound > 50  # the links matter


def test_tables_without_links_are_fitted_as_before():
    rng = np.random.default_rng(5)
    workload, _ = world(rng)
    free = cg.consistent(workload) & cg.nonnegative()
    made = cg.Additive(cg.DiscreteLaplace(3.0), workload)
    one = topdown_image(made, free).descent
    assert getattr(one, "links", ()) == ()


def test_a_release_that_leaves_a_used_home_empty_does_not_follow():
    rng = np.random.default_rng(3)
    for seed in range(20):
        workload, x = world(rng)
        if not counts_people(workload):
            continue
        invariant = cg.consistent(workload) & cg.nonnegative()
        made = cg.Additive(cg.DiscreteLaplace(5.0), workload)
        linked, plain = topdown_image(made, invariant & LIVED_IN), topdown_image(made, invariant)
        noisy = linked.measure(x, rng=cg.seeded(seed))
        z = plain.apply(noisy, cg.seeded(seed))
        broken = not linked.resolved.satisfied_by(z, noisy)
        if broken and np.abs(z - linked.apply(noisy, cg.seeded(seed))).max() > 2:
            assert not follows(linked, noisy, z, cg.seeded(1))
            return
    raise AssertionError("no release broke the link")


def test_a_level_is_as_close_as_the_links_allow():
    """At one place, people are the measured number or, if that is larger, the homes released."""
    one = cg.Tree.from_paths([("c",)])
    people = cg.Table({"age": ("a",)}, geography=one, name="people")
    homes = cg.Table({"used": ("yes",)}, geography=one, name="homes")
    workload = cg.Workload.of(people, [()]) + cg.Workload.of(homes, [()])
    link = cg.at_least_as_many(("people", ()), ("homes", ()))
    for y in ([3.0, 3.0, 8.0, 8.0], [9.0, 9.0, 2.0, 2.0], [-4.0, -4.0, -2.0, -2.0]):
        z = cg.topdown(y, workload, cg.consistent(workload) & cg.nonnegative() & link)
        more, fewer = workload.block((), 0, "people").start, workload.block((), 0, "homes").start
        assert z[fewer] == max(0, y[fewer])
        assert z[more] == max(z[fewer], y[more], 0)


def test_tables_in_a_circle_are_refused():
    workload = cg.Workload.of(PEOPLE, [()]) + cg.Workload.of(HOMES, [()])
    both = cg.at_least_as_many(("people", ()), ("homes", ()), level="street")
    both &= cg.at_least_as_many(("homes", ()), ("people", ()), level="street")
    alone = cg.at_least_as_many(("people", {"age": "18+"}), ("people", {"age": "0-17"}))
    ages = cg.Workload.of(PEOPLE, ["age"])
    for queries, link in ((workload, both), (ages, alone)):
        y = np.ones(len(queries))
        with pytest.raises(UnsupportedError, match="one after the other"):
            cg.topdown(y, queries, cg.consistent(queries) & cg.nonnegative() & link)
