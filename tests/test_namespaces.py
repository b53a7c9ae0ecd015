"""Names that a package offers: loaded when first used, and kept."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest

from congenial.errors import CongenialError
from congenial.namespaces import offer, renamed


def test_a_name_is_loaded_when_it_is_first_used_and_then_kept(monkeypatch):
    package = ModuleType("counts")
    monkeypatch.setitem(sys.modules, "counts", package)
    names, load, listed = offer("counts", {"wording": "show joined", "errors": "CongenialError"})
    assert names == listed() == ["CongenialError", "joined", "show"]
    assert not hasattr(package, "CongenialError")
    assert load("CongenialError") is CongenialError is package.CongenialError


def test_an_unknown_name_is_not_an_attribute():
    _, load, _ = offer("counts", {"wording": "show"})
    with pytest.raises(AttributeError, match="module 'counts' has no attribute 'joined'"):
        load("joined")


def test_an_old_name_of_an_attribute_warns_and_gives_the_new_one():
    class Counts:
        resolved = (1, 2)
        requirements = renamed("requirements", "resolved")
        first = renamed("first", "resolved[0]", lambda counts: counts.resolved[0])

    with pytest.warns(DeprecationWarning, match=r"Counts\.requirements is now resolved;"):
        assert Counts().requirements == (1, 2)
    with pytest.warns(DeprecationWarning, match=r"Counts\.first is now resolved\[0\];"):
        assert Counts().first == 1
