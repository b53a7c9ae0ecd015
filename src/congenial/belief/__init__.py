"""Belief change on finitely many worlds: revision, update, and privacy as a finite maximum."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from congenial.belief.adjacency import Neighbourhood, hamming, neighbourhood
    from congenial.belief.cautious_revision import credibility_limited, likely, revise, screened
    from congenial.belief.finite_mechanism import FiniteMechanism
    from congenial.belief.finite_noise import cyclic_geometric, cyclic_mechanism, double_geometric
    from congenial.belief.vacuous import Vacuous
    from congenial.belief.worlds import Belief, kullback_leibler, mixture, total_variation

_HOME = {
    "Belief": "belief.worlds",
    "FiniteMechanism": "belief.finite_mechanism",
    "Neighbourhood": "belief.adjacency",
    "Vacuous": "belief.vacuous",
    "credibility_limited": "belief.cautious_revision",
    "cyclic_geometric": "belief.finite_noise",
    "cyclic_mechanism": "belief.finite_noise",
    "double_geometric": "belief.finite_noise",
    "hamming": "belief.adjacency",
    "kullback_leibler": "belief.worlds",
    "likely": "belief.cautious_revision",
    "mixture": "belief.worlds",
    "neighbourhood": "belief.adjacency",
    "revise": "belief.cautious_revision",
    "screened": "belief.cautious_revision",
    "total_variation": "belief.worlds",
}

__all__ = [
    "Belief",
    "FiniteMechanism",
    "Neighbourhood",
    "Vacuous",
    "credibility_limited",
    "cyclic_geometric",
    "cyclic_mechanism",
    "double_geometric",
    "hamming",
    "kullback_leibler",
    "likely",
    "mixture",
    "neighbourhood",
    "revise",
    "screened",
    "total_variation",
]


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"congenial.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)
