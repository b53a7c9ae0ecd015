"""Methods that compete: what of the plan each keeps, and noise alone."""

from __future__ import annotations

import numpy as np

import congenial as cg
from congenial.data.counts import build_domain
from congenial.plan.plan import read_plan
from congenial.preview.comparison.methods import build, contenders, variant
from support.city import TRIPS, make_city


def plan_at(place, **sections):
    """Return the plan of the small city, whose rows are not there."""
    plan = read_plan(make_city(place, **sections))
    (place / "rows.csv").unlink()
    return plan


def test_a_variant_changes_only_method_noise_and_ledger(tmp_path):
    privacy = 'neighbours = "substitute"\nepsilon = 1.0\nledger = "l.sqlite"'
    plan = plan_at(tmp_path, privacy=privacy, method='name = "conditioning"\nsampler = "exact"')
    made = [variant(plan, c, delta=1e-6) for c in contenders(plan, delta=1e-6)]
    assert {v.privacy.ledger for v in made} == {None}
    assert [v.method.sampler for v in made[:2]] == ["exact", "auto"]
    assert [v.method.norm for v in made[:3]] == ["l2", "l2", "l1"]
    assert {v.privacy.delta for v in made} == {None, 1e-6}
    assert all(v.hierarchy == plan.hierarchy and v.data == plan.data for v in made)


def test_unmeasured_levels_of_noise_alone_are_sums(tmp_path):
    privacy = 'neighbours = "substitute"\nepsilon = 1.0\nsplit = { zone = 1.0 }'
    plan = plan_at(tmp_path, privacy=privacy, invariants="nonnegative = true")
    tree = build_domain(plan, base=tmp_path)
    contender = next(c for c in contenders(plan) if c.name == "noise alone")
    x = tree.roll_up(np.array(list(TRIPS.values())))
    drawn = build(plan, tree, contender)[2].sample(x, 20, cg.seeded(1))
    assert tree.is_consistent(drawn)
    assert (drawn != x).any()
