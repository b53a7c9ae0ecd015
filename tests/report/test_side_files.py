"""A large release: its page lists levels from the top, and every other count is in a script."""

from __future__ import annotations

import errno
import json
import re
from pathlib import Path

import numpy as np
import pytest

import congenial as cg
from congenial.report import side_files as module
from congenial.report.write import report
from support.city import make_city
from support.cross_tables import plan_of, random_rows, write_rows

EVIL = "</script><b>'"
ZONES = {zone: f"Borough {zone % 5}" if zone % 7 else EVIL for zone in range(1, 61)}


def data_of(page):
    text = page.read_text(encoding="utf-8")
    return json.loads(re.search(r'id="data">(.*?)</script>', text, re.DOTALL)[1])


def counts_of(found):
    keys = ("level", "value", "lower", "upper", "exact")
    return list(zip(*(found[key] for key in keys), strict=True))


def paths_of(found):
    """The path of every count that a page lists."""
    out = []
    for at, name in enumerate(found["name"]):
        above = found["parent"][at]
        out.append(f"{out[above]} / {name}" if above >= 0 else name)
    return out


def place_of(path, name):
    """The name of a count's place, without the values that it counts."""
    parts = [*path.split(" / "), *name.split("/")]
    return parts[-2 if "=" in parts[-1] else -1].lower()


@pytest.fixture(params=["tree", "table"])
def place(request, tmp_path):
    if request.param == "tree":
        plan = cg.read_plan(
            make_city(
                tmp_path,
                zones=ZONES,
                trips=dict.fromkeys(ZONES, 3),
                method='name = "imaging"',
                release='publish = ["table", "measurements"]',
            )
        )
    else:
        write_rows(tmp_path, random_rows(1))
        plan = plan_of(more='[release]\npublish = ["table", "measurements"]')
    cg.release(plan, tmp_path / "out", base=tmp_path, simulate=2)
    return tmp_path / "out"


def test_every_count_is_on_the_page_or_in_one_script(place, monkeypatch):
    whole = data_of(report(place, place.parent / "whole.html"))
    monkeypatch.setattr(module, "MOST", 12)
    monkeypatch.setattr(module, "EACH", 7)
    page = report(place)
    found, folder = data_of(page), place / "report-counts"
    assert "'strict-dynamic'" in page.read_text() and whole["more"] is None
    scripts = sorted(folder.iterdir(), key=lambda path: int(path.stem))
    assert len(scripts) == len(found["more"]["first"]) > 2
    assert found["more"]["folder"] == folder.name
    seen = dict(zip(paths_of(found), counts_of(found), strict=True))
    measured = dict(zip(paths_of(found), found["measured"], strict=True))
    names = []
    for number, script in enumerate(scripts):
        text = script.read_text(encoding="utf-8")
        assert not set("<>&") & set(text)
        part = json.loads(re.fullmatch(rf"congenial\({number},(.*)\);\n", text)[1])
        places = [place_of(*each) for each in zip(part["path"], part["name"], strict=True)]
        assert places[0] == found["more"]["first"][number]
        assert [name for name, times in part["place"] for _ in range(times)] == places
        assert len(part["place"]) == len({*places})
        both = zip(part["path"], part["name"], strict=True)
        paths = [f"{path} / {name}" if path else name for path, name in both]
        seen |= dict(zip(paths, counts_of(part), strict=True))
        measured |= dict(zip(paths, part["measured"], strict=True))
        names += places
    assert names == sorted(names) and len(names) == found["more"]["count"]
    assert seen == dict(zip(paths_of(whole), counts_of(whole), strict=True))
    assert measured == dict(zip(paths_of(whole), whole["measured"], strict=True))
    # the release is still whole, and another file there is still seen
    assert all(check.passed for check in cg.verify(place))
    assert not [path for path in place.iterdir() if path.name.startswith(".")]
    (folder / "mine.js").write_text("x")
    with pytest.raises(cg.errors.ReleaseError, match=r"report-counts/mine\.js"):
        report(place)
    failed = [check for check in cg.verify(place) if not check.passed]
    assert [check.name for check in failed] == ["files"]
    assert "report-counts/mine.js" in failed[0].text
    with pytest.raises(cg.errors.ReleaseError, match=r"holds 'report-counts/mine\.js'"):
        cg.release(found_plan(place), place, base=place.parent, overwrite=True)
    (folder / "mine.js").unlink()
    # a page that lists all counts leaves no script
    monkeypatch.undo()
    assert data_of(report(place))["more"] is None
    assert not folder.exists()


