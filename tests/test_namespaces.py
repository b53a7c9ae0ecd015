"""Names that a package offers: loaded when first used, and kept."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest

from congenial.errors import CongenialError
from congenial.namespaces import offer


def test_a_name_is_loaded_when_it_is_first_used_and_then_kept(monkeypatch):
    package = ModuleType("counts")
    monkeypatch.setitem(sys.modules, "counts", package)
    names, load, listed = offer("counts", {"wording": "show joined", "errors": "CongenialError"})
    assert names == listed() == ["CongenialError", "joined", "show"]
    assert not hasattr(package, "CongenialError")
    assert load("CongenialError") is CongenialError is package.CongenialError


def test_a_name_that_no_module_offers_is_no_attribute():
    _, load, _ = offer("counts", {"wording": "show"})
    with pytest.raises(AttributeError, match="module 'counts' has no attribute 'joined'"):
        load("joined")
