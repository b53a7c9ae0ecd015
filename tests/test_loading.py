"""Commands that compile kernels say so, and only where they compile."""

from __future__ import annotations

import pytest
from city import make_city

from congenial import compiled, files
from congenial.cli import run
from congenial.plan import read_plan
from congenial.release import release

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


def test_nothing_is_compiled_for_a_certificate_that_is_none(place, monkeypatch, capsys):
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
def test_nobody_waits_for_compiling_to_be_told_of_a_missing_file(
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
