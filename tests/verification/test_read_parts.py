"""A release by imaging is verified part by part, with the verdict of one that is read at once."""

from __future__ import annotations

import errno

import pytest

import congenial as cg
from congenial.errors import ReleaseError
from congenial.releases import directory as files
from congenial.verification import parts
from congenial.verification.verdict import verify
from support.city import make_city
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
