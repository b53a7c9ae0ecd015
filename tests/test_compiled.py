"""All that plans need is compiled by the small cases that the command line draws for it."""

from __future__ import annotations

import ast
import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

import congenial
from congenial import compiled


@pytest.mark.parametrize("method", ["conditioning", "imaging"])
def test_nothing_is_missing_afterwards(method):
    compiled.compile_kernels(method)
    assert not compiled.is_missing(method)


def test_an_empty_cache_misses_everything(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    assert compiled.is_missing("conditioning")
    assert compiled.is_missing("imaging")


RELEASES = """
import sys
from pathlib import Path
import numpy as np
import congenial as cg
from congenial.compiled import compile_kernels

def files():
    return {p.name for p in Path(cg.__file__).parent.rglob("*.nbc")}

compile_kernels("conditioning")
before = files()
rng = np.random.default_rng(0)
tree = cg.Tree.from_parents([-1, 0, 0, 0, 1, 1, 1, 2, 2, 3])
x = tree.roll_up(rng.poisson(4, tree.leaves.size))
scales = (1.5, np.linspace(1.0, 2.0, len(tree)), np.where(tree.level == 1, np.inf, 3.0))
total = cg.consistent(tree) & cg.exactly([0])
for need in (cg.consistent(tree), total, total & cg.nonnegative(), total & cg.bounds(-5, 60)):
    for noise in (cg.DiscreteLaplace, cg.DiscreteGaussian):
        for scale in scales:
            made = cg.condition(cg.Additive(noise(scale), tree), need)
            made.sample(x)
            made.sample(x, 100)
            made.explain()
print(sorted(files() - before))
"""


def test_releases_of_other_kinds_compile_nothing_more():
    source = Path(congenial.__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-c", RELEASES],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(source)},
    )
    assert done.stdout.strip() == "[]"


def test_only_kernels_call_kernels_without_an_entry_from_python():
    package = Path(congenial.__file__).parent
    inner = set()
    for path in sorted((package / "kernels").glob("*.py")):
        module = importlib.import_module(f"congenial.kernels.{path.stem}")
        for name, kernel in vars(module).items():
            if getattr(kernel, "targetoptions", {}).get("no_cpython_wrapper"):
                inner.add(f"{kernel.__module__.removeprefix('congenial.kernels.')}.{name}")
    called = set()
    tests = Path(__file__).parent
    others = (*tests.glob("*.py"), *(tests.parent / "benchmarks").rglob("*.py"))
    for path in (*package.rglob("*.py"), *others):
        if path.parent.name != "kernels":
            called |= entries(path.read_text())
    assert "descend._passed" in inner
    assert "descend.draw" in called
    assert not inner & called


def entries(code: str) -> set[str]:
    """Return which names of which kernel modules a module uses, as `module.name`."""
    tree = ast.parse(code)
    modules, found = {}, set()
    for node in ast.walk(tree):
        if not isinstance(node, ast.ImportFrom) or node.module is None:
            continue
        for alias in node.names:
            if node.module == "congenial.kernels":
                modules[alias.asname or alias.name] = alias.name
            elif node.module.startswith("congenial.kernels."):
                found.add(f"{node.module.removeprefix('congenial.kernels.')}.{alias.name}")
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(id=name), attr=kernel) if name in modules:
                found.add(f"{modules[name]}.{kernel}")
    return found
