"""`--json`: one object on stdout whatever happens, its keys those documented, no count in it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest

from congenial.cli import command_line as cli
from congenial.cli.answer import FORMAT, encoded, show_failure, wants_json
from congenial.errors import CongenialError
from support.city import TRIPS, make_city

PAGE = (Path(__file__).parents[2] / "docs" / "commands.md").read_text(encoding="utf-8")
ENVELOPE = ["format", "command", "exit_code", "error", "result"]


def run(*arguments):
    """Run the command line in this process and return its exit code."""
    return cli.run([str(argument) for argument in arguments])


def told(capsys, *arguments):
    """Run a command with --json; return its exit code, its object and what stderr says."""
    capsys.readouterr()
    code = run(*arguments, "--json")
    said = capsys.readouterr()
    lines = said.out.splitlines()
    assert len(lines) == 1, said.out
    found = json.loads(lines[0], parse_constant=lambda text: pytest.fail(f"{text} is no JSON"))
    assert list(found) == ENVELOPE
    assert (found["format"], found["exit_code"]) == (FORMAT, code)
    return code, found, said.err


def keys(command):
    """Return the keys of a command's result, as its section of the page on commands lists them."""
    section = PAGE.partition(f"## `congenial {command} ")[2].partition("\n## ")[0]
    return [c for c in re.findall(r"^\| `([^`]+)` \|", section, re.MULTILINE) if c[0] != "-"]


@pytest.fixture
def place(tmp_path):
    """Return a directory with a plan, a ledger and a simulated release."""
    plan = make_city(tmp_path)
    assert run("release", plan, "--out", tmp_path / "out", "--simulate", 1, "--quiet") == 0
    assert run("ledger", "init", tmp_path / "budget.sqlite", "--epsilon", "3") == 0
    return tmp_path


def test_release(place, capsys):
    text = (place / "plan.toml").read_text()
    text = text.replace("[privacy]", '[privacy]\nledger = "budget.sqlite"')
    (place / "plan.toml").write_text(text)
    code, found, err = told(capsys, "release", place / "plan.toml", "--out", place / "new")
    result = found["result"]
    assert (code, found["command"], found["error"], err) == (0, "release", None, "")
    assert list(result) == keys("release")
    assert " ".join(result["debit"]) == "entry dataset label cost remaining first adds_up"
    assert result["certificate"] == json.loads((place / "new/certificate.json").read_bytes())
    assert result["debit"]["remaining"]["epsilon"] == "2"
    assert result["stamp"] is None
    assert result["nodes"] == 10
    _, shown, _ = told(capsys, "ledger", "show", place / "budget.sqlite")
    assert shown["command"] == "ledger show"
    assert list(shown["result"]) == keys("ledger show")
    (dataset,) = shown["result"]["datasets"]
    assert " ".join(dataset) == "dataset label spent reserved remaining adds_up entries"
    (entry,) = dataset["entries"]
    assert " ".join(entry) == "entry release made cost state"
    assert (entry["state"], entry["release"]) == ("spent", "new")
    assert entry["entry"] == result["debit"]["entry"]


def test_a_simulation_says_so_and_shows_no_true_count(place, capsys):
    options = ("--simulate", 3, "--with-truth", "--quiet")
    _, found, err = told(capsys, "release", place / "plan.toml", "--out", place / "sim", *options)
    assert found["result"]["stamp"] == "SIMULATION: NOT PRIVATE"
    assert err == "SIMULATION: NOT PRIVATE\n"
    # the zones' counts are nowhere in the object, as numbers or as text
    whole = json.dumps(found["result"] | {"certificate": None})
    assert not any(f": {n}," in whole for n in TRIPS.values() if n)


def test_verify(place, capsys):
    code, found, _ = told(capsys, "verify", place / "out")
    assert (code, list(found["result"])) == (0, keys("verify"))
    assert found["result"]["passed"] is True
    assert all(
        list(c) == ["name", "passed", "text", "comparable"] for c in found["result"]["checks"]
    )
    with (place / "out/release.csv").open("a") as file:
        file.write("\n")
    code, found, _ = told(capsys, "verify", place / "out")
    assert (code, found["error"], found["result"]["passed"]) == (1, None, False)


def test_explain(place, capsys):
    _, found, _ = told(capsys, "explain", place / "plan.toml")
    result = found["result"]
    assert list(result) == keys("explain")
    certificate = json.loads((place / "out/certificate.json").read_bytes())
    for key in ("plan", "guarantee"):
        assert result[key] == certificate[key]
    assert result["worst_neighbours"] == certificate["guarantee"]["worst_neighbours"]
    assert [f["level"]["name"] for f in result["levels"]] == ["root", "borough", "zone"]


def test_audit(place, capsys):
    code, found, _ = told(capsys, "audit", place / "plan.toml", "--draws", 200)
    result = found["result"]
    assert (code, list(result)) == (0, keys("audit"))
    assert result["passed"] is True
    for finding in (*result["enumerated"], *result["drawn"]):
        assert " ".join(finding) == "check passed found stated pairs outputs text"


def test_compare(place, capsys):
    _, found, _ = told(
        capsys, "compare", place / "plan.toml", "--replicates", 4, "--out", place / "cmp"
    )
    result = found["result"]
    assert list(result) == keys("compare")
    written = json.loads((place / "cmp/comparison.json").read_bytes())
    for one in result["comparison"]["results"]:
        assert list(one.pop("seconds")) == ["first", "further"]
    assert {"format": 1} | result["comparison"] == written
    assert all(Path(file).is_file() for file in result["files"])


