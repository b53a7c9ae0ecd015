"""The automatic sampler: exact if that is affordable, otherwise a chain for studies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from congenial.conditioning.laws.conditional import ConditionalMechanism
from congenial.conditioning.laws.delegate import where_affordable
from congenial.invariants.resolved import ResolvedInvariant
from congenial.noise.additive import Additive


@dataclass(frozen=True)
class AutomaticSampler:
    """Draws exactly if that is affordable, otherwise by Gibbs sampling."""

    name: ClassVar[str] = "auto"
    certified: ClassVar[bool] = False

    def condition(self, mechanism: Additive, resolved: ResolvedInvariant) -> ConditionalMechanism:
        """Return the mechanism, by the first sampler that covers it at an affordable cost.

        Raises UnsupportedError if none covers the combination.
        """
        made = where_affordable(mechanism, resolved)
        if made is not None:
            return made
        from congenial.conditioning.samplers import gibbs

        return gibbs.SAMPLER.condition(mechanism, resolved)


SAMPLER = AutomaticSampler()
