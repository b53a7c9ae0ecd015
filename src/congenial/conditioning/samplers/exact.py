"""The exact sampler: independent draws within a proved error of the law.

Sums without a cycle are drawn through a sum network, sums with a few cycles by a cut set or by
rejection, and continuous Gaussian noise in closed form.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from congenial.conditioning.laws.delegate import Exact, where_affordable
from congenial.errors import UnsupportedError
from congenial.invariants.resolved import ResolvedInvariant
from congenial.noise.additive import Additive
from congenial.sum_network.cutset import too_costly


@dataclass(frozen=True)
class ExactSampler:
    """Draws exactly; refuses if that costs too much."""

    name: ClassVar[str] = "exact"
    certified: ClassVar[bool] = True

    def condition(self, mechanism: Additive, resolved: ResolvedInvariant) -> Exact:
        """Return the mechanism drawn exactly.

        Raises UnsupportedError if no exact sampler covers the combination, or its cost is beyond
        the limits.
        """
        made = where_affordable(mechanism, resolved)
        if made is not None:
            return made
        if mechanism.noise.discrete:
            raise too_costly()
        raise UnsupportedError(
            f"no exact sampler covers continuous {mechanism.noise.name} noise; use "
            f"Discrete{type(mechanism.noise).__name__} on a fine grid, or sampler='auto' for a "
            "study."
        )


SAMPLER = ExactSampler()
