"""Completion in bash: commands, options and files, by the script that is printed."""

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
from congenial.cli.commands.completion import SHELLS

# Completes one line as readline would, and prints what is offered, one a line.
BASH = """
eval "$(congenial completion bash)"
compopt() {{ echo "compopt $*"; }}
COMP_WORDS=({words}) COMP_CWORD={at}
_congenial_completion congenial
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


@pytest.fixture
def bash(tmp_path, monkeypatch):
    """Return a function that completes a line in bash and gives what is offered."""
    if shutil.which("bash") is None:
        pytest.skip("no bash here")
    monkeypatch.chdir(tmp_path)
    tools = tmp_path / ".bin"
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


def test_bash_completes_commands_options_and_files(bash):
    assert bash("re") == ["release", "report"]
    assert bash("ledger", "") == ["init", "show"]
    assert bash("verify", "--") == ["--ledger", "--json", "--help"]
    for command in ("release", "verify", "init"):
        assert bash(command, "p") == ["compopt", "-o", "default"]  # files, by the shell itself
    assert bash("init", "rows.csv", "--method", "to") == ["topdown"]


@pytest.mark.parametrize("shell", SHELLS)
def test_every_shell_gets_a_script(shell, capsys):
    assert cli.run(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert f"_CONGENIAL_COMPLETE={shell}_complete" in script
    assert cli.run(["completion", shell, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["result"]
    assert found == {"shell": shell, "script": script.rstrip("\n")}
