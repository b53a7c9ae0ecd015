"""Belief change on finitely many worlds: revision, update, and privacy as a finite maximum."""

from __future__ import annotations

from typing import TYPE_CHECKING

from congenial.namespaces import offer

if TYPE_CHECKING:
    from congenial.belief.adjacency import Neighbourhood as Neighbourhood
    from congenial.belief.adjacency import hamming as hamming
    from congenial.belief.adjacency import neighbourhood as neighbourhood
    from congenial.belief.cautious_revision import credibility_limited as credibility_limited
    from congenial.belief.cautious_revision import likely as likely
    from congenial.belief.cautious_revision import revise as revise
    from congenial.belief.cautious_revision import screened as screened
    from congenial.belief.finite_mechanism import FiniteMechanism as FiniteMechanism
    from congenial.belief.finite_noise import cyclic_geometric as cyclic_geometric
    from congenial.belief.finite_noise import cyclic_mechanism as cyclic_mechanism
    from congenial.belief.finite_noise import double_geometric as double_geometric
    from congenial.belief.vacuous import Vacuous as Vacuous
    from congenial.belief.worlds import Belief as Belief
    from congenial.belief.worlds import kullback_leibler as kullback_leibler
    from congenial.belief.worlds import mixture as mixture
    from congenial.belief.worlds import total_variation as total_variation

_HOME = {
    "belief.adjacency": "Neighbourhood hamming neighbourhood",
    "belief.cautious_revision": "credibility_limited likely revise screened",
    "belief.finite_mechanism": "FiniteMechanism",
    "belief.finite_noise": "cyclic_geometric cyclic_mechanism double_geometric",
    "belief.vacuous": "Vacuous",
    "belief.worlds": "Belief kullback_leibler mixture total_variation",
}

__all__, __getattr__, __dir__ = offer(__name__, _HOME)
