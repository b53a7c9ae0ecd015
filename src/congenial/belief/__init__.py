"""Belief change on finitely many worlds: revision, update, and privacy as a finite maximum."""

from congenial.belief.belief import Belief, kullback_leibler, mixture, total_variation
from congenial.belief.mechanism import FiniteMechanism
from congenial.belief.neighbourhood import Neighbourhood, hamming, neighbourhood
from congenial.belief.noise import cyclic_geometric, cyclic_mechanism, double_geometric
from congenial.belief.revision import credibility_limited, likely, revise, screened
from congenial.belief.vacuous import Vacuous

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
