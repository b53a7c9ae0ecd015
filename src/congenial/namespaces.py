"""Names that a package offers, each loaded from its module when it is first used."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def offer(
    package: str, homes: Mapping[str, str]
) -> tuple[list[str], Callable[[str], object], Callable[[], list[str]]]:
    """Return `__all__`, `__getattr__` and `__dir__` of a package.

    `homes` maps a module, by its name inside congenial, to the names it offers, in one text.
    """
    home = {name: module for module, names in homes.items() for name in names.split()}

    def load(name: str) -> object:
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(f"congenial.{home[name]}"), name)
        setattr(sys.modules[package], name, value)
        return value

    return sorted(home), load, lambda: sorted(home)


def renamed(old: str, new: str, value: Callable[[Any], object] | None = None) -> property:
    """Return a property for an attribute's old name: it warns, and gives the new one's value."""

    def read(owner: object) -> object:
        warnings.warn(
            f"{type(owner).__name__}.{old} is now {new}; the old name goes with version 0.2.",
            DeprecationWarning,
            stacklevel=2,
        )
        return getattr(owner, new) if value is None else value(owner)

    return property(read)
