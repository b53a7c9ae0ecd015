"""Exit code 1 means that a check failed, and nothing else does."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from congenial.cli import command_line as cli
from congenial.releases import directory as files
from support.city import make_city

FULL = Path("/dev/full")
OURS = [sys.executable, "-m", "congenial.cli"]


def end(*command, **options):
    """Run a program and return its exit code and what it said on stderr."""
    options = {"stdout": subprocess.PIPE} | options
    ended = subprocess.run(
        [*map(str, command)], stderr=subprocess.PIPE, text=True, check=False, timeout=120, **options
    )
    return ended.returncode, ended.stderr


def break_in(error):
    """Return a program that runs the command line with something broken in it."""
    return (
        "import sys\nfrom congenial.cli import command_line, main\n"
        f"def fail(*a, **k): raise {error}\n"
        "command_line.cli.main = fail\nsys.argv = ['congenial', 'verify', 'x']\nmain()"
    )


@pytest.mark.skipif(not FULL.exists(), reason="no device that is always full")
def test_a_full_device_behind_stdout(tmp_path):
    with FULL.open("w", encoding="utf-8") as full:
        code, said = end(*OURS, "explain", make_city(tmp_path), stdout=full)
    assert (code, said.count("\n")) == (3, 1)
    assert "stdout cannot be written" in said


def test_a_reader_that_goes_away(tmp_path):
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as gone:
        code, said = end(*OURS, "explain", make_city(tmp_path), stdout=gone)
    assert (code, said) == (3, "")


def test_no_stdout_at_all(tmp_path):
    command = " ".join([*OURS, "explain", str(make_city(tmp_path)), ">&-"])
    assert end("sh", "-c", command) == (0, "")


@pytest.mark.skipif(not FULL.exists(), reason="no device that is always full")
def test_a_full_device_behind_stderr():
    command = " ".join([*OURS, "verify", "nowhere", "2>/dev/full"])
    assert end("sh", "-c", command) == (3, "")


def test_a_bug_shows_its_traceback():
    code, said = end(sys.executable, "-c", break_in("ValueError('x')"))
    assert code == 70
    assert "Traceback" in said
    assert said.endswith("ValueError: x\nThis is a bug in congenial; please report it.\n")


def test_lack_of_memory_is_reported_in_one_sentence():
    code, said = end(sys.executable, "-c", break_in("MemoryError"))
    assert (code, said.count("\n")) == (2, 1)
    assert said.startswith("Error: this needs more memory")


@pytest.mark.parametrize(
    "arguments",
    [
        *([name] for name in cli.command_names() if name != "completion"),
        *([name, "nowhere"] for name in cli.command_names() if name != "completion"),
        *([name, "--nosuch"] for name in cli.command_names()),
        ["nosuch"],
        ["release", "plan.toml", "--out"],
        ["release", "plan.toml", "--out", "out", "--simulate", "x"],
        ["audit", "plan.toml", "--seed", "x"],
        ["verify", "plan.toml"],
        ["report", "."],
        ["ledger", "init", "plan.toml", "--epsilon", "1"],
        ["ledger", "show", "plan.toml"],
    ],
    ids=" ".join,
)
def test_mistakes_of_use_exit_2(arguments, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    make_city(tmp_path)
    assert cli.run(arguments) == 2
    assert "Traceback" not in capsys.readouterr().err


def test_a_failed_check_exits_1(tmp_path):
    assert cli.run(["release", str(make_city(tmp_path)), "--out", str(tmp_path / "out")]) == 0
    (tmp_path / "out" / files.CSV).unlink()
    assert cli.run(["verify", str(tmp_path / "out")]) == 1
