"""A release of moved counts is verified part by part, with the verdict of one read at once."""

from __future__ import annotations

import errno

import pytest

import congenial as cg
from congenial.errors import ReleaseError
from congenial.releases import directory as files
from congenial.verification import parts
from congenial.verification.verdict import verify
from support.city import make_city
from support.edited import change
from support.parts import copied, make, watched

IMAGED = {"method": 'name = "imaging"', "release": 'publish = ["table", "measurements"]'}


@pytest.fixture
def ways(monkeypatch):
    """Return a list to which each reading of a release adds whether it was part by part."""
    return watched(monkeypatch)


@pytest.fixture
def city(tmp_path):
    """Return a release of the small city by imaging, with its measurements."""
    make_city(tmp_path, **IMAGED)
    make(tmp_path, simulate=3)
    return tmp_path / "out"


def shifted(directory, table, column, steps):
    """Add numbers to a column of zones in both files of a table."""
    cases = " ".join(f"WHEN zone = '{zone}' THEN {by}" for zone, by in steps.items())
    query = f"SELECT * REPLACE ({column} + CASE {cases} ELSE 0 END AS {column}) FROM t"
    copied(directory, query, names=table)


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


def test_a_full_disk_of_temporary_files_is_named(city, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(parts.PartValues, "keep", full)
    with pytest.raises(ReleaseError, match="is full; free space there"):
        verify(city, parts="borough")


@pytest.fixture(params=["l1", "l2"])
def best(request, tmp_path):
    """Return a release of the small city by the posterior, with its measurements."""
    make_city(tmp_path, **IMAGED | {"method": f'name = "posterior"\nloss = "{request.param}"'})
    make(tmp_path, simulate=3)
    return tmp_path / "out"


def test_a_table_of_larger_expected_error_is_found_in_parts(best, ways):
    assert failing(best, "borough") == []
    rows = cg.read_release(best).to_pandas().dropna(subset="zone")
    of_one = rows[rows["borough"] == rows["borough"].iloc[0]].sort_values("value")["zone"]
    shifted(best, files.TABLE, "value", {of_one.iloc[-1]: -6, of_one.iloc[0]: 6})
    assert "table from measurements" in failing(best, "borough")
    assert "prior" not in failing(best, "borough")
    assert failing(best) == failing(best, "borough")
    assert ways[:3] == [True, True, True]


def test_measurements_of_another_part_give_another_prior(best, ways):
    zones = list(cg.read_release(best).to_pandas()["zone"].dropna())
    shifted(best, files.MEASUREMENTS, "measurement", {zones[0]: 60, zones[-1]: 30})
    assert "prior" in failing(best, "borough")
    assert verify(best, parts="borough") == verify(best)


def test_a_measurement_of_any_size_fails_a_check(best):
    zones = list(cg.read_release(best).to_pandas()["zone"].dropna())
    shifted(best, files.MEASUREMENTS, "measurement", {zones[0]: 10**12})
    assert {"prior", "table from measurements"} <= set(failing(best, "borough"))
    assert verify(best, parts="borough") == verify(best)


def test_a_prior_that_does_not_fit_the_plan_is_told_at_once(best, ways):
    change(best, lambda stated: stated["prior"][0].update(alpha=0.0))
    assert verify(best, parts="borough") == verify(best)
    assert ways == [False, False]
    assert "prior" in failing(best)
