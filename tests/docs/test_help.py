"""What `--help` shows to somebody who sees congenial for the first time."""

from __future__ import annotations

import re
import shlex

import pytest

from congenial.cli import command_line as cli


def shown(capsys, *arguments):
    assert cli.run([*arguments, "--help"]) == 0
    return capsys.readouterr().out


def test_the_first_steps_are_commands_with_their_options(capsys):
    text = shown(capsys)
    steps = [
        re.split(" {2,}", line.strip())[0] for line in text.splitlines() if "  congenial" in line
    ]
    named = [shlex.split(step)[1:] for step in steps]
    assert [step[0] for step in named] == ["init", "explain", "release", "verify"]
    for name, *rest in named:
        told = shown(capsys, name)
        assert all(option in told for option in rest if option.startswith("--"))


@pytest.mark.parametrize("command", [[], ["ledger"]])
def test_no_line_of_a_list_of_commands_is_cut_off(capsys, command):
    assert "..." not in shown(capsys, *command).partition("\nCommands:\n")[2]


@pytest.mark.parametrize("command", cli.command_names())
def test_help_says_nothing_twice(capsys, command):
    text = " ".join(shown(capsys, command).split())
    assert "required. [required]" not in text
    assert not re.search(r"by default [\d.]+\. \[default", text)
