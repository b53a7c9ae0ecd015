"""Every module has its tests at its place, and every test lies where its module does.

`tests/<folder>/test_<module>.py` holds the tests of `src/congenial/<folder>/<module>.py`. Tests of
more than one module lie in the folders of `APART`.
"""

from __future__ import annotations

import ast
from pathlib import Path

from support.sources import ROOT, SOURCE, imported

TESTS = ROOT / "tests"
# Properties across modules, promises of the README, pages, the map, and helpers.
APART = {"laws", "guarantees", "docs", "architecture", "support"}
LONGEST = 700  # lines of a test file


def runs(path: Path) -> bool:
    """Whether a module has a function that does something; protocols and bare records do not."""
    return any(
        isinstance(node, ast.FunctionDef)
        and not all(
            isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant)
            for part in node.body
        )
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    )


def expected(source: Path) -> dict[str, str]:
    """Return the test file of each module, by the module's path."""
    found = {}
    for path in sorted(source.rglob("*.py")):
        if not path.name.startswith("__") and runs(path):
            at = path.relative_to(source)
            found[at.as_posix()] = (at.parent / f"test_{at.name}").as_posix()
    return found


def present(tests: Path) -> set[str]:
    """Return the test files that belong to one module."""
    every = (path.relative_to(tests) for path in tests.rglob("test_*.py"))
    return {path.as_posix() for path in every if path.parts[0] not in APART}


def mirror_faults(source: Path, tests: Path) -> list[str]:
    """Return modules without tests, and tests without a module."""
    wanted, there = expected(source), present(tests)
    return [
        *(f"{m} has no tests; write tests/{t}." for m, t in wanted.items() if t not in there),
        *(f"tests/{t} has no module." for t in sorted(there - set(wanted.values()))),
    ]


def test_every_module_has_its_tests_and_every_test_its_module():
    assert mirror_faults(SOURCE, TESTS) == []


def test_a_module_without_tests_and_a_test_without_a_module_are_found(tmp_path):
    source, tests = tmp_path / "congenial", tmp_path / "tests"
    for path, text in {
        source / "domain/tree.py": "def f():\n    return 1\n",
        source / "domain/names.py": 'class Named:\n    def name(self):\n        """Name."""\n',
        tests / "domain/test_tree.py": "",
        tests / "laws/test_trees.py": "",
    }.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert mirror_faults(source, tests) == []
    (tests / "domain/test_tree.py").rename(tests / "test_tree.py")
    assert mirror_faults(source, tests) == [
        "domain/tree.py has no tests; write tests/domain/test_tree.py.",
        "tests/test_tree.py has no module.",
    ]


def faults_of(path: Path) -> list[str]:
    """Return what is wrong with a test file: its length, and imports of other tests."""
    text = path.read_text(encoding="utf-8")
    lines = len(text.splitlines())
    names = {part for full, _ in imported(ast.parse(text)) for part in full.split(".")}
    return [
        *([f"{path.name} has {lines} lines."] if lines > LONGEST else []),
        *(f"{path.name} imports {name}." for name in names if name.startswith("test_")),
    ]


def test_no_test_is_too_long_and_none_imports_another():
    for folder in (TESTS, ROOT / "papers" / "tests"):
        for path in folder.rglob("*.py"):
            assert path.parent.name == "support" or faults_of(path) == []


def test_a_test_that_imports_another_is_found(tmp_path):
    path = tmp_path / "test_one.py"
    path.write_text("from domain.test_tree import x\n" + "\n" * LONGEST, encoding="utf-8")
    assert faults_of(path) == ["test_one.py has 701 lines.", "test_one.py imports test_tree."]
