"""The law of the noise given the invariants (belief revision): choose how to draw from it.

Offered: the proposal of the samplers that need one, and the exact law's type.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from congenial.conditioning.samplers.forest_sampler import Conditioned
    from congenial.conditioning.samplers.proposal import Proposal

_HOME = {
    "Conditioned": "conditioning.samplers.forest_sampler",
    "Proposal": "conditioning.samplers.proposal",
}

__all__ = [
    "Conditioned",
    "Proposal",
]


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"congenial.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)
