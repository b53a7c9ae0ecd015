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


def test_a_simulation_is_the_same_again_and_says_that_it_protects_nobody(plan, tmp_path, capsys):
    for out in ("one", "same"):
        assert run(["release", "plan.toml", "--out", out, "--simulate", "5"]) == 0
    one, same = ((tmp_path / out / "release.csv").read_bytes() for out in ("one", "same"))
    assert one == same
    assert "simulat" in capsys.readouterr().out.casefold()
    assert json.loads((tmp_path / "one" / "certificate.json").read_text())["simulation"]
