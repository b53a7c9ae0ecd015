"""Questions whose answers do not depend on the sampler, answered by the exact law."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from congenial.conditioning.laws.closing_sampler import closing_conditioned
from congenial.conditioning.laws.conditional import AnswersByLaw
from congenial.conditioning.laws.cutset_sampler import cut_conditioned
from congenial.conditioning.laws.forest_sampler import Conditioned
from congenial.conditioning.laws.normal import ConditionedGaussian, checked_values
from congenial.conditioning.laws.questions import check_inequalities, checked_counts
from congenial.conditioning.laws.subspace import solutions
from congenial.errors import UnsupportedError
from congenial.invariants.resolved import ResolvedInvariant, inequalities_in_units
from congenial.kernels.numerics import laws
from congenial.namespaces import renamed
from congenial.noise.additive import Additive
from congenial.noise.law import check_kernels
from congenial.sum_network.cutset import sum_system
from congenial.types import Values

Exact = Conditioned | ConditionedGaussian
# Multiplications of a cut set, some tenths of a second, above which rejection is tried.
_SLOW = 1 << 26


@dataclass(frozen=True, eq=False)
class Delegate(AnswersByLaw):
    """A conditional mechanism that the exact sampler does not draw, whose law it may know.

    Attributes
    ----------
    exact : Conditioned, ConditionedGaussian or None
        The same law by the exact sampler; None if that does not cover it.
    """

    mechanism: Additive
    resolved: ResolvedInvariant
    exact: Exact | None
    requirements = renamed("requirements", "resolved")

    def _law(self, question: str) -> Exact:
        if self.exact is None:
            raise UnsupportedError(
                f"{question}() needs the exact sampler, which does not cover this case; "
                "estimate the answer from draws of sample()."
            )
        return self.exact

    def _checked(self, x: npt.ArrayLike) -> Values:
        """Return `x`, shape (n,), after checking that it satisfies the invariant itself."""
        resolved = self.resolved
        if self.mechanism.noise.discrete:
            return checked_counts(self.mechanism, resolved, x)
        values = checked_values(self.mechanism, resolved, x)
        inside = (values >= resolved.lo) & (values <= resolved.hi) | resolved.pinned
        check_inequalities(resolved, values, within=bool(inside.all()))
        return values


def where_affordable(mechanism: Additive, resolved: ResolvedInvariant) -> Exact | None:
    """Condition exactly; None if that costs too much, or continuous noise has no closed form."""
    check_kernels(mechanism.noise)
    if not mechanism.noise.discrete:
        if mechanism.noise.kind != laws.GAUSSIAN:
            return None
        return ConditionedGaussian(mechanism, resolved, solutions(mechanism, resolved))
    resolved = inequalities_in_units(resolved)
    system = sum_system(resolved)
    if system.forest is None:
        return (
            cut_conditioned(mechanism, resolved, system, _SLOW)
            or closing_conditioned(mechanism, resolved, system)
            or cut_conditioned(mechanism, resolved, system)
        )
    made = Conditioned(mechanism, resolved, system.forest, system.fixed)
    if np.isinf(mechanism.scales).any():
        made.check_proper()
    return made


def same_law(mechanism: Additive, resolved: ResolvedInvariant) -> Exact | None:
    """Return the exact mechanism that another sampler approximates, or None."""
    try:
        return where_affordable(mechanism, resolved)
    except UnsupportedError:
        return None
