"""Continuous Gaussian noise given linear equalities: a normal law in closed form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from congenial.accounting.guarantee import Guarantee, Neighbours, conditioned_guarantee
from congenial.conditioning.laws.conditional import Normal, PlotsMarginals
from congenial.conditioning.laws.questions import (
    check_equalities,
    checked_rows,
    find_node,
    find_nodes,
)
from congenial.conditioning.laws.subspace import Fitted, Subspace, project
from congenial.invariants.resolved import ResolvedInvariant, checked_draws
from congenial.namespaces import renamed
from congenial.noise.additive import Additive, checked_alpha, checked_size
from congenial.randomness import Randomness, resolve
from congenial.types import FloatArray


@dataclass(frozen=True, eq=False)
class ConditionedGaussian(PlotsMarginals):
    """Gaussian noise conditioned on linear equalities; made by `congenial.condition`.

    Noise given the equalities has the same law as noise projected to the closest solution, with
    weights one over the variances. If all entries have one sigma, this is imaging in L2 (Two Views,
    Section 3).

    Attributes
    ----------
    resolved : ResolvedInvariant
        Without inequalities.
    """

    mechanism: Additive
    resolved: ResolvedInvariant
    space: Subspace
    requirements = renamed("requirements", "resolved")

    @cached_property
    def fitted(self) -> Fitted:
        """The solutions of the equalities, weighted by one over the variances."""
        with np.errstate(over="ignore", under="ignore"):
            return self.space.fit(1.0 / self.mechanism.scales**2)

    def sample(
        self, x: npt.ArrayLike, size: int | None = None, rng: Randomness | None = None
    ) -> FloatArray:
        """Draw releases, for studies: floating-point noise is not private."""
        values = checked_values(self.mechanism, self.resolved, x)
        rows = checked_size(size)
        noise = draw_noise(self.mechanism, rows, resolve(rng))
        out = checked_draws(self.resolved, values + project(self.fitted, noise), values)
        return out[0] if size is None else out

    def log_normalizer(self, x: npt.ArrayLike) -> float:
        """Log integral of the noise's density over the invariant, in Euclidean volume.

        Queries without a measurement have weight 1 for every value.
        """
        checked_values(self.mechanism, self.resolved, x)
        zero = np.zeros(self.mechanism.n)
        log_mode = float(self.mechanism.noise.log_pmf(zero, self.mechanism.scales).sum())
        return log_mode + self.fitted.log_volume

    def log_prob(self, z: npt.ArrayLike, x: npt.ArrayLike) -> float | FloatArray:
        """Log density of releases by Euclidean volume on the solutions; -inf outside the invariant.

        The density is normalised. Because floating-point sums are rounded, values within 1e-9 of
        the invariant, relative to the largest, satisfy it.
        """
        values = checked_values(self.mechanism, self.resolved, x)
        given = checked_rows(self.mechanism, z).astype(np.float64)
        rows = np.atleast_2d(given)
        inside = self.resolved.satisfied_by(rows, values)
        log_density = self.mechanism.log_prob(rows, values) - self.log_normalizer(values)
        out = np.where(inside, log_density, -np.inf)
        return float(out[0]) if given.ndim == 1 else out

    def marginal(self, node: int | str, x: npt.ArrayLike) -> Normal:
        """Law of one released value, as (mean, sd): a normal law."""
        values = checked_values(self.mechanism, self.resolved, x)
        v = self._node(node)
        return Normal(float(values[v]), float(np.sqrt(self.fitted.variance(v))))

    def joint(self, nodes: Sequence[int | str], x: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Joint law of k released values, as (mean, covariance), shapes (k,) and (k, k)."""
        values = checked_values(self.mechanism, self.resolved, x)
        found = find_nodes(self.mechanism, self.resolved, nodes)
        one = np.zeros((len(found), self.mechanism.n))
        one[np.arange(len(found)), found] = 1.0
        covariance = self.fitted.respond(one)[:, found]
        return values[found], 0.5 * (covariance + covariance.T)

    def interval(self, node: int | str, alpha: float = 0.1) -> tuple[float, float]:
        """Interval (lo, hi) that has released minus true at a node with probability 1 - alpha."""
        checked_alpha(alpha)
        sd = float(np.sqrt(self.fitted.variance(self._node(node))))
        reach = -NormalDist().inv_cdf(0.5 * float(alpha)) * sd
        return -reach, reach

    def guarantee(self, neighbours: Neighbours) -> Guarantee:
        """Privacy guarantee of noise on real numbers, by zCDP; floating-point draws are for study.

        Conditioning noise on data-independent equalities costs nothing (Two Views, Lemma 3.3).
        """
        return conditioned_guarantee(self.mechanism, self.resolved, neighbours, sampler_error=0.0)

    @property
    def error_bound(self) -> float:
        """1, the largest total variation possible: nothing is proved for floating-point noise."""
        return 1.0

    def explain(self) -> str:
        """Explain how a release is drawn, and why."""
        n, pinned = self.mechanism.n, int(self.resolved.pinned.sum())
        return (
            f"closed form: Gaussian noise on {n - pinned} of {n} queries ({pinned} published "
            "exactly) given equalities is normal; noise is moved to the closest solution, with "
            f"weights one over the variances, by {self.space.described}. Floating-point noise is "
            "for studies; for a release use DiscreteGaussian, on a fine grid if the values are not "
            "integers."
        )

    def _node(self, node: int | str) -> int:
        return find_node(self.mechanism, self.resolved, node)


def draw_noise(mechanism: Additive, rows: int, rng: Randomness) -> FloatArray:
    """Independent noise, shape (rows, n), 0 where not measured."""
    width = mechanism.n * mechanism.noise.words_per_entry
    words = rng.bits(rows * width).reshape(rows, width)
    return np.asarray(mechanism.noise.draw(words, mechanism.scales, rng.bits), dtype=np.float64)


def checked_values(
    mechanism: Additive, resolved: ResolvedInvariant, x: npt.ArrayLike
) -> FloatArray:
    """Return `x` as float64, shape (n,), after checking that it satisfies the equalities."""
    values = mechanism.counts(x).astype(np.float64)
    check_equalities(resolved, values, met=bool(resolved.meets_equalities(values)))
    return values
