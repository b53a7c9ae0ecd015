"""Noisy counts moved to the closest point that obeys the invariants (belief update).

Offered: unbiased rounding, TopDown as a mechanism, and the types of images.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from congenial.imaging.top_down import TopDown, topdown_image
    from congenial.imaging.unbiased import round_unbiased
    from congenial.imaging.update import Imaged

_HOME = {
    "Imaged": "imaging.update",
    "TopDown": "imaging.top_down",
    "round_unbiased": "imaging.unbiased",
    "topdown_image": "imaging.top_down",
}

__all__ = [
    "Imaged",
    "TopDown",
    "round_unbiased",
    "topdown_image",
]


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"congenial.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)
