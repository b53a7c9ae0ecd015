"""The page on commands lists every command, option and exit code, and no other.

`tests/cli/test_answer.py` compares its keys with those that commands print.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import click
import pytest

from congenial.cli import answer
from congenial.cli import command_line as cli

PAGE = (Path(__file__).parents[2] / "docs" / "commands.md").read_text(encoding="utf-8")


def commands(group=cli.cli, above=()):
    """Yield every command that runs, with its name."""
    for name in group.list_commands(None):
        path, command = (*above, name), group.get_command(None, name)
        if isinstance(command, click.Group):
            yield from commands(command, path)
        else:
            yield " ".join(path), command


COMMANDS = dict(commands())


def sections(page):
    """Return the section of each command, by the command's name."""
    parts = re.split(r"^## `congenial ([a-z ]+) ([A-Z]+)`\n", page, flags=re.MULTILINE)
    return dict(zip(parts[1::3], zip(parts[2::3], parts[3::3], strict=True), strict=True))


SECTIONS = sections(PAGE)


def first_cells(text):
    """Return what is code in the first cell of each row of tables."""
    return re.findall(r"^\| `([^`]+)` \|", text, flags=re.MULTILINE)


def test_every_command_has_a_section_in_the_order_of_the_help():
    assert list(SECTIONS) == list(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_arguments_and_options(name):
    argument, text = SECTIONS[name]
    params = COMMANDS[name].params
    assert [
        p.make_metavar(click.Context(COMMANDS[name]))
        for p in params
        if isinstance(p, click.Argument)
    ] in ([argument], [f"{{{'|'.join(_choices(params[0]))}}}"])
    options = [o for p in params if isinstance(p, click.Option) for o in p.opts]
    assert sorted(c for c in first_cells(text) if c.startswith("--")) == sorted(options)


def _choices(param):
    return getattr(param.type, "choices", ())


def test_keys_of_the_object(capfd):
    text = PAGE.partition("## JSON")[2].partition("\n## ")[0]
    answer.show_failure(None, "", as_json=True)
    found = json.loads(capfd.readouterr().out)
    assert first_cells(text) == list(found)
    assert all(f"`{key}`" in text for key in found["error"])
    assert f"| `format` | {answer.FORMAT};" in text


def test_exit_codes():
    text = PAGE.partition("## Exit codes")[2].partition("\n## ")[0]
    codes = {
        int(n)
        for cell in re.findall(r"^\| ([\d, ]+) \|", text, re.MULTILINE)
        for n in cell.split(",")
    }
    known = {answer.DONE, answer.FAILED, answer.UNUSABLE, answer.UNPRINTED, answer.MISTAKE}
    known |= {answer.INTERRUPTED, 129, 143}
    assert codes == known
    assert all(re.search(rf"\b{code}\b", cli.EPILOGUE) for code in codes)


@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_of_commands_says_what_each_does(name):
    top = name.split()[0]
    assert 4 < len(cli.summary(top)) < 66
    assert cli.cli.get_command(None, top).name == top


def test_the_test_fails_for_a_missing_entry():
    assert "--colour" not in PAGE
    broken = PAGE.replace("| `--draws` |", "| `--colour` |")
    assert "--draws" not in first_cells(sections(broken)["audit"][1])
