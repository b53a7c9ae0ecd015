"""The exact sampler: independent draws within a proved error of the law.

Sums without a cycle are drawn through a sum network, sums with a few cycles by a cut set, and
continuous Gaussian noise in closed form.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from congenial.conditioning.laws.cutset_sampler import cut_conditioned
from congenial.conditioning.laws.delegate import Exact
from congenial.conditioning.laws.forest_sampler import Conditioned
from congenial.conditioning.laws.normal import ConditionedGaussian
from congenial.conditioning.laws.subspace import solutions
from congenial.errors import UnsupportedError
from congenial.invariants.resolved import inequalities_in_units
from congenial.invariants.written import Requirements
from congenial.kernels.numerics import laws
from congenial.noise.additive import Additive
from congenial.sum_network.cutset.assignments import too_costly
from congenial.sum_network.cutset.systems import sum_system


@dataclass(frozen=True)
class ExactSampler:
    """Draws exactly; refuses where that costs too much."""

    name: ClassVar[str] = "exact"
    certified: ClassVar[bool] = True

    def condition(self, mechanism: Additive, resolved: Requirements) -> Exact:
        """Return the mechanism drawn exactly.

        Raises
        ------
        UnsupportedError
            If no exact sampler covers the combination, or its cost is beyond the limits.
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


def where_affordable(mechanism: Additive, resolved: Requirements) -> Exact | None:
    """Condition exactly; None where that costs too much, or is not known for continuous noise.

    Raises
    ------
    UnsupportedError
        If the law does not exist, or no sampler covers the invariant.
    """
    if not mechanism.noise.discrete:
        if mechanism.noise.kind != laws.GAUSSIAN:
            return None
        return ConditionedGaussian(mechanism, resolved, solutions(mechanism, resolved))
    need = inequalities_in_units(resolved)
    system = sum_system(need)
    if system.forest is None:
        return cut_conditioned(mechanism, need, system)
    made = Conditioned(mechanism, need, system.forest, system.fixed)
    if np.isinf(mechanism.scales).any():
        made.check_proper()
    return made


def same_law(mechanism: Additive, resolved: Requirements) -> Exact | None:
    """Return the exact mechanism that another sampler approximates; None where none covers it."""
    try:
        return where_affordable(mechanism, resolved)
    except UnsupportedError:
        return None
