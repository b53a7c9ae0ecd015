"""Commands that compile kernels say so, and only where they compile; progress needs a terminal."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import congenial
from congenial.cli import compiled
from congenial.cli.command_line import run
from congenial.cli.loading import progress
from congenial.plan.plan import read_plan
from congenial.releases import directory as files
from congenial.releases.making.make_release import release
from support.city import make_city

NOTICE = "Compiling kernels for this machine, once"


@pytest.fixture
def place(tmp_path):
    release(read_plan(make_city(tmp_path)), tmp_path / "release", base=tmp_path, simulate=1)
    return tmp_path / "release"


@pytest.mark.parametrize("command", ["verify", "report"])
@pytest.mark.parametrize("missing", [True, False])
def test_commands_that_compile_say_so(command, missing, place, monkeypatch, capsys):
    compiled_for = []
    monkeypatch.setattr(compiled, "is_missing", lambda method: missing)
    monkeypatch.setattr(compiled, "compile_kernels", compiled_for.append)
    assert run([command, str(place)]) == 0
    assert (NOTICE in capsys.readouterr().err) == missing
    assert compiled_for == ["conditioning"] * missing


def test_nothing_is_compiled_for_an_invalid_certificate(place, monkeypatch, capsys):
    compiled_for = []
    monkeypatch.setattr(compiled, "is_missing", lambda method: True)
    monkeypatch.setattr(compiled, "compile_kernels", compiled_for.append)
    (place / files.CERTIFICATE).write_text("{}")
    assert run(["verify", str(place)]) != 0
    assert NOTICE not in capsys.readouterr().err
    assert compiled_for == []


@pytest.mark.parametrize(
    ("command", "gone", "says"),
    [
        (["release"], "rows.csv", "data.source"),
        (["compare", "--public"], "rows.csv", "data.source"),
        (["compare", "--counts", "none.csv"], None, "--counts is 'none.csv'"),
        (["explain"], "zones.csv", "data.lookup.source"),
        (["audit"], "zones.csv", "data.lookup.source"),
    ],
)
def test_a_missing_file_is_reported_before_compiling(
    command, gone, says, tmp_path, monkeypatch, capsys
):
    plan = make_city(tmp_path)
    compiled_for = []
    monkeypatch.setattr(compiled, "is_missing", lambda method: True)
    monkeypatch.setattr(compiled, "compile_kernels", compiled_for.append)
    if gone is not None:
        (tmp_path / gone).unlink()
    out = ["--out", str(tmp_path / "out")] if command[0] == "release" else []
    assert run([*command, str(plan), *out]) == 2
    told = capsys.readouterr().err
    assert says in told and "no such file" in told
    assert NOTICE not in told
    assert compiled_for == []
    assert not (tmp_path / "out").exists()


@pytest.fixture
def read_only(tmp_path):
    """A copy of the package in which kernels cannot be cached, even by root."""
    package = Path(congenial.__file__).parent
    skip = shutil.ignore_patterns("__pycache__")
    shutil.copytree(package, tmp_path / "site" / "congenial", ignore=skip)
    for folder in ("numerics", "network", "projection", "chains"):
        (tmp_path / "site" / "congenial" / "kernels" / folder / "__pycache__").touch()
    return tmp_path / "site"


ADDS_UP = """
import importlib, pkgutil
import numpy as np
import congenial.kernels
from congenial.cli import compiled
from congenial.cli import loading
from congenial.kernels.numerics.trees import add_up

for module in pkgutil.walk_packages(congenial.kernels.__path__, "congenial.kernels."):
    importlib.import_module(module.name)
total = np.array([0, 1, 2])
add_up(np.array([-1, 0, 0]), np.zeros(0, np.int64), total)
print(total[0], compiled.cache_directory(), compiled.is_missing("conditioning"))
compiled.compile_kernels = lambda method: print("compiles all")
loading.compile_once("conditioning", quiet=False)
"""


def run_there(site, **env):
    """Run `ADDS_UP` with that package, no bytecode written; return the lines of both outputs."""
    kept = {k: v for k, v in os.environ.items() if k not in {"NUMBA_CACHE_DIR", "XDG_CACHE_HOME"}}
    done = subprocess.run(
        [sys.executable, "-B", "-c", ADDS_UP],
        capture_output=True,
        text=True,
        check=True,
        env={**kept, "PYTHONPATH": str(site), **env},
    )
    return done.stdout.splitlines(), done.stderr.splitlines()


def test_kernels_run_without_a_writable_cache(read_only):
    said, told = run_there(read_only, HOME=os.devnull)
    assert said == ["3 None True"]
    assert len(told) == 1
    assert "for every command" in told[0] and "NUMBA_CACHE_DIR" in told[0]


@pytest.mark.parametrize("name", ["HOME", "NUMBA_CACHE_DIR"])
def test_kernels_in_another_cache_are_found(name, read_only, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    env = {"HOME": os.devnull, name: str(elsewhere)}
    said, told = run_there(read_only, **env)
    place = Path(said[0].split()[1])
    assert elsewhere in (place, *place.parents)
    assert said == [f"3 {place} True", "compiles all"]
    assert len(told) == 1 and NOTICE in told[0]
    kernel = next(place.rglob("trees.add_up-*.nbi")).name
    for listed in {name for share in compiled.SHARES for name, _ in share}:
        (place / kernel.replace("trees.add_up", compiled.in_cache(listed))).touch()
    assert run_there(read_only, **env) == ([f"3 {place} False"], [])


def test_kernels_of_another_python_are_missing(read_only, tmp_path):
    env = {"HOME": os.devnull, "NUMBA_CACHE_DIR": str(tmp_path)}
    said, _ = run_there(read_only, **env)
    place = Path(said[0].split()[1])
    for listed in {name for share in compiled.SHARES for name, _ in share}:
        (place / f"{compiled.in_cache(listed)}-1.py399.nbi").touch()
    assert run_there(read_only, **env) == (said, [f"{NOTICE}; this takes up to a minute."])


@pytest.mark.parametrize("quiet", [True, False])
def test_nothing_is_shown_without_a_terminal(quiet, capsys):
    with progress(quiet=quiet, patience=0.0) as step:
        step("reading")
    assert capsys.readouterr() == ("", "")


def test_a_step_is_shown_on_a_terminal_and_gone_in_the_end(capsys, monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    with progress(patience=60.0) as step:
        step("reading")  # done before anybody lost patience
    assert capsys.readouterr().out == ""
