"""Completion in bash: commands, options, plans and releases, by the script that is printed."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from congenial.cli import command_line as cli
from congenial.cli.arguments import complete_plans, complete_releases
from congenial.cli.commands.completion import SHELLS

NOTHING = (None, None)
# Completes one line as readline would, and prints what is offered, one a line.
BASH = """
eval "$(congenial completion bash)"
compopt() {{ echo "compopt $*"; }}
COMP_WORDS=({words}) COMP_CWORD={at}
_congenial_completion congenial
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Return a working directory with plans, a release, and things that are neither."""
    monkeypatch.chdir(tmp_path)
    for name in ("plan.toml", "plain.csv", "other.toml", ".hidden.toml"):
        (tmp_path / name).touch()
    for name in ("plans", "release", "empty"):
        (tmp_path / name).mkdir()
    (tmp_path / "plans/inner.toml").touch()
    (tmp_path / "release/certificate.json").touch()
    return tmp_path


def values(found):
    """Return what is offered, by kind."""
    return [(item.type, item.value) for item in found]


def plain(*names):
    return [("plain", name) for name in names]


def test_plans_and_ways_to_more(place):
    assert values(complete_plans(*NOTHING, "")) == plain(
        *("other.toml", "plan.toml", "empty/", "plans/", "release/")
    )
    assert values(complete_plans(*NOTHING, "pla")) == plain("plan.toml", "plans/")
    assert values(complete_plans(*NOTHING, "./plans/")) == plain("./plans/inner.toml")
    assert values(complete_plans(*NOTHING, ".h")) == plain(".hidden.toml")
    absolute = f"{place}/plans/in"
    assert values(complete_plans(*NOTHING, absolute)) == plain(f"{place}/plans/inner.toml")


def test_the_shell_completes_what_we_cannot(place):
    assert values(complete_plans(*NOTHING, "emp")) == [("file", "emp")]
    assert values(complete_plans(*NOTHING, "nowhere/")) == []
    (place / "my plan.toml").touch()
    assert values(complete_plans(*NOTHING, "")) == [("file", "")]


def test_releases(place):
    assert values(complete_releases(*NOTHING, "")) == plain("release", "empty/", "plans/")
    assert values(complete_releases(*NOTHING, "rel")) == plain("release")
    assert values(complete_releases(*NOTHING, "e")) == [("dir", "e")]


@pytest.fixture
def bash(place):
    """Return a function that completes a line in bash and gives what is offered."""
    if shutil.which("bash") is None:
        pytest.skip("no bash here")
    tools = place / ".bin"
    tools.mkdir()
    command = tools / "congenial"
    command.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m congenial.cli "$@"\n')
    command.chmod(0o755)
    source = str(Path(cli.__file__).parents[2])
    env = os.environ | {"PATH": f"{tools}:{os.environ['PATH']}", "PYTHONPATH": source}

    def complete(*words):
        script = BASH.format(words=shlex.join(["congenial", *words]), at=len(words))
        done = subprocess.run(
            ["bash", "--norc", "-c", script],
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
            env=env,
        )
        assert done.stderr == ""
        return done.stdout.split()

    return complete


def test_bash_completes_commands_options_plans_and_releases(bash):
    assert bash("re") == ["release", "report"]
    assert bash("ledger", "") == ["init", "show"]
    assert bash("verify", "--") == ["--ledger", "--json", "--help"]
    assert bash("release", "pl") == ["plan.toml", "plans/"]
    assert bash("verify", "rel") == ["release"]
    assert bash("init", "p") == ["compopt", "-o", "default"]
    assert bash("init", "rows.csv", "--method", "to") == ["topdown"]


@pytest.mark.parametrize("shell", SHELLS)
def test_every_shell_gets_a_script(shell, capsys):
    assert cli.run(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert f"_CONGENIAL_COMPLETE={shell}_complete" in script
    assert cli.run(["completion", shell, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["result"]
    assert found == {"shell": shell, "script": script.rstrip("\n")}
