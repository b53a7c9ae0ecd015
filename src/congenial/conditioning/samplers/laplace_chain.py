"""Continuous Laplace noise given linear equalities, by a chain: for studies only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from congenial.conditioning.chains import ChainAlone, Draw, Info
from congenial.conditioning.laws.normal import checked_values
from congenial.conditioning.laws.subspace import Subspace, project, solutions
from congenial.errors import UnsupportedError
from congenial.invariants.resolved import ResolvedInvariant, checked_draws
from congenial.kernels.numerics import laws
from congenial.namespaces import renamed
from congenial.noise.additive import Additive
from congenial.randomness import Randomness
from congenial.types import FloatArray, Words

# Smaller absolute noise, in scales, is replaced by this value when a variance is drawn.
_SMALLEST = 1e-12
# Least variance, in squared scales: smaller ones make the linear systems ill-conditioned.
_LEAST_VARIANCE = 1e-12
# Number of sweeps whose random words are fetched together.
_BLOCK = 256
_UNBOUNDED = "no bound on the convergence of the scale-mixture chain is known"


@dataclass(frozen=True, eq=False)
class ConditionedLaplace(ChainAlone):
    """Laplace noise conditioned on linear equalities; made by `congenial.condition`.

    A Laplace variable is normal with an exponential variance. Given the variances, the noise is
    normal on the solutions of the equalities. Given the noise, the precisions are independent
    inverse Gaussian variables. The chain draws these two in turn (Park and Casella 2008).

    Attributes
    ----------
    resolved : ResolvedInvariant
        Without inequalities.
    warmup, thin : int
        Sweeps left out of each chain, and sweeps for each draw kept.
    """

    mechanism: Additive
    resolved: ResolvedInvariant
    space: Subspace
    warmup: int
    thin: int
    called: ClassVar[str] = "scale-mixture Gibbs sampler"
    remedy: ClassVar[str] = (
        "use DiscreteLaplace on a fine grid, such as granularity=2**-6, whose law is exact"
    )
    unknown: ClassVar[str] = "of continuous Laplace noise under equalities has no closed form"
    requirements = renamed("requirements", "resolved")

    def _run(
        self, x: npt.ArrayLike, draws: int, chains: int, source: Randomness
    ) -> tuple[Draw, Info]:
        values = checked_values(self.mechanism, self.resolved, x)
        spread = np.geomspace(0.1, 10.0, chains)  # chains start far apart, whatever the data
        noise = np.stack([self._chain(draws, float(s), source) for s in spread])
        info = Info(self.warmup, self.thin, noise, unbounded=_UNBOUNDED)
        return Draw(checked_draws(self.resolved, values + noise, values)), info

    def explain(self) -> str:
        """Explain how draws are made, and why."""
        return (
            "scale-mixture Gibbs sampler, for studies: chains draw variances and normal noise in "
            f"turn, the noise by {self.space.described}; {self.warmup} sweeps are left out and "
            f"every draw takes {self.thin} sweeps. {self._limits_text}"
        )

    def _chain(self, length: int, spread: float, rng: Randomness) -> FloatArray:
        """Noise of one chain, shape (length, n), with first variances `spread` times their mean."""
        scales = self.mechanism.scales
        noisy = np.isfinite(scales)
        lam = np.where(noisy, scales, 1.0)
        precision = np.where(noisy, 0.5 / (spread * lam**2), 0.0)
        n = scales.size
        out = np.empty((length, n))
        sweeps = self.warmup + self.thin * length
        for t in range(sweeps):
            if t % _BLOCK == 0:
                count = min(_BLOCK, sweeps - t)
                block = rng.bits(count * 3 * n).reshape(count, 3, n)
            first, second, uniform = _uniform(block[t % _BLOCK])
            radius = np.sqrt(-2.0 * np.log(first))
            normal, other = radius * np.cos(second * 2 * np.pi), radius * np.sin(second * 2 * np.pi)
            noise = np.where(noisy, normal / np.sqrt(np.where(noisy, precision, 1.0)), 0.0)
            u = project(self.space.fit(precision), noise[None])[0]
            precision = np.where(noisy, precisions(u, lam, other, uniform), 0.0)
            kept = t - self.warmup + 1
            if kept > 0 and kept % self.thin == 0:
                out[kept // self.thin - 1] = u
        return out


def precisions(
    u: FloatArray, scale: FloatArray, normal: FloatArray, uniform: FloatArray
) -> FloatArray:
    """Draw the precision (one over the variance) of each entry given its noise `u`.

    It is inverse Gaussian with mean ``1 / (scale * abs(u))`` and shape ``1 / scale**2`` (Park and
    Casella 2008, Section 2). A normal variable gives the two roots of a quadratic, and a uniform
    one chooses between them (Michael, Schucany and Haas 1976).
    """
    size = np.maximum(np.abs(u), _SMALLEST * scale)
    mean = 1.0 / (scale * size)
    r = 0.5 * normal**2 * scale / size
    root = 1.0 + r + np.sqrt(r * (r + 2.0))  # the larger root over the mean; no cancellation
    drawn = np.where(uniform * (1.0 + root) <= root, mean / root, mean * root)
    return np.asarray(np.minimum(drawn, 1.0 / (_LEAST_VARIANCE * scale**2)))


def _uniform(words: Words) -> FloatArray:
    """Uniform variables in (0, 1]."""
    return np.asarray(((words >> np.uint64(11)).astype(np.float64) + 1.0) * 2.0**-53)


@dataclass(frozen=True)
class LaplaceChainSampler:
    """Draws continuous Laplace noise by a chain, for studies."""

    warmup: int = 200  # Sweeps left out of each chain.
    thin: int = 2  # Sweeps for each draw kept.
    name: ClassVar[str] = "laplace-chain"
    certified: ClassVar[bool] = False

    def condition(self, mechanism: Additive, resolved: ResolvedInvariant) -> ConditionedLaplace:
        """Return the mechanism drawn by chains.

        Raises UnsupportedError if the noise is not continuous Laplace, there are inequalities, or
        the law does not exist.
        """
        noise = mechanism.noise
        space = None if noise.discrete else solutions(mechanism, resolved)
        if space is None or noise.kind != laws.LAPLACE:
            raise UnsupportedError(
                f"sampler {self.name!r} draws continuous Laplace noise and was given {noise.name} "
                "noise; use 'auto'."
            )
        return ConditionedLaplace(mechanism, resolved, space, self.warmup, self.thin)


SAMPLER = LaplaceChainSampler()