def found_plan(place):
    return cg.read_release(place).plan


def test_scripts_that_cannot_be_written_leave_those_that_are_there(place, monkeypatch):
    monkeypatch.setattr(module, "MOST", 12)
    page = report(place)
    before = {path: path.read_bytes() for path in [page, *(place / "report-counts").iterdir()]}
    written = Path.write_text

    def full(path, *given, **more):
        if path.name == "0.js":
            written(path, "half", encoding="utf-8")
            raise OSError(errno.ENOSPC, "No space left on device")
        return written(path, *given, **more)

    moved = Path.rename

    def interrupted(path, target):
        if path.name.endswith(".part"):
            raise KeyboardInterrupt
        return moved(path, target)

    monkeypatch.setattr(module, "EACH", 5)
    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", interrupted)
        with pytest.raises(KeyboardInterrupt):
            report(place)
    assert {path: path.read_bytes() for path in before} == before
    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(cg.errors.ReleaseError, match="no space left"):
        report(place)
    assert {path: path.read_bytes() for path in before} == before
    assert not [path for path in place.iterdir() if path.name.startswith(".")]


def test_levels_fill_the_page_and_then_the_side_files(monkeypatch):
    monkeypatch.setattr(module, "MOST", 10)
    monkeypatch.setattr(module, "MOST_BESIDE", 100)
    assert module.depths_of([1, 4, 5]) == module.Depths(2, 2)
    assert module.depths_of([1, 4, 6, 94, 200]) == module.Depths(1, 3)
    assert module.depths_of([1, 4, 6, 95, 200]) == module.Depths(1, 2)
    assert module.depths_of([1, 200]) == module.Depths(0, 0)
    assert module.depths_of([11, 90, 200]) == module.Depths(0, 1)


@pytest.mark.parametrize("most", [20, 1])
def test_levels_of_too_many_counts_are_left_to_the_files(most, place, monkeypatch):
    monkeypatch.setattr(module, "MOST", 6)
    monkeypatch.setattr(module, "MOST_BESIDE", most)
    page = report(place)
    found, sizes = data_of(page)["more"], np.bincount(cg.read_release(place).domain.level)
    where = module.depths_of(sizes.tolist())
    assert found["count"] == sizes[where.listed + 1 : where.beside + 1].sum() <= most
    assert found["left"] == [*range(where.beside + 1, sizes.size)] != []
    assert [*found["levels"]] == [str(depth) for depth in range(where.listed + 1, sizes.size)]
    text = page.read_text(encoding="utf-8")
    assert f"The {sizes[where.beside + 1 :].sum():,} counts of" in text
    assert ("To find one of the other" in text) is (where.beside > where.listed)
    scripts = place / "report-counts"
    if where.beside == where.listed:
        assert not scripts.exists()
    else:
        assert len([*scripts.iterdir()]) == len(found["first"]) == 1


def test_quantiles_say_how_many_counts_of_a_level_are_accurate_enough(place, monkeypatch):
    monkeypatch.setattr(module, "MOST", 12)
    page = report(place)
    read, found = cg.read_release(place), data_of(page)["more"]["levels"]
    ends = [read.rows.numbers(name) for name in ("lower", "upper")]
    reach = np.maximum(read.values - ends[0].values, ends[1].values - read.values)
    for depth, (shares, known) in found.items():
        here = (read.domain.level == int(depth)) & ends[0].known
        assert known == here.sum()
        for share in (0.0, 0.3, 1.0, 5.0):
            exact = (reach[here] <= share * np.abs(read.values[here])).mean()
            about = np.mean([s is not None and s <= share for s in shares])
            assert abs(about - exact) < 0.02 + 1.0 / known
