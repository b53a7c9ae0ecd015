"""What `congenial init` takes without asking is told, and marked in the plan."""

from __future__ import annotations

import json

import pytest

from congenial.cli.command_line import run
from congenial.plan.plan import read_plan

MARK = "  # guessed, not asked"


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.csv").write_text("zone,borough,age\n")
    return tmp_path


def test_guesses_are_told_and_marked(place, capsys):
    assert run(["init", "rows.csv", "--yes", "--epsilon", "2", "--json"]) == 0
    said = capsys.readouterr()
    found = json.loads(said.out)["result"]["guessed"]
    assert found["levels"] == "borough, zone"
    assert (found["root"], found["neighbours"], found["lookup"]) == ("Total", "substitute", "")
    assert "epsilon" not in found
    first = said.err.splitlines()[0]
    assert first.startswith(
        "Guessed, not asked: --levels 'borough, zone' (by the columns' names), "
    )
    assert "--root Total" in first and "--epsilon" not in first
    text = (place / "plan.toml").read_text()
    marked = [line.partition(" = ")[0] for line in text.splitlines() if line.endswith(MARK)]
    assert marked == [
        *("root", "levels", "domain", "names_repeat", "neighbours"),
        *("publish_exactly", "nonnegative", "name"),
    ]
    assert read_plan("plan.toml").hierarchy.levels == ("borough", "zone")


def test_nothing_is_guessed_that_was_given(place, capsys):
    given = (
        *("--levels", "borough,zone", "--domain", "data", "--root", "City", "--lookup", ""),
        *("--neighbours", "substitute", "--publish-exactly", "", "--nonnegative", "yes"),
        *("--epsilon", "1", "--method", "imaging", "--ledger", "", "--names-repeat", "no"),
    )
    assert run(["init", "rows.csv", "--yes", *given]) == 0
    assert "Guessed" not in capsys.readouterr().err
    assert MARK not in (place / "plan.toml").read_text()


def test_a_name_that_breaks_lines_does_not_break_the_remark(place, capsys):
    (place / "rows.csv").write_text('"zo\tne"\n')
    assert run(["init", "rows.csv", "--yes"]) == 0
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2 and "\t" not in lines[0]
