"""Questions whose answers do not depend on the sampler, answered by the exact law."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

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
from congenial.types import FloatArray, Values

Exact = Conditioned | ConditionedGaussian


@dataclass(frozen=True, eq=False)
class Delegate:
    """The law of a conditional mechanism that is not drawn by the exact sampler.

    Attributes
    ----------
    exact : Conditioned, ConditionedGaussian or None
        The same law by the exact sampler; None if that does not cover it.
    """

    mechanism: Additive
    resolved: ResolvedInvariant
    exact: Exact | None
    requirements = renamed("requirements", "resolved")

    def log_normalizer(self, x: npt.ArrayLike) -> float:
        """Log probability of the invariant; see `Conditioned.log_normalizer`.

        Raises
        ------
        UnsupportedError
            If no exact sampler covers the case; the methods below raise it too.
        """
        return self._law("log_normalizer").log_normalizer(x)

    def log_prob(self, z: npt.ArrayLike, x: npt.ArrayLike) -> float | FloatArray:
        """Log probability of releases; see `Conditioned.log_prob`."""
        return self._law("log_prob").log_prob(z, x)

    def marginal(self, node: int | str, x: npt.ArrayLike) -> tuple[Any, Any]:
        """Law of one released value; see `Conditioned.marginal`."""
        return self._law("marginal").marginal(node, x)

    def joint(self, nodes: Sequence[int | str], x: npt.ArrayLike) -> tuple[Any, Any]:
        """Joint law of released values; see `Conditioned.joint`."""
        return self._law("joint").joint(nodes, x)

    def interval(self, node: int | str, alpha: float = 0.1) -> tuple[Any, Any]:
        """Interval of the noise at a node; see `Conditioned.interval`."""
        return self._law("interval").interval(node, alpha)

    def _law(self, question: str) -> Exact:
        if self.exact is None:
            raise UnsupportedError(
                f"{question}() needs the exact sampler, which does not cover this case; "
                "estimate it from draws."
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
    """Condition exactly; None if that costs too much or continuous noise has no closed form."""
    check_kernels(mechanism.noise)
    if not mechanism.noise.discrete:
        if mechanism.noise.kind != laws.GAUSSIAN:
            return None
        return ConditionedGaussian(mechanism, resolved, solutions(mechanism, resolved))
    resolved = inequalities_in_units(resolved)
    system = sum_system(resolved)
    if system.forest is None:
        return cut_conditioned(mechanism, resolved, system)
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
