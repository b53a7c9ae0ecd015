"""Errors of simulated releases: what is summed up is what was drawn, and has the law's size."""

from __future__ import annotations

import numpy as np
import pytest

import congenial as cg
from congenial.data.counts import build_tree
from congenial.plan.plan import read_plan
from congenial.preview.comparison.methods import WAYS, build, contenders
from congenial.preview.comparison.outcome import QUANTILES
from congenial.preview.comparison.simulate import simulate
from congenial.preview.explanation import expected_noise
from support.city import ZONES, make_city

SMALL = dict(zip(ZONES, (0, 0, 1, 2, 0, 40), strict=True))
EQUALITIES = 'publish_exactly = ["root"]'
NAMES = [name for name, _, _ in WAYS]


def plan_at(place, **sections):
    """Return the plan of the small city, whose rows are not there."""
    plan = read_plan(make_city(place, **sections))
    (place / "rows.csv").unlink()
    return plan


def result_of(plan, base, contender, replicates, seed=7):
    """Return what one contender's releases are like."""
    tree = build_tree(plan, base=base)
    x = tree.roll_up(np.array(list(SMALL.values())))
    source = cg.seeded(seed)
    return simulate(plan, tree, contender, x, replicates=replicates, source=source)


def test_the_errors_of_noise_alone_are_those_of_the_law(tmp_path):
    plan = plan_at(tmp_path)
    contender = next(c for c in contenders(plan) if c.name == "noise alone")
    found = result_of(plan, tmp_path, contender, 3000)
    zone = found.levels[2]
    assert abs(zone.l1 - expected_noise(zone.scale)) < 5.0 * zone.l1_error
    assert abs(zone.l1 - expected_noise(1.3 * zone.scale)) > 5.0 * zone.l1_error
    u = np.arange(0, 400)
    law = np.exp(-u / zone.scale)
    law[1:] *= 2.0
    share = np.cumsum(law / law.sum())
    for q, value in zip(QUANTILES, zone.quantiles, strict=True):
        assert abs(value - np.searchsorted(share, q)) <= 1.0 + 0.02 * value


@pytest.mark.parametrize("name", NAMES)
def test_the_tally_equals_that_of_the_draws(tmp_path, name):
    """The same draws again, kept whole, with errors worked out one by one."""
    plan = plan_at(tmp_path)
    contender = next(c for c in contenders(plan) if c.name == name)
    found = result_of(plan, tmp_path, contender, 30)
    tree = build_tree(plan, base=tmp_path)
    x = tree.roll_up(np.array(list(SMALL.values())))
    source = cg.seeded(7)
    _, _, engine = build(plan, tree, contender)
    for _ in range(2):
        engine.sample(x, rng=source)
    calls = 1 if contender.method == "conditioning" else 10
    drawn = np.concatenate([engine.sample(x, size=30 // calls, rng=source) for _ in range(calls)])
    error = drawn - x
    for level in found.levels:
        here = np.abs(error[:, tree.level == plan.level_names.index(level.level)])
        assert level.nodes == here.shape[1]
        assert level.l1 == pytest.approx(here.mean())
        assert level.l1_error == pytest.approx(here.mean(axis=1).std(ddof=1) / np.sqrt(30))
        assert level.l2 == pytest.approx(np.sqrt((here.astype(float) ** 2).mean()))
        exact = np.quantile(here, QUANTILES, method="inverted_cdf")
        assert level.quantiles == tuple(exact.tolist())
    for size in found.sizes:
        depth = plan.level_names.index(size.level)
        nodes = np.flatnonzero((tree.level == depth) & (x >= size.low) & (x <= size.high))
        assert size.nodes == nodes.size
        assert size.l1 == pytest.approx(np.abs(error[:, nodes]).mean())
        assert size.bias == pytest.approx(error[:, nodes].mean())
    listed = [(s.level, s.low) for s in found.sizes]
    assert len(set(listed)) == len(listed)
    assert "root" not in {s.level for s in found.sizes}
