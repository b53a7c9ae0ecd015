"""Examples in docstrings, which the reference shows, run and give what they show."""

from __future__ import annotations

import doctest
import importlib
import re
from pathlib import Path

import pytest

from congenial.plan.plan import read_plan
from congenial.releases.making.make_release import release
from support.city import make_city

SOURCE = Path(__file__).parents[2] / "src"
MODULES = [
    ".".join(path.relative_to(SOURCE).with_suffix("").parts)
    for path in sorted(SOURCE.rglob("*.py"))
    if re.search(r"^\s+>>> ", path.read_text(encoding="utf-8"), re.MULTILINE)
]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Return a directory that holds what examples read: `release`, with its measurements."""
    made = tmp_path_factory.mktemp("examples")
    plan = make_city(made, method='name = "imaging"', release='publish = ["table", "measurements"]')
    release(read_plan(plan), made / "release", base=made)
    return made


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name, place, monkeypatch):
    monkeypatch.chdir(place)
    found = doctest.testmod(importlib.import_module(name))
    assert found.attempted > 0
    assert found.failed == 0


def test_a_failing_example_is_reported(capsys):
    example = doctest.DocTestParser().get_doctest(">>> 1 + 1\n3\n", {}, "wrong", None, 0)
    assert doctest.DocTestRunner().run(example).failed == 1
    assert "Expected:\n    3" in capsys.readouterr().out
