"""Noisy counts moved to the closest point that obeys the invariants (belief update).

Offered: unbiased rounding, and TopDown as a mechanism.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from congenial.imaging.top_down import topdown_image
    from congenial.imaging.unbiased import round_unbiased

_HOME = {
    "round_unbiased": "imaging.unbiased",
    "topdown_image": "imaging.top_down",
}

__all__ = [
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
