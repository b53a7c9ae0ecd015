"""`congenial ledger`: made once, and shown with what releases have spent."""

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


def test_spent_amounts_are_shown(plan, tmp_path, capsys):
    budget = ["--epsilon", "3", "--delta", "1e-6", "--neighbours", "substitute"]
    assert run(["ledger", "init", "book", *budget]) == 0
    assert run(["ledger", "init", "book", *budget]) == 2
    text = plan.read_text().replace("epsilon = 1.0", 'epsilon = 1.0\nledger = "book"')
    plan.write_text(text)
    assert run(["release", "plan.toml", "--out", "out", "--quiet"]) == 0
    capsys.readouterr()
    assert run(["ledger", "show", "book"]) == 0
    shown = capsys.readouterr().out
    assert "spent      epsilon 1 and" in shown
    assert "remaining  epsilon 2 and" in shown
