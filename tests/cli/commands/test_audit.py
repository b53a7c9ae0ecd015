"""`congenial audit`: tries a plan on made-up counts, the same way for the same seed."""

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


def test_an_honest_plan_passes_and_the_seed_decides(plan, tmp_path, capsys):
    (tmp_path / "rows.csv").unlink()  # no row is needed
    found = []
    for seed in ("1", "1", "2"):
        assert run(["audit", "plan.toml", "--draws", "300", "--seed", seed]) == 0
        found.append(capsys.readouterr().out)
    assert "No fault was found." in found[0]
    assert found[0] == found[1] != found[2]
