"""A release that is checked part by part has the verdict of one that is checked at once."""

from __future__ import annotations

import shutil
from contextlib import suppress

import numpy as np
import pytest

import congenial as cg
from congenial.errors import CongenialError, PlanError
from congenial.releases import directory as files
from congenial.verification import parts
from congenial.verification.verdict import verify
from support.city import make_city
from support.edited import change
from support.part_worlds import make_world
from support.parts import PARTED, copied, make, outcome, watched
from support.spoilt import spoil


@pytest.fixture
def ways(monkeypatch):
    """Return a list to which each reading of a release adds whether it was part by part."""
    return watched(monkeypatch)


@pytest.mark.parametrize("method", ["topdown", "imaging"])
@pytest.mark.parametrize("narrow", [False, True])
@pytest.mark.parametrize("seed", range(9))
def test_the_verdict_on_random_releases_is_that_at_once(
    seed, narrow, method, tmp_path, ways, monkeypatch
):
    rng = np.random.default_rng([seed, 2027])
    by_parts = 0
    for case in range(3):
        place = tmp_path / str(case)
        place.mkdir()
        level = make_world(place, rng, narrow=narrow, method=method)
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


@pytest.mark.parametrize("method", ["topdown", "imaging"])
@pytest.mark.parametrize("seed", range(12))
def test_one_altered_cell_fails_the_checks_that_fail_at_once(
    seed, method, tmp_path, ways, monkeypatch
):
    rng = np.random.default_rng([seed, 2028])
    while not any(ways):  # until a random release has parts
        shutil.rmtree(tmp_path / "out", ignore_errors=True)
        level = make_world(tmp_path, rng, method=method)
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
    """Return a release of the small city with its measurements."""
    make_city(tmp_path, **PARTED)
    make(tmp_path, simulate=3)
    return tmp_path / "out"


def test_rows_in_another_order_are_read_at_once(city, ways):
    for names in (files.TABLE, files.MEASUREMENTS):
        copied(city, "SELECT * FROM t ORDER BY level, zone DESC, borough", names=names)
    found = verify(city, parts="borough")
    assert ways == [False]
    # another pair of leaves comes first
    assert [check.name for check in found if not check.passed] == ["worst neighbours"]
    assert found == verify(city)


def test_a_csv_file_with_other_bytes_is_compared_line_by_line(city, ways, monkeypatch):
    monkeypatch.setattr(parts, "ROWS", 2)
    copied(city, "SELECT * FROM t")
    assert all(check.passed for check in verify(city, parts="borough"))
    lines = (city / files.CSV).read_text().splitlines()
    (city / files.CSV).write_text("\n".join([*lines, lines[-1], ""]))
    change(city, lambda stated: None)
    found = verify(city, parts="borough")
    assert [check.name for check in found if not check.passed] == ["CSV and Parquet"]
    assert ways == [True, True]


def test_a_row_that_is_missing_at_the_end_of_a_part_fails(city, ways):
    for names in (files.TABLE, files.MEASUREMENTS):
        copied(city, "SELECT * FROM t WHERE zone IS DISTINCT FROM '3'", names=names)
    found = verify(city, parts="borough")
    assert ways == [True]
    assert "domain" in {check.name for check in found if not check.passed}
    assert found == verify(city)


@pytest.mark.parametrize("names", [files.TABLE, files.MEASUREMENTS])
@pytest.mark.parametrize(
    "query", ["SELECT * FROM t UNION ALL SELECT * FROM t WHERE zone = '6'", "FROM t LIMIT 9"]
)
def test_a_row_too_many_or_too_few_in_one_table_fails(names, query, city, ways):
    copied(city, query, names=names)
    for level in ("borough", None):
        found = verify(city, parts=level)
        assert [check.name for check in found if not check.passed] == ["table"]


@pytest.mark.parametrize(
    ("changes", "level", "message"),
    [
        ({}, "zone", "parts is 'zone'; give 'borough', a level between"),
        ({"invariants": ""}, "borough", "invariants.nonnegative is false"),
    ],
)
def test_a_level_at_which_no_release_is_cut_is_refused(changes, level, message, tmp_path):
    make_city(tmp_path, **PARTED | changes)
    make(tmp_path, simulate=1)
    with pytest.raises(PlanError, match=message):
        verify(tmp_path / "out", parts=level)
    assert all(check.passed for check in verify(tmp_path / "out"))


def test_large_releases_are_read_in_parts_at_the_first_level_that_makes_them_small(
    tmp_path, ways, monkeypatch
):
    deep = {
        "data": 'source = "rows.csv"',
        "hierarchy": 'root = "r"\nlevels = ["a", "b", "c"]\ndomain = "data"\nnames_repeat = true',
        "privacy": 'neighbours = "substitute"\nepsilon = 1.0',
    }
    make_city(tmp_path, **PARTED | deep)
    paths = [f"{a},{b},{c}" for a in range(4) for b in range(10) for c in range(60)]
    (tmp_path / "rows.csv").write_text("\n".join(["a,b,c", *paths, ""]))
    make(tmp_path)
    cuts, chosen = [], parts._chosen

    def choosing(*args, **options):
        cuts.append(chosen(*args, **options))
        return cuts[-1]

    monkeypatch.setattr(parts, "_chosen", choosing)
    # 2,445 counts; 611 at and below each of a, 61 at and below each of b; down to b 45, and 120
    # that stand for those below
    for rows, level in ((1_223, None), (1_222, "a"), (611, "a"), (610, "b"), (1, "b")):
        cuts.clear()
        monkeypatch.setattr(parts, "ROWS", rows)
        assert all(check.passed for check in verify(tmp_path / "out"))
        assert [cut.level for cut in cuts] == ([] if level is None else [level])
    assert ways == [False, True, True, True, True]
