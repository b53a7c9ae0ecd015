"""A comparison as files."""

from __future__ import annotations

import json

import pytest

from congenial.cli import command_line as cli
from congenial.errors import (
    ReleaseError,
)
from congenial.exhibits import files as write_module
from congenial.plan.plan import read_plan
from congenial.preview.comparison import comparing as compare_module
from congenial.preview.comparison import pages as report
from congenial.preview.comparison.comparing import compare
from congenial.preview.comparison.methods import (
    WAYS,
)
from support.city import make_city

NAMES = [name for name, _, _ in WAYS]


def plan_at(place, **sections):
    """Return the plan of the small city, whose rows are not there."""
    plan = read_plan(make_city(place, **sections))
    (place / "rows.csv").unlink()
    return plan


def run(*arguments):
    """Run the command line in this process and return its exit code."""
    return cli.run([str(argument) for argument in arguments])


def test_the_same_seed_gives_the_same_files_except_times(tmp_path):
    plan = plan_at(tmp_path)
    one, two = (compare(plan, tmp_path, replicates=5, seed=3) for _ in "ab")
    assert report.as_json(one) == report.as_json(two)
    other = compare(plan, tmp_path, replicates=5, seed=4)
    assert report.as_json(one) != report.as_json(other)
    files = [report.write(c, tmp_path / n, command="c") for n, c in (("a", one), ("b", two))]
    differ = {p.name for p, q in zip(*files, strict=True) if p.read_bytes() != q.read_bytes()}
    assert differ <= {"comparison.md", "comparison-times.csv"}
    assert [p.name for p in files[0]] == [
        "comparison.md",
        "comparison.json",
        "comparison-methods.csv",
        "comparison-errors.csv",
        "comparison-bias.csv",
        "comparison-times.csv",
        "comparison-methods.png",
        "comparison-methods.svg",
    ]
    plain = json.loads(report.as_json(one))
    assert plain["format"] == 1
    assert plain["plan"]["privacy"]["epsilon"] == 1.0
    assert [r["contender"]["name"] for r in plain["results"]] == NAMES
    assert "seconds" not in plain["results"][0]
    page = files[0][0].read_text(encoding="utf-8")
    assert "| zone | 6 | topdown | discrete-laplace |" in page
    assert "## Time per release" in page


def test_unwritable_files_are_reported(tmp_path, capsys, monkeypatch):
    path = make_city(tmp_path)
    (tmp_path / "file").write_text("")
    found = compare(read_plan(path), tmp_path, replicates=2)
    with pytest.raises(ReleaseError, match="cannot be written"):
        report.write(found, tmp_path / "file", command="c")
    # all this is told before anything is drawn
    monkeypatch.setattr(compare_module, "simulate", None)
    for out in ("file", "file/new"):
        assert run("compare", path, "--out", tmp_path / out) == 2
        assert "cannot be written" in (said := capsys.readouterr()).err
        assert "'file' is no directory" in said.err.replace("\n", " ")
    monkeypatch.setattr(write_module.importlib.util, "find_spec", lambda _: None)
    assert run("compare", path, "--out", tmp_path / "new") == 2
    said = capsys.readouterr().err
    assert "a figure needs matplotlib" in said
    assert "pip install matplotlib" in said
    assert not (tmp_path / "new").exists()
