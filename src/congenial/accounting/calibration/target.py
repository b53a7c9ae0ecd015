"""The guarantee that noise is calibrated for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from congenial.accounting.calibration.level_units import changing_levels
from congenial.accounting.guarantee import (
    ZCDP_DELTA,
    Guarantee,
    conditioned_guarantee,
    conditioned_pairs,
    imaged_guarantee,
)
from congenial.accounting.loss.inequalities import Pairs
from congenial.accounting.neighbours.single_moves import Neighbours, check_relation
from congenial.domain.tree import Tree
from congenial.domain.workload import Workload
from congenial.errors import ArgumentError, PrivacyError
from congenial.invariants.resolved import ResolvedInvariant
from congenial.noise.additive import Additive
from congenial.noise.discrete_gaussian import DiscreteGaussian
from congenial.noise.discrete_laplace import DiscreteLaplace
from congenial.types import FloatArray
from congenial.wording import show

Method = Literal["conditioning", "imaging"]
METHODS: tuple[Method, ...] = ("conditioning", "imaging")
# Beyond these epsilons, the scale of the noise leaves the range that laws accept. Below the last
# one, converting rho to epsilon leaves fewer digits than `_GAUSSIAN_TOLERANCE` asks for.
_LEAST_EPSILON, _MOST_EPSILON, _LEAST_GAUSSIAN = 1e-90, 1e90, 1e-6
# Relative tolerance between the epsilon asked for and that of the calibrated noise.
TOLERANCE = 1e-9
# The same for Gaussian noise: converting rho to epsilon loses digits if delta is far above epsilon.
_GAUSSIAN_TOLERANCE = 1e-6


def compared(resolved: ResolvedInvariant, method: Method) -> ResolvedInvariant:
    """Return the part of an invariant that all datasets compared by a guarantee satisfy."""
    return resolved.exact_part if method == "imaging" else resolved


@dataclass(frozen=True)
class Target:
    """The final guarantee that noise is calibrated for, and the method of the release."""

    epsilon: float
    neighbours: Neighbours
    method: Method
    delta: float | None = None  # For discrete Gaussian noise; None for discrete Laplace noise.
    # Whether a substituted record may also enter or leave, because a row filter may keep it or not.
    one_sided: bool = False

    def __post_init__(self) -> None:
        """Check epsilon, the relation and the method."""
        epsilon = self.epsilon
        if isinstance(epsilon, bool) or not isinstance(epsilon, int | float | np.number):
            raise ArgumentError(f"epsilon is {epsilon!r}; give a positive number.")
        least = _LEAST_EPSILON if self.delta is None else _LEAST_GAUSSIAN
        if not least <= epsilon <= _MOST_EPSILON:
            of = "" if self.delta is None else " for Gaussian noise"
            raise ArgumentError(
                f"epsilon is {show(epsilon)}; give a number from {least:g} to "
                f"{_MOST_EPSILON:g}{of}."
            )
        check_relation(self.neighbours)
        if self.method not in METHODS:
            raise ArgumentError(f"method is {self.method!r}; give 'conditioning' or 'imaging'.")

    def compared(self, resolved: ResolvedInvariant) -> ResolvedInvariant:
        """Return the part of an invariant that all datasets compared by the guarantee satisfy."""
        return compared(resolved, self.method)

    def law(self, scales: FloatArray) -> DiscreteLaplace | DiscreteGaussian:
        """Noise of given scales."""
        return DiscreteLaplace(scales) if self.delta is None else DiscreteGaussian(scales)

    def conditions_on_bounds(self, resolved: ResolvedInvariant) -> bool:
        """Whether the release is conditioned on bounds, which adds to its loss."""
        return self.method == "conditioning" and resolved.has_inequalities

    def guarantee(
        self, scales: FloatArray, domain: Tree | Workload, resolved: ResolvedInvariant
    ) -> Guarantee:
        """Guarantee of a release with noise of given scales, without the error of a draw."""
        state = conditioned_guarantee if self.method == "conditioning" else imaged_guarantee
        noise = Additive(self.law(scales), domain)
        delta = ZCDP_DELTA if self.delta is None else self.delta
        return state(
            noise,
            resolved,
            self.neighbours,
            sampler_error=0.0,
            one_sided=self.one_sided,
            delta=delta,
        )

    def pairs(
        self, scales: FloatArray, domain: Tree | Workload, resolved: ResolvedInvariant
    ) -> Pairs:
        """Cost of Laplace noise of given scales, for every pair of neighbours."""
        noise = Additive(DiscreteLaplace(scales), domain)
        return conditioned_pairs(noise, resolved, self.neighbours, one_sided=self.one_sided)

    def changing(self, domain: Tree | Workload, resolved: ResolvedInvariant) -> list[int]:
        """Levels, or blocks, where some count differs between some neighbouring datasets."""
        return changing_levels(domain, resolved, self.neighbours, one_sided=self.one_sided)

    def settle(
        self, scales: FloatArray, domain: Tree | Workload, resolved: ResolvedInvariant
    ) -> FloatArray:
        """Widen scales until the guarantee, with its rounding errors, is at most epsilon."""
        reached = self.guarantee(scales, domain, resolved).epsilon
        tolerance = TOLERANCE if self.delta is None else _GAUSSIAN_TOLERANCE
        if reached > self.epsilon * (1.0 + tolerance):
            raise PrivacyError(
                f"the noise calibrated for epsilon {self.epsilon:g} gives {reached:.12g}; nothing "
                "is released. Please report this as a bug in congenial."
            )
        wider, step = max(reached / self.epsilon, 1.0 + 2.0**-52), 2.0**-52
        while reached > self.epsilon:  # rounding alone
            scales, wider, step = scales * wider, 1.0 + step, 2.0 * step
            reached = self.guarantee(scales, domain, resolved).epsilon
        return scales
