"""Belief change on finitely many worlds: revision, update, and privacy as a finite maximum."""

from congenial.belief.cautious_revision import (
    credibility_limited,
    likely,
    revise,
    screened,
)
from congenial.belief.finite_mechanism import FiniteMechanism
from congenial.belief.finite_noise import cyclic_geometric, cyclic_mechanism, double_geometric
from congenial.belief.neighbourhood import Neighbourhood, hamming, neighbourhood
from congenial.belief.vacuous import Vacuous
from congenial.belief.worlds import (
    Belief,
    kullback_leibler,
    mixture,
    total_variation,
)

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
