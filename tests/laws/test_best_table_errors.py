"""Errors of best tables on real counts, beside those of imaging and TopDown of the same noise."""

from __future__ import annotations

import csv
import gzip
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import congenial as cg
from congenial.inference.best_table import best_table
from papers.studies import sources

TAXI = Path(__file__).parents[2] / "examples" / "taxi"


def zone_hours(every):
    """Taxi trips of a month by zone and hour of the day, of one zone in `every`."""
    counts: Counter[tuple[str, str]] = Counter()
    with gzip.open(TAXI / "zone_hour_counts_2022_02.csv.gz", "rt") as file:
        for row in csv.DictReader(file):
            counts[row["zone_id"], row["hour"]] += int(row["trips"])
    with (TAXI / "taxi_zone_lookup.csv").open(encoding="utf-8") as file:
        zones = {row["LocationID"]: row["Borough"] for row in csv.DictReader(file)}
    paths = [
        ("New York City", borough, zone, str(hour))
        for zone, borough in zones.items()
        if int(zone) <= 263 and int(zone) % every == 0
        for hour in range(24)
    ]
    tree = cg.Tree.from_paths(paths)
    return tree, tree.roll_up(np.array([counts[path[2], path[3]] for path in paths]))


def errors(tree, x, scale, seeds):
    """Mean absolute error by level below the root, shape (methods, seeds, levels)."""
    mechanism = cg.Additive(cg.DiscreteLaplace(scale), tree)
    known = cg.consistent(tree) & cg.nonnegative() & cg.exactly([0])
    best = best_table(mechanism, known)
    engines = (
        best,
        cg.image(mechanism, known, "l2", integer=True),
        cg.image(mechanism, known, "l1", integer=True),
        cg.imaging.topdown_image(mechanism, known),
    )
    found = np.empty((len(engines), len(seeds), tree.depth - 1))
    for s, seed in enumerate(seeds):
        y = best.measure(x, rng=cg.seeded(seed))
        for e, engine in enumerate(engines):
            off = np.abs(engine.apply(y, cg.seeded(seed)) - x)
            found[e, s] = [off[tree.level == level].mean() for level in range(1, tree.depth)]
    return found


@pytest.mark.parametrize(("scale", "every", "least"), [(5.0, 1, 0.08), (20.0, 5, 0.18)])
def test_errors_of_hours_are_smaller_and_those_of_no_level_larger(scale, every, least):
    """Hours by the share given; the levels above within three standard errors of the best other."""
    found = errors(*zone_hours(every), scale, range(3))
    apart = found[0] - found[1:].min(axis=0)
    assert apart[:, -1].mean() < -least * found[1:, :, -1].mean(axis=1).min()
    error = apart.std(axis=0, ddof=1) / np.sqrt(3.0)
    assert (apart.mean(axis=0) < 3.0 * error + 1e-9).all()


def test_errors_of_the_blocks_of_a_county_are_not_larger():
    found = errors(*sources.blocks("53049"), 10.0, range(3))
    apart = found[0] - found[1:].min(axis=0)
    error = apart.std(axis=0, ddof=1) / np.sqrt(3.0)
    assert (apart.mean(axis=0) < 3.0 * error + 1e-9).all()
