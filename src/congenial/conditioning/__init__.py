"""The law of the noise given the invariants (belief revision), and samplers of it.

Offered: samplers by their names, the proposal of those that need one, the exact law's type, and
conditioning part by part.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from congenial.namespaces import offer

if TYPE_CHECKING:
    from congenial.conditioning.laws.forest_sampler import Conditioned as Conditioned
    from congenial.conditioning.parted import condition_by_parts as condition_by_parts
    from congenial.conditioning.proposal import Proposal as Proposal
    from congenial.conditioning.sampler import Sampler as Sampler
    from congenial.conditioning.sampler import find_sampler as find_sampler
    from congenial.conditioning.sampler import sampler_names as sampler_names

_HOME = {
    "conditioning.laws.forest_sampler": "Conditioned",
    "conditioning.parted": "condition_by_parts",
    "conditioning.proposal": "Proposal",
    "conditioning.sampler": "Sampler find_sampler sampler_names",
}

__all__, __getattr__, __dir__ = offer(__name__, _HOME)
