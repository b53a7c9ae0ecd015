"""The command line's small cases compile all kernels that plans need."""

from __future__ import annotations

import ast
import importlib
import os
import pkgutil
import subprocess
import sys
from pathlib import Path

import numba
import pytest

import congenial
from congenial import kernels
from congenial.cli import compiled
from congenial.kernels.network import records


@pytest.mark.parametrize("method", ["conditioning", "imaging", "posterior"])
def test_nothing_is_missing_afterwards(method):
    compiled.compile_kernels(method)
    assert not compiled.is_missing(method)


def test_an_empty_cache_misses_everything(tmp_path, monkeypatch):
    monkeypatch.setattr(compiled, "cache_directory", lambda: tmp_path)
    assert compiled.is_missing("conditioning")
    assert compiled.is_missing("imaging")


DRAWS = """
import importlib
from congenial.cli import compiled

compiled._draw_from_each("conditioning")
for name in sorted({name for share in compiled.SHARES for name, _ in share}):
    module, _, kernel = name.rpartition(".")
    for taken in getattr(importlib.import_module(f"congenial.kernels.{module}"), kernel).signatures:
        print(name, *taken)
"""


def test_shares_are_what_draws_compile():
    listed = {
        " ".join(map(str, (name, *map(numba.typeof, compiled.examples(takes)))))
        for share in compiled.SHARES
        for name, takes in share
    }
    drawn = set(run(DRAWS).splitlines())
    assert drawn == listed


def test_shares_have_no_kept_kernel_in_common():
    first, second = (
        {name for share_name, _ in share for name in kept(share_name)} for share in compiled.SHARES
    )
    assert "network.messages.fill" in first | second
    assert not first & second


def kept(name: str) -> set[str]:
    """Return the cached kernels among a kernel and the kernels that it calls."""
    module, _, kernel = name.rpartition(".")
    todo, seen = [getattr(importlib.import_module(f"congenial.kernels.{module}"), kernel)], set()
    while todo:
        one = todo.pop()
        if one in seen:
            continue
        seen.add(one)
        called = (one.py_func.__globals__.get(used) for used in one.py_func.__code__.co_names)
        todo += [found for found in called if isinstance(found, type(one))]
    return {
        f"{one.__module__.removeprefix('congenial.kernels.')}.{one.__name__}"
        for one in seen
        if not one.targetoptions.get("no_cpython_wrapper")
    }


def test_the_other_process_compiles_its_share():
    assert compiled._compile_in_two() == 0


RELEASES = """
import sys
from pathlib import Path
import numpy as np
import congenial as cg
from congenial.cli.compiled import compile_kernels

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
    assert run(RELEASES).strip() == "[]"


def run(code: str) -> str:
    """Return what a new interpreter prints."""
    source = Path(congenial.__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(source)},
    )
    return done.stdout


def test_only_kernels_call_kernels_without_an_entry_from_python():
    package = Path(congenial.__file__).parent
    inner = set()
    for path in sorted((package / "kernels").glob("*/[a-z]*.py")):
        module = importlib.import_module(f"congenial.kernels.{path.parent.name}.{path.stem}")
        for name, kernel in vars(module).items():
            if getattr(kernel, "targetoptions", {}).get("no_cpython_wrapper"):
                inner.add(f"{kernel.__module__.removeprefix('congenial.kernels.')}.{name}")
    called = set()
    tests = Path(__file__).parents[1]
    others = (*tests.rglob("*.py"), *(tests.parent / "benchmarks").rglob("*.py"))
    for path in (*package.rglob("*.py"), *others):
        if "kernels" not in path.parts:
            called |= entries(path.read_text())
    assert "network.descend._passed" in inner
    assert "network.descend.draw" in called
    assert not inner & called


def entries(code: str) -> set[str]:
    """Return which names of which kernel modules a module uses, as `module.name`."""
    tree = ast.parse(code)
    modules, found = {}, set()
    for node in ast.walk(tree):
        if not isinstance(node, ast.ImportFrom) or node.module is None:
            continue
        for alias in node.names:
            if node.module.count(".") == 2 and node.module.startswith("congenial.kernels."):
                folder = node.module.removeprefix("congenial.kernels.")
                modules[alias.asname or alias.name] = f"{folder}.{alias.name}"
            elif node.module.startswith("congenial.kernels."):
                found.add(f"{node.module.removeprefix('congenial.kernels.')}.{alias.name}")
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(id=name), attr=kernel) if name in modules:
                found.add(f"{modules[name]}.{kernel}")
    return found


def every_kernel():
    """Each kernel by its module's name within the package of kernels and its own."""
    for found in pkgutil.walk_packages(kernels.__path__, f"{kernels.__name__}."):
        module = importlib.import_module(found.name)
        for name, kernel in vars(module).items():
            if getattr(kernel, "targetoptions", None) and kernel.__module__ == module.__name__:
                yield f"{found.name.removeprefix(kernels.__name__ + '.')}.{name}", kernel


def liberties(kernel):
    """The transformations of sums and products that a kernel allows."""
    return kernel.targetoptions.get("fastmath") or set()


def test_only_what_the_proof_of_rounding_names_is_reordered_and_nothing_is_fused():
    found = dict(every_kernel())
    reordered = {name for name, kernel in found.items() if liberties(kernel)}
    assert {frozenset(liberties(found[name])) for name in reordered} == {
        frozenset(("reassoc", "nsz"))
    }
    modules = {"evidence", "interior", "lacking", "marginals", "newton", "top_down"}
    assert {name.split(".")[-2] for name in reordered} == modules


def test_what_is_written_into_a_kernel_has_the_same_liberties():
    # numba writes such a kernel into its caller's text, and it is compiled as that is
    for kernel in dict(every_kernel()).values():
        for used in kernel.py_func.__code__.co_names:
            called = kernel.py_func.__globals__.get(used)
            options = getattr(called, "targetoptions", {})
            if options.get("inline") == "always" and liberties(kernel):
                assert liberties(called) == liberties(kernel)


OF_CUT_SETS = {"BranchLinks", "TalliedWindows", "BranchState", "BranchTables"}


def test_kernels_take_every_record_and_all_of_its_arrays():
    taken = {
        type(value).__name__: value
        for share in compiled.SHARES
        for _, takes in share
        for value in compiled.examples(takes)
        if isinstance(value, tuple) and hasattr(value, "_fields")
    }
    named = {name for name, each in vars(records).items() if hasattr(each, "_fields")}
    assert set(taken) == named - OF_CUT_SETS
    assert all(len(value) == len(value._fields) for value in taken.values())