def test_report(place, capsys):
    _, found, _ = told(capsys, "report", place / "out")
    assert found["result"] == {"file": str(place / "out/report.html")}
    assert list(found["result"]) == keys("report")


def test_init(place, capsys):
    _, found, _ = told(capsys, "init", place / "rows.csv", "--yes", "--out", place / "new.toml")
    assert list(found["result"]) == keys("init")


def test_completion(capsys):
    _, found, _ = told(capsys, "completion", "bash")
    assert list(found["result"]) == keys("completion")


def test_ledger_init(tmp_path, capsys):
    _, found, _ = told(capsys, "ledger", "init", tmp_path / "b.sqlite", "--epsilon", "0.30")
    assert found["command"] == "ledger init"
    assert list(found["result"]) == keys("ledger init")
    assert found["result"]["budget"] == {"epsilon": "0.3", "delta": "1e-6"}


@pytest.mark.parametrize(
    ("arguments", "command", "kind", "code"),
    [
        (["release", "none.toml", "--out", "o"], "release", "PlanError", 2),
        (["release"], "release", "UsageError", 2),
        (["publish"], "", "UsageError", 2),
        ([], "", "UsageError", 2),
        (["ledger", "show", "none.sqlite"], "ledger show", "LedgerError", 2),
        (["verify", "none"], "verify", "ReleaseError", 2),
    ],
)
def test_errors_are_objects_too(tmp_path, capsys, monkeypatch, arguments, command, kind, code):
    monkeypatch.chdir(tmp_path)
    ended, found, err = told(capsys, *arguments)
    assert (ended, found["command"], found["error"]["kind"]) == (code, command, kind)
    assert found["result"] is None
    assert found["error"]["message"] in " ".join(err.split())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["release"], "Missing argument 'PLAN'; see congenial release --help."),
        (["explain", "--jsn", "p"], "No such option '--jsn' (did you mean '--json'?); see"),
        (["ledger", "shw"], "No such command 'shw' (did you mean 'show'?); see congenial ledger"),
        (["completion"], "one of bash, zsh, fish; see congenial completion --help."),
        (["explain", "one", "two\nlines"], "Got unexpected extra argument (two lines); see"),
        (["compare", "p", "--public", "--total", "3"], "name different counts; give one."),
    ],
)
def test_a_usage_error_is_one_sentence(tmp_path, capsys, monkeypatch, arguments, said):
    monkeypatch.chdir(tmp_path)
    assert cli.run(arguments) == 2
    out, err = capsys.readouterr()
    assert out == "" and said in err
    assert err.startswith("Error: ") and err.endswith(".\n") and err.count("\n") == 1


def test_an_interrupt_is_reported(tmp_path, capsys, monkeypatch):
    def interrupted(_):
        raise KeyboardInterrupt

    monkeypatch.setattr("congenial.plan.plan.read_plan", interrupted)
    code, found, _ = told(capsys, "explain", "plan.toml")
    assert (code, found["error"]["kind"]) == (130, "Interrupted")


def test_a_file_named_json_is_no_request():
    assert wants_json(["verify", "--json"])
    assert not wants_json(["verify", "--", "--json"])


def test_nan_and_infinity_become_null():
    odd = b"caf\xe9".decode("utf-8", "surrogateescape")
    found = json.loads(encoded({"a": Path(odd), "b": float("nan")}))
    assert found == {"a": "caf\\udce9", "b": None}
    with pytest.raises(NotImplementedError):
        encoded({"a": object})


def test_a_failure_with_bytes_that_are_no_text_is_printed(capfd):
    odd = b"caf\xe9".decode("utf-8", "surrogateescape")
    show_failure(CongenialError(odd), "x", as_json=True)
    assert json.loads(capfd.readouterr().out)["error"]["message"] == "caf\\udce9"


def test_what_remains_after_a_failure_is_said(capfd):
    show_failure(CongenialError("no room."), "x", ("It stays debited.",), as_json=True)
    found = capfd.readouterr()
    assert found.err == "Error: no room. It stays debited.\n"
    assert json.loads(found.out)["error"]["message"] == "no room. It stays debited."


def commands(group=cli.cli, above=()):
    """Yield every command that runs, with its path."""
    for name in group.list_commands(None):
        path, command = (*above, name), group.get_command(None, name)
        if isinstance(command, click.Group):
            yield from commands(command, path)
        else:
            yield path, command


@pytest.mark.parametrize(("path", "command"), list(commands()), ids=str)
def test_every_command_has_the_option(path, command):
    assert "--json" in [name for option in command.params for name in option.opts]


def test_stdout_of_a_process_of_its_own_in_any_encoding(tmp_path):
    make_city(tmp_path, hierarchy='root = "Città"\nlevels = ["borough", "zone"]\ndomain = "lookup"')
    done = subprocess.run(
        [sys.executable, "-m", "congenial.cli", "explain", str(tmp_path / "plan.toml"), "--json"],
        capture_output=True,
        timeout=120,
        check=True,
        env={"PYTHONIOENCODING": "ascii", "PYTHONPATH": str(Path(cli.__file__).parents[2])},
    )
    assert json.loads(done.stdout.decode("utf-8"))["result"]["plan"]["hierarchy"]["root"] == "Città"
