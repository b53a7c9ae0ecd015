"""The public names: each is what it says, whatever else is imported, and moved ones warn."""

from __future__ import annotations

import importlib
import subprocess
import sys
from types import ModuleType

import pytest

import congenial as cg

NAMESPACES = ("accounting", "belief", "conditioning", "imaging", "inference")
PACKAGES = ("", *(f".{name}" for name in NAMESPACES))

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
    assert sorted(package.__all__) == package.__all__ == sorted(package._HOME)
    for each in package.__all__:
        value = getattr(package, each)
        assert callable(value), each
        assert value.__name__ == each
        assert value.__module__ == f"congenial.{package._HOME[each]}"
        assert each in dir(package)
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = package.no_such_name


def test_the_flat_names_are_few():
    assert len(cg.__all__) <= 36
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
