"""The law of the noise given the invariants (belief revision): choose how to draw from it.

Offered: samplers by their names, the proposal of those that need one, and the exact law's type.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from congenial.conditioning.laws.forest_sampler import Conditioned
    from congenial.conditioning.proposal import Proposal
    from congenial.conditioning.sampler import Sampler, find_sampler, sampler_names

_HOME = {
    "Conditioned": "conditioning.laws.forest_sampler",
    "Proposal": "conditioning.proposal",
    "Sampler": "conditioning.sampler",
    "find_sampler": "conditioning.sampler",
    "sampler_names": "conditioning.sampler",
}

__all__ = [
    "Conditioned",
    "Proposal",
    "Sampler",
    "find_sampler",
    "sampler_names",
]


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"congenial.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)
