"""`congenial release`: makes a release, a simulation, and nothing twice."""

from __future__ import annotations

import json

import pytest

from congenial.cli.command_line import run
from support.city import make_city


@pytest.fixture
def plan(tmp_path, monkeypatch):
    """Return the plan of a city, in the working directory."""
    monkeypatch.chdir(tmp_path)
    return make_city(tmp_path)


def told(capsys):
    """Return what a command printed as JSON."""
    return json.loads(capsys.readouterr().out)


def test_a_release_is_made_once(plan, tmp_path, capsys):
    assert run(["release", "plan.toml", "--out", "out", "--json"]) == 0
    found = told(capsys)
    assert (found["command"], found["exit_code"]) == ("release", 0)
    before = (tmp_path / "out" / "release.csv").read_bytes()
    assert run(["release", "plan.toml", "--out", "out"]) == 2
    assert "--overwrite" in capsys.readouterr().err
    assert (tmp_path / "out" / "release.csv").read_bytes() == before


def test_a_simulation_is_reproducible_and_says_that_it_protects_nobody(plan, tmp_path, capsys):
    for out in ("one", "same"):
        assert run(["release", "plan.toml", "--out", out, "--simulate", "5"]) == 0
    one, same = ((tmp_path / out / "release.csv").read_bytes() for out in ("one", "same"))
    assert one == same
    assert "simulat" in capsys.readouterr().out.casefold()
    assert json.loads((tmp_path / "one" / "certificate.json").read_text())["simulation"]


IMAGING = 'name = "imaging"'
MEASURED = 'publish = ["table", "measurements"]'


@pytest.mark.parametrize(
    ("sections", "missing", "dear"),
    [
        ({"method": IMAGING}, True, False),
        ({"method": IMAGING, "release": MEASURED}, False, False),
        ({"method": IMAGING, "invariants": 'publish_exactly = ["root"]'}, False, False),
        ({}, False, True),
        ({"invariants": 'publish_exactly = ["root"]'}, False, False),
    ],
)
def test_missing_intervals_and_the_cost_of_bounds_are_stated(
    tmp_path, monkeypatch, capsys, sections, missing, dear
):
    monkeypatch.chdir(tmp_path)
    make_city(tmp_path, **sections)
    assert run(["release", "plan.toml", "--out", "out", "--simulate", "1"]) == 0
    text = capsys.readouterr().out
    wanted = 'release.publish = ["table", "measurements"] has one for every count'
    assert (wanted in text) is missing
    assert ("Bounds multiply the cost of its noise by 1.77" in text) is dear
    rows = (tmp_path / "out" / "release.csv").read_text().splitlines()
    lower = rows[0].split(",").index("lower")
    assert any(row.split(",")[lower] == "" for row in rows[1:]) is missing


def test_a_release_with_intervals_for_leaves_only_says_so(plan, monkeypatch, capsys):
    from congenial.releases import intervals

    monkeypatch.setattr(intervals, "by_inversion", lambda *_: "inversion-takes-too-much")
    assert run(["release", "plan.toml", "--out", "out", "--simulate", "1"]) == 0
    assert "Only the lowest level and exact counts have an interval" in capsys.readouterr().out
