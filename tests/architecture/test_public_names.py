"""Public names: each is the documented object, whatever is imported, and moved names warn."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import congenial as cg
from support.pages import all_pages, blocks_of

NAMESPACES = ("accounting", "belief", "conditioning", "imaging", "inference")
PACKAGES = ("", *(f".{name}" for name in NAMESPACES))
ROOT = Path(__file__).parents[2]

# A module of a package's own, once imported anywhere, becomes an attribute of the package.
HIDDEN = """
import importlib, pkgutil, sys, types
found = sorted(
    m.name for m in pkgutil.walk_packages([ROOT], "congenial.") if not m.name.endswith("__main__")
)
packages = [name for name in found if hasattr(importlib.import_module(name), "__path__")]
for name in ["congenial", *packages]:
    package = importlib.import_module(name)
    for each in getattr(package, "__all__", ()):
        if isinstance(getattr(package, each), types.ModuleType):
            print(f"{name}.{each} is a module, not what the package offers.")
"""


def hidden(root: str, path: str) -> list[str]:
    """Return public names that a module of the same name hides once everything is imported."""
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            f"import sys\nsys.path.insert(0, {path!r})\nROOT = {root!r}\n{HIDDEN}",
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return done.stdout.splitlines()


def test_no_module_hides_a_public_name():
    (root,) = cg.__path__
    assert hidden(root, root.removesuffix("congenial")) == []


def test_a_module_that_hides_a_public_name_is_found(tmp_path):
    belief = tmp_path / "congenial" / "belief"
    belief.mkdir(parents=True)
    (tmp_path / "congenial" / "__init__.py").write_text("__all__ = []\n")
    (belief / "__init__.py").write_text(
        "__all__ = ['revise', 'screened']\ndef __getattr__(name):\n    return print\n"
    )
    (belief / "revise.py").write_text("def revise():\n    pass\n")
    told = hidden(str(tmp_path / "congenial"), str(tmp_path))
    assert told == ["congenial.belief.revise is a module, not what the package offers."]


@pytest.mark.parametrize("name", PACKAGES)
def test_a_package_lists_what_it_offers_and_offers_it(name):
    package = importlib.import_module(f"congenial{name}")
    home = {each: at for at, names in package._HOME.items() for each in names.split()}
    assert package.__all__ == sorted(home)
    for each in package.__all__:
        value = getattr(package, each)
        assert callable(value), each
        assert value.__name__ == each
        assert value.__module__ == f"congenial.{home[each]}"
        assert each in dir(package)
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = package.no_such_name


@pytest.mark.parametrize("name", PACKAGES)
def test_a_public_function_says_what_it_takes_and_returns(name):
    package = importlib.import_module(f"congenial{name}")
    for each in package.__all__:
        value = getattr(package, each)
        if not inspect.isfunction(value):
            continue
        text = inspect.getdoc(value) or ""
        taken, _, returned = text.partition("\nReturns\n-------\n")
        assert returned, each
        assert len(text.splitlines()[0]) <= 96, each
        taken = taken.partition("\nParameters\n----------\n")[2]
        lines = re.findall(r"^(\w.*?)(?: :|$)", taken, re.MULTILINE)
        told = {name for line in lines for name in line.split(", ")}
        assert set(inspect.signature(value).parameters) <= told, each


def test_the_flat_names_are_few():
    assert len(cg.__all__) <= 37
    offered = [
        each for name in NAMESPACES[:1] + NAMESPACES[2:] for each in getattr(cg, name).__all__
    ]
    assert not set(offered) & set(cg.__all__)


@pytest.mark.parametrize("name", [*NAMESPACES, "errors"])
def test_namespaces_are_reached_without_an_import_of_their_own(name):
    program = f"import congenial as cg\nassert cg.{name}.__name__ == 'congenial.{name}'"
    subprocess.run([sys.executable, "-c", program], timeout=60, check=True)
    assert isinstance(getattr(cg, name), ModuleType)
    assert name in dir(cg)


@pytest.mark.parametrize("name", sorted(cg._MOVED))
def test_a_moved_name_is_reached_and_warns_with_its_new_name(name):
    new = f"congenial.{cg._MOVED[name]}.{name}"
    with pytest.warns(DeprecationWarning, match=f"congenial.{name} is now {new};") as told:
        value = getattr(cg, name)
    assert value is getattr(getattr(cg, cg._MOVED[name]), name)
    assert told[0].filename == __file__
    assert name not in dir(cg)


def test_the_page_on_what_moved_names_what_is_there():
    text = (ROOT / "docs" / "moved.md").read_text(encoding="utf-8")
    names, modules = (
        [line.split("|")[1:3] for line in part.splitlines() if line.startswith("| `")]
        for part in text.split("## Modules")
    )
    rows = {new: re.findall(r"`(\w+)`", old) for old, new in names}
    for space in set(cg._MOVED.values()):
        told = rows.pop(f" the same names in `cg.{space}` ")
        assert sorted(told) == sorted(n for n, at in cg._MOVED.items() if at == space)
    assert {name for told in rows.values() for name in told} == set(cg._FOLDED)
    assert len(modules) > 30
    for folder, cells in modules:
        for cell in cells.split(", "):
            new = re.findall(r"`([\w.]+)`", cell)[-1].rpartition(".")[2]
            assert importlib.util.find_spec(f"{folder.strip(' `')}.{new}"), cell


def test_the_margins_of_old_names_are_those_of_the_new():
    table = cg.Table({"sex": ("F", "M")}, name="people")
    with pytest.warns(DeprecationWarning, match="exactly_margins is now congenial.exactly"):
        old = cg.exactly_margins([("sex",)], level=0, table=table)
    assert old.parts == cg.exactly(margins=[("sex",)], level=0, table=table).parts
    with pytest.warns(DeprecationWarning, match="bounds_margins is now congenial.bounds"):
        old = cg.bounds_margins(("sex",), 1, 5, level=0)
    (one,), (other,) = old.parts, cg.bounds(1, 5, margin=("sex",), level=0).parts
    assert (one.margin, one.level, float(one.lo), float(one.hi)) == (
        other.margin,
        other.level,
        1.0,
        5.0,
    )


def strange_names(program: str) -> list[str]:
    """Return the names of the package that a program uses and that are not public."""
    found = []
    for node in ast.walk(ast.parse(program)):
        if isinstance(node, ast.ImportFrom) and str(node.module).split(".")[0] == "congenial":
            if [a.name for a in node.names] != ["sum_network"]:  # its page is for engineers
                found.append(f"from {node.module}")
        elif isinstance(node, ast.Import):
            found += [a.name for a in node.names if a.name.startswith("congenial.")]
        elif isinstance(node, ast.Attribute) and ast.unparse(node.value) == "cg":
            if node.attr not in (*cg.__all__, *NAMESPACES, "errors", "__version__"):
                found.append(ast.unparse(node))
        elif isinstance(node, ast.Attribute) and ast.unparse(node.value).startswith("cg."):
            package = getattr(cg, ast.unparse(node.value).split(".")[1], None)
            if isinstance(package, ModuleType) and not hasattr(package, node.attr):
                found.append(ast.unparse(node))
    return found


def test_examples_and_pages_use_public_names_alone():
    programs = {p.name: p.read_text(encoding="utf-8") for p in ROOT.glob("examples/*/*.py")}
    for page in all_pages():
        blocks = blocks_of(page.read_text(encoding="utf-8"))
        parts = [block.text for block in blocks if block.language == "python"]
        programs |= {f"{page.name}, block {at}": part for at, part in enumerate(parts)}
    assert len(programs) > 20
    strange = {name: names for name, text in programs.items() if (names := strange_names(text))}
    assert strange == {}


@pytest.mark.parametrize(
    "program",
    [
        "from congenial.plan.plan import read_plan",
        "import congenial.errors",
        "import congenial as cg\ncg.Prior(1)",
        "import congenial as cg\ncg.inference.Tree",
    ],
)
def test_a_name_that_is_not_public_is_found(program):
    assert len(strange_names(program)) == 1
