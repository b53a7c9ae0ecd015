"""`congenial report`: writes one page beside the release."""

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


def test_a_page_is_written_only_for_a_release(plan, tmp_path, capsys):
    assert run(["release", "plan.toml", "--out", "out", "--quiet"]) == 0
    capsys.readouterr()
    assert run(["report", "out", "--json"]) == 0
    assert told(capsys)["exit_code"] == 0
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert page.casefold().startswith("<!doctype html>")
    assert run(["report", "."]) == 2
