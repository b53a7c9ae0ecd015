"""A release by imaging is verified part by part, with the verdict of one that is read at once."""

from __future__ import annotations

import shutil
from contextlib import suppress

import duckdb
import numpy as np
import pytest

import congenial as cg
from congenial.errors import CongenialError, PlanError
from congenial.releases import directory as files
from congenial.verification import parts, verdict
from congenial.verification.verdict import verify
from support.city import make_city
from support.edited import change
from support.part_worlds import make_world
from support.parts import make
from support.spoilt import spoil

IMAGED = {"method": 'name = "imaging"', "release": 'publish = ["table", "measurements"]'}


@pytest.fixture
def ways(monkeypatch):
    """Return a list to which each reading of a release adds whether it was part by part."""
    seen, read = [], parts.read_in_parts

    def reading(*args):
        found = read(*args)
        seen.append(found is not None)
        return found

    monkeypatch.setattr(verdict, "read_in_parts", reading)
    return seen


def outcome(directory, level):
    """Return the verdict on a release, None if its plan has no parts of the level."""
    try:
        return verify(directory, parts=level)
    except PlanError:
        return None


@pytest.mark.parametrize("seed", range(12))
def test_the_verdict_on_random_images_is_that_at_once(seed, tmp_path, ways, monkeypatch):
    rng = np.random.default_rng([seed, 2041])
    by_parts = 0
    for case in range(3):
        place = tmp_path / str(case)
        place.mkdir()
        level = make_world(place, rng, narrow=bool(seed % 3 == 2), method="imaging")
        cut = level if rng.random() < 0.5 else None
        try:
            make(place, simulate=case, with_truth=True, parts=cut)
        except CongenialError:
            continue
        whole = verify(place / "out")
        assert all(check.passed for check in whole)
        for each in cg.read_plan(place / "plan.toml").hierarchy.levels[:-1]:
            monkeypatch.setattr(parts, "ROWS", int(rng.choice([1, 3, 10, 1000])))
            assert outcome(place / "out", each) in (whole, None)
            by_parts += bool(ways[-1])
    assert by_parts


@pytest.mark.parametrize("seed", range(12))
def test_one_altered_cell_fails_the_checks_that_fail_at_once(seed, tmp_path, ways, monkeypatch):
    rng = np.random.default_rng([seed, 2042])
    while not any(ways):  # until a random release has parts
        shutil.rmtree(tmp_path / "out", ignore_errors=True)
        level = make_world(tmp_path, rng, method="imaging")
        with suppress(CongenialError):
            make(tmp_path, simulate=seed, with_truth=bool(rng.random() < 0.5))
            verify(tmp_path / "out", parts=level)
    for _ in range(16):
        spoilt = shutil.copytree(tmp_path / "out", tmp_path / "spoilt")
        what = spoil(spoilt, rng)
        monkeypatch.setattr(parts, "ROWS", int(rng.choice([1, 5, 1000])))
        assert outcome(spoilt, level) in (verify(spoilt), None), what
        shutil.rmtree(spoilt)


@pytest.fixture
def city(tmp_path):
    """Return a release of the small city by imaging, with its measurements."""
    make_city(tmp_path, **IMAGED)
    make(tmp_path, simulate=3)
    return tmp_path / "out"


def shifted(directory, table, column, steps):
    """Add numbers to a column of zones in both files of a table, and state the new files."""
    csv, parquet = (directory / name for name in table)
    cases = " ".join(f"WHEN zone = '{zone}' THEN {by}" for zone, by in steps.items())
    query = f"SELECT * REPLACE ({column} + CASE {cases} ELSE 0 END AS {column}) FROM t"
    with duckdb.connect(":memory:", config={"threads": 1}) as connection:
        connection.execute(f"CREATE TABLE t AS SELECT * FROM '{parquet}'")
        connection.execute(f"COPY ({query}) TO '{parquet}' (FORMAT parquet)")
        connection.execute(f"COPY ({query}) TO '{csv}' (FORMAT csv, HEADER)")
    change(directory, lambda stated: None)


def failing(directory, level=None):
    return [check.name for check in verify(directory, parts=level) if not check.passed]


def test_measurements_of_another_part_change_the_closest_counts(city, ways):
    zones = list(cg.read_release(city).to_pandas()["zone"].dropna())
    shifted(city, files.MEASUREMENTS, "measurement", {zones[0]: 60})
    whole = verify(city)
    assert failing(city, "borough") == [check.name for check in whole if not check.passed]
    assert "table from measurements" in failing(city, "borough")
    assert verify(city, parts="borough") == whole
    assert ways == [False, True, True, True]


def test_an_image_that_reads_as_impossible_is_read_at_once(city, ways, monkeypatch):
    monkeypatch.setattr(parts.ReadParts, "follow", lambda self, counts: None)
    assert verify(city, parts="borough") == verify(city)
    assert ways == [False, False]
