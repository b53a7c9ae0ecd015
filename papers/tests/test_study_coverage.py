"""The study of coverage: what it tallies, and what it finds."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest

from congenial.domain.tree import Tree
from congenial.errors import NumericalError
from congenial.randomness import seeded
from papers.studies import coverage, coverage_methods, inversion
from papers.studies.coverage_tallies import BATCH, tallies
from papers.studies.coverage_worlds import told
from papers.studies.sources import blocks, taxi


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
    made = {t.method: t for t in tallies(tree, x, 4.0, 300, seeded(3), inverted=True)}
    free = made["conditioning, adds up"]
    shares = free.covered[:, 1:4]  # classes that have leaves
    error = shares.mean(axis=1).std(ddof=1) / np.sqrt(len(shares))
    assert shares.mean() > 0.9 - 4.9 * error
    # margins are whole numbers, so that they cover somewhat more
    assert shares.mean() < 0.95
    assert abs(free.bias.mean()) < 0.2
    raw = made["measurements"]
    assert raw.covered[:, 1:4].mean() > 0.9
    flat, fitted = made["posterior, flat"], made["posterior, fitted"]
    assert fitted.error.mean() < made["L2, normal"].error.mean()
    assert flat.bias[:, 0].mean() > fitted.bias[:, 0].mean()
    assert all(len(tally.error) == 300 for tally in made.values())
    table = made["conditioning, ≥ 0, posterior"]
    assert table.error.mean() < free.error.mean()
    assert 0.86 < table.covered[:, -1].mean() < 0.99
    proved = made["conditioning, ≥ 0, inversion"].levels
    error = proved.std(axis=0, ddof=1) / np.sqrt(len(proved))
    assert (proved.mean(axis=0) > 0.9 - 4.9 * error).all()
    assert (made["conditioning, ≥ 0 too"].levels.mean(axis=0) < proved.mean(axis=0)).all()
    assert free.levels.shape == (300, 3)
    assert np.allclose(free.levels[:, -1], free.covered[:, -1])
    assert 0.89 < free.levels[:, 1].mean() < 0.96


@pytest.fixture(scope="module")
def study():
    return coverage.run(5, 0.004)


def test_the_study_says_what_it_found(study):
    tables = {table.name: table for table in study.tables}
    kinds = ("coverage", "held", "levels", "bias", "estimate")
    assert set(tables) == {f"{w}-{kind}" for w in ("zones", "blocks") for kind in kinds}
    for table in tables.values():
        assert len(set(table.column("method"))) == 9 + table.name.startswith("zones")
    top = dict(
        zip(tables["blocks-bias"].column("method"), tables["blocks-bias"].column("10"), strict=True)
    )
    assert abs(top["posterior, fitted"]) < abs(top["posterior, flat"])
    by_estimate = tables["blocks-estimate"]
    off = dict(zip(by_estimate.column("method"), np.array(by_estimate.rows)[:, 2:-1], strict=True))
    worst = {name: np.abs(row.astype(float)).max() for name, row in off.items()}
    # counts are what the estimates of a fitted prior say, and not what raw measurements do
    assert worst["posterior, fitted"] < worst["posterior, flat"] < worst["measurements"]
    assert any("error margins of rows" in finding for finding in study.findings)
    made = "of the 263 zones. Every method except inversion made 4 releases of the 6,097 blocks"
    assert any(made in finding for finding in study.findings)


def test_the_same_seed_gives_the_same_zones_on_any_number_of_threads():
    tree, x = taxi()
    heard: list[str] = []
    count = 2 * BATCH + 1
    alone = tallies(tree, x, 4.0, count, seeded(5))
    both = tallies(tree, x, 4.0, count, seeded(5), workers=2, notify=heard.append)
    for one, two in zip(alone, both, strict=True):
        assert one.method == two.method
        assert len(one.error) == count
        for field in fields(one)[1:]:
            np.testing.assert_array_equal(getattr(one, field.name), getattr(two, field.name))
    assert len(heard) == 1 + count
    assert heard[-1] == f"{count} of {count} replicates, 0 s left"
    # replicates differ within a batch and from batch to batch
    assert all(len(np.unique(tally.bias, axis=0)) == count for tally in alone)


def test_an_error_in_one_thread_ends_the_others(monkeypatch):
    tree, x = taxi()
    heard: list[str] = []

    def broken(*_):
        raise ZeroDivisionError

    monkeypatch.setattr(coverage_methods, "topdown", broken)
    with pytest.raises(ZeroDivisionError):
        tallies(tree, x, 4.0, 50 * BATCH, seeded(5), workers=2, notify=heard.append)
    assert len(heard) == 1


def test_the_study_of_inversion_has_it_on_blocks():
    study = inversion.run(5, 0.004)
    tables = {table.name: table for table in study.tables}
    assert len(tables) == 5
    by_level = tables["blocks-levels"]
    held = {row[0]: row[3:] for row in by_level.rows if row[2] == "coverage"}
    assert len(held) == 10
    assert min(held["conditioning, ≥ 0, inversion"][1:]) > 0.9
    assert any("Intervals by inversion cover" in finding for finding in study.findings)
    assert not any("refused" in finding for finding in study.findings)
    assert "made 4 releases (*replicates*) of the 6,097 blocks" in study.findings[1]


@pytest.mark.parametrize("times", [1, 4])
def test_an_inversion_that_is_refused_is_told(times, monkeypatch):
    asked, inverted = [], coverage_methods.inverted_intervals

    def refused(*arguments):
        asked.append(arguments)
        if len(asked) <= times:
            raise NumericalError("no.")
        return inverted(*arguments)

    monkeypatch.setattr(coverage_methods, "inverted_intervals", refused)
    tree, x = taxi()
    made = tallies(tree, x, 4.0, 4, seeded(5), inverted=True)
    text = told("zones", made)
    assert (made[-1].covered[:times, -1] == 1.0).all()
    assert "inf" not in text
    if times == 4:
        assert "Inversion is refused in every replicate, which counts as covered." in text
    else:
        assert "It is refused in 1 of the 4 replicates. These are left out here" in text
        kept = made[-1].levels[1:].mean(axis=0)
        assert f"cover {kept.min():.1%} to {kept.max():.1%} of the nodes" in text
