"""The page of a release that is read part by part is that of one in memory, byte by byte."""

from __future__ import annotations

from contextlib import suppress
from functools import partial

import numpy as np
import pytest

import congenial as cg
from congenial.errors import CongenialError, InvariantError, PlanError
from congenial.preview.comparison.expected import NotSimulated
from congenial.report import page_counts, page_in_parts, side_files, write
from congenial.report.write import report
from congenial.verification import parts
from congenial.verification.verdict import read_and_check
from support.city import make_city
from support.part_worlds import make_world
from support.parts import PARTED, make


def pages(directory, out, level, monkeypatch):
    """Write the page of a release read by parts, and at once; return what each wrote."""
    made = []
    for name, way in (("parts", partial(read_and_check, parts=level)), ("whole", read_and_check)):
        folder = out / f"{name}-{level}"
        folder.mkdir()
        with monkeypatch.context() as patch:
            patch.setattr(write, "read_and_check", way)
            if name == "whole":
                patch.setattr(parts, "ROWS", 1_000_000)
            report(directory, folder / "page.html")
        paths = (path for path in folder.rglob("*") if path.is_file())
        made.append({path.relative_to(folder): path.read_bytes() for path in paths})
    return made


@pytest.mark.parametrize("narrow", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_pages_of_random_releases_are_those_at_once(seed, narrow, tmp_path, monkeypatch):
    rng = np.random.default_rng([seed, narrow, 2029])
    by_parts = 0
    for case in range(3):
        place = tmp_path / str(case)
        place.mkdir()
        make_world(place, rng, narrow=narrow)
        try:
            make(place, simulate=case, with_truth=bool(rng.random() < 0.5))
        except CongenialError:
            continue
        for level in cg.read_plan(place / "plan.toml").hierarchy.levels[:-1]:
            for key, numbers in (("MOST", (1, 12, 20_000)), ("MOST_BESIDE", (5, 40, 10**7))):
                monkeypatch.setattr(side_files, key, int(rng.choice(numbers)))
            monkeypatch.setattr(side_files, "EACH", int(rng.choice([1, 5, 4_000])))
            monkeypatch.setattr(page_counts, "AT_ONCE", int(rng.choice([1, 7, 1_000])))
            monkeypatch.setattr(parts, "ROWS", int(rng.choice([1, 3, 10, 1_000])))
            read = None
            with suppress(PlanError):  # the plan may have no parts of the level
                read = read_and_check(place / "out", parts=level)[1]
            if isinstance(read, parts.ReadInParts):
                by_parts += 1
                one, other = pages(place / "out", place, level, monkeypatch)
                assert one == other
    assert by_parts


@pytest.fixture
def city(tmp_path):
    """Return a release of the small city with its measurements."""
    zones = {zone: f"Borough {zone % 7}" for zone in range(1, 60)}
    make_city(tmp_path, zones=zones, trips=dict.fromkeys(zones, 9), **PARTED)
    make(tmp_path, simulate=3)
    return tmp_path / "out"


def test_words_of_distant_rows_are_made_some_at_a_time(city, tmp_path, monkeypatch):
    monkeypatch.setattr(page_in_parts, "_WORDS", 4)
    monkeypatch.setattr(parts, "ROWS", 20)
    one, other = pages(city, tmp_path, "borough", monkeypatch)
    assert one == other


def test_releases_that_cannot_be_simulated_have_the_reason(city, tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise InvariantError("too hard.")

    page = tmp_path / "page.html"
    monkeypatch.setattr(write, "read_and_check", partial(read_and_check, parts="borough"))
    monkeypatch.setattr(page_in_parts.TopDown, "move", refuse)
    report(city, page)
    assert "no release could be simulated: too hard." in page.read_text(encoding="utf-8")
    assert NotSimulated("too hard") == page_in_parts.not_simulated(InvariantError("too hard."))


def test_a_table_that_was_conditioned_in_parts_has_a_page_without_expected_errors(
    tmp_path, monkeypatch
):
    zones = {zone: f"Borough {zone % 7}" for zone in range(1, 60)}
    make_city(tmp_path, zones=zones, trips=dict.fromkeys(zones, 9), method='name = "conditioning"')
    make(tmp_path, simulate=3, parts="borough")
    monkeypatch.setattr(parts, "ROWS", 20)
    assert isinstance(read_and_check(tmp_path / "out")[1], parts.ReadInParts)
    page = report(tmp_path / "out", tmp_path / "page.html").read_text()
    assert "the table was conditioned in parts, and simulations need all of it" in page
    assert "the table was drawn in parts, and intervals need all of it" in page
