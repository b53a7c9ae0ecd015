"""`congenial verify`: 0 where every check passes, 1 where one fails."""

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


def test_a_changed_release_fails(plan, tmp_path, capsys):
    assert run(["release", "plan.toml", "--out", "out", "--quiet"]) == 0
    capsys.readouterr()
    assert run(["verify", "out", "--json"]) == 0
    found = told(capsys)["result"]
    assert found["passed"]
    assert all(check["passed"] for check in found["checks"])
    (tmp_path / "out" / "release.csv").write_text("level\n")
    assert run(["verify", "out"]) == 1
    text = capsys.readouterr().out
    assert "FAILED" in text
    assert "do not use this release" in text
