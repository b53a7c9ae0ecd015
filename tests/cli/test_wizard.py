"""The guesses of `init` about a file, and its questions."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from congenial.cli import command_line as cli
from congenial.plan.plan import read_plan
from support.city import ZONES, listing

MARK = "  # guessed, not asked"


ROWS = "hour,zone\n3,1\n4,2\n5,4\n5,6\n"


def run(*arguments):
    """Run the command line in this process and return its exit code."""
    return cli.run([str(argument) for argument in arguments])


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Return a working directory with rows and a lookup."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.csv").write_text(ROWS)
    lines = "".join(f"{zone},{borough}\n" for zone, borough in ZONES.items())
    (tmp_path / "zones.csv").write_text(f"zone_id,borough\n{lines}")
    return tmp_path


def refusal(capsys, *arguments):
    """Return the one sentence by which a command is refused."""
    capsys.readouterr()
    before = listing(Path())
    assert run("init", *arguments) == 2
    said = capsys.readouterr()
    last = said.err.strip().splitlines()[-1]
    assert last.startswith("Error: ")
    assert last.endswith(".")
    assert "Traceback" not in said.err
    assert said.out == ""
    assert listing(Path()) == before
    return last


def test_a_conversation(place):
    """In another process: a wrong answer repeats the question, and stdout has only the result."""
    answers = [
        "none.csv",
        "zones.csv",
        "",
        "zone",
        "9",
        "3, zone",
        "hour",
        "",
        "rows.csv",
        "",
        "City",
        "",
    ]
    answers += ["zone", "root", "perhaps", "yes", "0", "2", "", "", ""]
    command = [sys.executable, "-m", "congenial.cli", "init", "rows.csv", "--json"]
    done = subprocess.run(
        command,
        input="\n".join(answers) + "\n",
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    found = json.loads(done.stdout)["result"]
    assert found["next"] == "congenial explain plan.toml"
    assert found["columns"] == {"hour": "VARCHAR", "zone": "VARCHAR"}
    assert found["plan"]["hierarchy"]["levels"] == ["borough", "zone"]
    assert found["plan"]["invariants"]["publish_exactly"] == ["root"]
    assert found["plan"]["privacy"]["epsilon"] == 2.0
    for complaint in (
        "there is no such file; give another path (did you mean 'zones.csv'?).",
        "'9' is no column",
        "'hour' has no values",
        "the domain is 'rows.csv', which holds the confidential rows",
        "'zone' is the deepest level",
        "'perhaps' is not a valid boolean",
        "0.0 is not in the range 1e-06<=x<=16",
    ):
        assert complaint in done.stderr


def test_an_input_that_ends_early_names_the_open_question(place, capsys, monkeypatch):
    def ended(_):
        raise EOFError

    monkeypatch.setattr("click.termui.visible_prompt_func", ended)
    assert "--lookup" in refusal(capsys, "rows.csv")


@pytest.fixture
def unread(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.csv").write_text("zone,borough,age\n")
    return tmp_path


def test_guesses_are_listed_and_marked(unread, capsys):
    assert run("init", "rows.csv", "--yes", "--epsilon", 2, "--json") == 0
    said = capsys.readouterr()
    found = json.loads(said.out)["result"]["guessed"]
    assert found["levels"] == "borough, zone"
    assert (found["root"], found["neighbours"], found["lookup"]) == ("Total", "substitute", "")
    assert "epsilon" not in found
    first = said.err.splitlines()[0]
    assert first.startswith(
        "These answers are guesses: --levels 'borough, zone' (by the columns' names), "
    )
    assert "--root Total" in first and "--epsilon" not in first
    text = (unread / "plan.toml").read_text()
    marked = [line.partition(" = ")[0] for line in text.splitlines() if line.endswith(MARK)]
    assert marked == [
        *("root", "levels", "domain", "names_repeat", "neighbours"),
        *("publish_exactly", "nonnegative", "name"),
    ]
    assert read_plan("plan.toml").hierarchy.levels == ("borough", "zone")


def test_given_answers_are_not_guessed(unread, capsys):
    given = (
        *("--levels", "borough,zone", "--domain", "data", "--root", "City", "--lookup", ""),
        *("--attributes", ""),
        *("--neighbours", "substitute", "--publish-exactly", "", "--nonnegative", "yes"),
        *("--epsilon", "1", "--method", "imaging", "--ledger", "", "--names-repeat", "no"),
    )
    assert run("init", "rows.csv", "--yes", *given) == 0
    assert "Guessed" not in capsys.readouterr().err
    assert MARK not in (unread / "plan.toml").read_text()


def test_a_key_with_a_comma_in_its_name_is_offered_as_it_is(place):
    (place / "rows.csv").write_text('"zone, id",hour\n1,3\n2,4\n')
    (place / "zones.csv").write_text('"zone, id",borough\n1,north\n2,south\n')
    assert run("init", "rows.csv", "--yes", "--lookup", "zones.csv") == 0
    lookup = read_plan(place / "plan.toml").data.lookup
    assert lookup.key == lookup.on == "zone, id"


def test_a_column_with_the_name_of_a_count_may_be_the_weight(place):
    (place / "blocks.csv").write_text("block,people_count\n1,30\n2,40\n")
    asked = ("init", "blocks.csv", "--levels", "block", "--domain", "data", "--yes")
    assert run(*asked, "--weight", "people_count") == 0
    plan = read_plan(place / "plan.toml")
    assert plan.data.weight == "people_count"
    assert run(*asked, "--overwrite") == 0
    assert read_plan(place / "plan.toml").data.weight is None
