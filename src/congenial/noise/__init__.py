"""The noise laws, one file a law, and the additive mechanism.

Offered: laws by their names, which are those of their files, and what a law is.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from congenial.noise.law import NoiseLaw, find_law, law_names

_HOME = {
    "NoiseLaw": "noise.law",
    "find_law": "noise.law",
    "law_names": "noise.law",
}

__all__ = [
    "NoiseLaw",
    "find_law",
    "law_names",
]


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"congenial.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)
