"""The command that compares methods."""

from __future__ import annotations

import re

import pytest

from congenial.cli import command_line as cli
from congenial.releases.directory import STAMP
from support.city import make_city


def run(*arguments):
    """Run the command line in this process and return its exit code."""
    return cli.run([str(argument) for argument in arguments])


def test_the_command(tmp_path, capsys):
    path = make_city(tmp_path)
    (tmp_path / "rows.csv").unlink()
    out = tmp_path / "out"
    assert run("compare", path, "--replicates", 4, "--total", 900, "--out", out) == 0
    said = capsys.readouterr()
    assert "made-up counts: 900 records, divided" in said.out
    assert "topdown" in said.out
    assert "Nothing was spent" in said.out
    assert STAMP not in said.out
    assert "Error" not in said.err
    page = (out / "comparison.md").read_text(encoding="utf-8")
    shown = re.search(r"`congenial (compare .*?)`", page)[1].split()
    assert shown[:4] == ["compare", "plan.toml", "--total", "900"]
    assert shown[4:] == ["--spread", "1.5", "--replicates", "4", "--seed", "1"]
    assert "earlier comparison" not in said.out
    assert run(*[path if a == "plan.toml" else a for a in shown], "--out", out) == 0
    again = capsys.readouterr().out
    numbers = [s for s in said.out.splitlines() if "±" in s]
    assert numbers
    assert numbers == [s for s in again.splitlines() if "±" in s]
    assert "in place of an earlier comparison." in again


def test_the_command_on_confidential_counts_needs_both_options(tmp_path, capsys):
    path = make_city(tmp_path)
    for given in (["--with-truth"], ["--simulate", 3]):
        assert run("compare", path, *given) == 2
        assert "go together" in capsys.readouterr().err.replace("\n", " ")
    assert run("compare", path, "--with-truth", "--simulate", 0, "--replicates", 2) == 0
    assert capsys.readouterr().out.startswith(STAMP)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--total", "5", "--public"], "--total and --public name different counts"),
        (["--public", "--simulate", "0", "--with-truth"], "--public and --simulate"),
        (["--simulate", "1", "--with-truth", "--seed", "2"], "leave out --seed"),
        (["--total", "0"], "'--total'"),
        (["--replicates", "1"], "'--replicates'"),
        (["--spread", "nan"], "'--spread'|spread is nan"),
        (["--delta", "0.5"], "'--delta'"),
        (["--counts", "none.csv"], "--counts is 'none.csv', and there is no such file"),
    ],
)
def test_wrong_usage_of_the_command_is_one_sentence(tmp_path, capsys, monkeypatch, given, message):
    monkeypatch.chdir(tmp_path)
    path = make_city(tmp_path)
    assert run("compare", path, *given) == 2
    said = capsys.readouterr()
    assert re.search(message, said.err)
    assert "Traceback" not in said.err
    assert said.out == ""
