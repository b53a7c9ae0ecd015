"""The study of coverage: what it tallies, and what it finds."""

from __future__ import annotations

import numpy as np
import pytest

from congenial.randomness import seeded
from congenial.studies import coverage
from congenial.studies.coverage_methods import tallies
from congenial.studies.sources import blocks, taxi
from congenial.tree import Tree


def test_the_blocks_are_those_of_the_county_and_of_the_state():
    tree, x = blocks("53067")
    assert tree.leaves.size == 6097
    assert x[0] == 252_264
    assert tree.depth == 4
    whole, people = blocks()
    assert whole.leaves.size == 195_574
    assert people[0] == 6_724_540
    assert (people[whole.leaves] == 0).sum() == 76_800
    assert people[whole.find("53067")] == x[0]


def test_exact_margins_cover_and_those_of_less_noise_do_not():
    tree = Tree.from_parents([-1, 0, 0, 0, *[1, 2, 3] * 8])
    x = tree.roll_up(np.arange(24) ** 2)
    made = {t.method: t for t in tallies(tree, x, 4.0, 300, 100, seeded(3))}
    free = made["conditioning, adds up"]
    shares = free.covered[:, 1:4]  # classes that have leaves
    error = shares.mean(axis=1).std(ddof=1) / np.sqrt(len(shares))
    assert shares.mean() > 0.9 - 4.9 * error
    # margins are whole numbers, so that they cover somewhat more
    assert shares.mean() < 0.95
    assert abs(free.bias.mean()) < 0.2
    raw = made["measurements"]
    assert raw.covered[:, 1:4].mean() > 0.9
    assert len(raw.error) == 300
    flat, fitted = made["posterior, flat"], made["posterior, fitted"]
    assert fitted.error.mean() < made["L2, normal"].error.mean()
    assert flat.bias[:, 0].mean() > fitted.bias[:, 0].mean()
    assert len(flat.error) == 100
    table = made["conditioning, ≥ 0, posterior"]
    assert table.error.mean() < free.error.mean()
    assert 0.86 < table.covered[:, -1].mean() < 0.99


@pytest.fixture(scope="module")
def study():
    return coverage.run(5, 0.004)


def test_the_study_says_what_it_found(study):
    tables = {table.name: table for table in study.tables}
    kinds = ("coverage", "held", "bias", "estimate")
    assert set(tables) == {f"{w}-{kind}" for w in ("zones", "blocks") for kind in kinds}
    for table in tables.values():
        assert len(set(table.column("method"))) == 9
    top = dict(
        zip(tables["blocks-bias"].column("method"), tables["blocks-bias"].column("10"), strict=True)
    )
    assert abs(top["posterior, fitted"]) < abs(top["posterior, flat"])
    by_estimate = tables["blocks-estimate"]
    off = dict(zip(by_estimate.column("method"), np.array(by_estimate.rows)[:, 2:-1], strict=True))
    worst = {name: np.abs(row.astype(float)).max() for name, row in off.items()}
    # counts are what the estimates of a fitted prior say, and not what raw measurements do
    assert worst["posterior, fitted"] < worst["posterior, flat"] < worst["measurements"]
    assert any("exact margins hold" in finding for finding in study.findings)
    assert any("2 replicates" in finding for finding in study.findings)


def test_the_same_seed_gives_the_same_zones():
    tree, x = taxi()
    one, two = (tallies(tree, x, 4.0, 2, 1, seeded(5)) for _ in range(2))
    assert all(
        (a.bias == b.bias).all() and (a.width == b.width).all()
        for a, b in zip(one, two, strict=True)
    )
