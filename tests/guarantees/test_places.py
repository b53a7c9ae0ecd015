"""Where a release may be written, how deep it may be, and that refusals come before any debit."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from congenial.cli import command_line as cli
from congenial.data import counts as data
from congenial.errors import PlanError, ReleaseError
from congenial.plan.plan import parse_plan, read_plan
from congenial.releases.making import make_release as releasing
from congenial.releases.making.make_release import release
from congenial.verification.verdict import verify
from support.city import make_city


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Return the working directory, empty but for a plan in another, and a home of its own."""
    for name in ("here", "home", "plan"):
        (tmp_path / name).mkdir()
    make_city(tmp_path / "plan")
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return tmp_path / "here"


def make(out, here):
    """Release the city's plan."""
    place = here.parent / "plan"
    return release(read_plan(place / "plan.toml"), out, base=place)


@pytest.mark.parametrize(
    "out",
    [
        *("out", "out/", "./out", "sub/../out", "sub/.", "link/out", "~", "~user", "$HOME", "a*b"),
        *("a[b]", "with\nnewline", " lead", "trail ", "-dash", "--", "it's", '"', "\u202eabc"),
        *("\u00fcn\u00ef \u6771\u4eac", "x" * 255, "\u00e9" * 127, "\U0001f600" * 63, "%41", "a;b"),
    ],
)
def test_every_directory_name_works(out, here):
    (here / "sub").mkdir()
    (here / "link").symlink_to("sub")
    make(out, here)
    assert all(check.passed for check in verify(out))
    made = [path.parent for path in here.rglob("certificate.json")]
    assert [path.resolve() for path in made] == [Path(out).resolve()]
    assert not list(here.rglob("*.partial"))
    assert list((here.parent / "home").iterdir()) == []


def test_a_release_below_a_directory_that_is_called_like_home(here):
    (here / "~").mkdir()
    make("~/out", here)
    assert all(check.passed for check in verify("~/out"))
    assert list((here.parent / "home").iterdir()) == []


@pytest.mark.parametrize(
    ("out", "told"),
    [
        ("", "is no new name"),
        (".", "is no new name"),
        ("..", "is no new name"),
        ("/", "is no new name"),
        ("sub/..", "is no new name"),
        ("link", "stands where the release would go"),
        ("nowhere", "stands where the release would go"),
        ("loop", "stands where the release would go"),
        ("file", "stands where the release would go"),
        ("file/", "stands where the release would go"),
        ("file/x", "file is not a directory"),
        ("loop/x", "loop is not a directory"),
        ("nosuch/x", "nosuch does not exist"),
        ("/dev/null", "stands where the release would go"),
        ("x" * 256, "name too long"),
        ("\u00e9" * 128, "name too long"),
        ("y/" * 5000, "name too long"),
        (os.fsdecode(b"\xff\xfe"), "not in UTF-8"),
    ],
)
def test_other_places_are_refused_before_a_row_is_counted(out, told, here, monkeypatch, capsys):
    (here / "sub").mkdir()
    (here / "file").write_text("x")
    for name, target in {"link": "sub", "nowhere": "nothing", "loop": "loop"}.items():
        (here / name).symlink_to(target)
    before = sorted(here.iterdir())

    def fail(*_, **__):
        raise AssertionError("counted")

    monkeypatch.setattr(releasing, "_counted", fail)
    monkeypatch.setattr(releasing, "_debit", fail)
    with pytest.raises(ReleaseError, match=r"give|make") as caught:
        make(out, here)
    assert told in str(caught.value)
    assert cli.run(["release", str(here.parent / "plan" / "plan.toml"), "--out", out]) == 2
    assert "Traceback" not in capsys.readouterr().err
    assert sorted(here.iterdir()) == before


def test_a_name_with_a_nul_is_refused(here):
    with pytest.raises(ReleaseError, match="or has a NUL"):
        make("a\0b", here)


def test_a_directory_that_is_not_in_utf_8_is_not_read(here):
    make("out", here)
    name = os.fsdecode(b"\xff")
    os.rename("out", name)
    with pytest.raises(ReleaseError, match="not in UTF-8"):
        verify(name)


def deep(levels, place):
    """Write rows with as many columns, which branch at every tenth; return their plan."""
    columns = [f"c{i}" for i in range(levels)]
    lines = [
        ",".join(f"n{(row >> i // 10) % 2 if i % 10 == 0 else 0}" for i in range(levels))
        for row in range(40)
    ]
    (place / "rows.csv").write_text("\n".join([",".join(columns), *lines]) + "\n")
    return parse_plan(
        f'[data]\nsource = "rows.csv"\n[hierarchy]\nroot = "all"\nlevels = {columns}\n'
        'domain = "data"\nnames_repeat = true\n'
        '[privacy]\nneighbours = "substitute"\nepsilon = 1.0\n'
        '[invariants]\nnonnegative = true\npublish_exactly = ["root"]\n'
        '[method]\nname = "imaging"\n'
    )


def test_fifty_levels_are_released_and_verified(tmp_path):
    release(deep(50, tmp_path), tmp_path / "out", base=tmp_path)
    assert all(check.passed for check in verify(tmp_path / "out"))


def test_too_many_levels_are_refused(tmp_path):
    assert data.build_domain(deep(200, tmp_path), base=tmp_path).parents.size > 200
    with pytest.raises(PlanError, match=r"has 201 entries; .* from 1 to 200"):
        deep(201, tmp_path)
