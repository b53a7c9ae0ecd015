"""`congenial explain`: says what a release will do, and opens no row."""

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


def test_nothing_is_read_or_written(plan, tmp_path, capsys):
    (tmp_path / "rows.csv").unlink()
    before = sorted(path.name for path in tmp_path.iterdir())
    assert run(["explain", "plan.toml"]) == 0
    text = capsys.readouterr().out
    assert "Nothing was spent or written" in text
    assert run(["explain", "plan.toml", "--json"]) == 0
    assert told(capsys)["exit_code"] == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_a_total_or_public_counts_are_accepted(plan, tmp_path, capsys):
    assert run(["explain", "plan.toml", "--total", "77", "--json"]) == 0
    result = told(capsys)["result"]
    assert "made-up counts: 77 records, divided" in result["basis"]
    assert "give --total or --counts" in result["basis"]
    assert result["default_method"] == "posterior" and result["will_not_run"] == ""
    assert result["sizes"][0]["level"] == "borough"
    assert run(["explain", "plan.toml", "--counts", "nowhere.csv"]) == 2
    assert "nowhere.csv" in capsys.readouterr().err
    (tmp_path / "public.csv").write_text("borough,zone,count\nArden,1,5000\n")
    assert run(["explain", "plan.toml", "--counts", "public.csv"]) == 0
    assert "1,000 to 9,999" in capsys.readouterr().out
