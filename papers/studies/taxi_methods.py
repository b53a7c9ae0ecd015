"""What the study of the taxi trips computes: errors of every method, and how the chain went."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from congenial.conditioning.choice import condition
from congenial.conditioning.samplers.tree_mh import TreeMH
from congenial.domain.tree import Tree
from congenial.imaging.top_down import topdown
from congenial.imaging.update import image
from congenial.invariants.written import Invariant, consistent, nonnegative
from congenial.noise.additive import Additive
from congenial.noise.discrete_laplace import DiscreteLaplace
from congenial.noise.laplace import Laplace
from congenial.randomness import Randomness
from congenial.types import FloatArray

EPSILONS = (0.5, 1.0, 2.0)
REPLICATES = 2_000
# Steps of each of four chains, all of them counted, and after the chain's own tuning.
STEPS = (1_000, 10_000, 100_000, 1_000_000)
CHAINS = 4
KEPT = 1_000
# Chains are called settled if the largest R-hat of all entries is below the first number, and the
# fewest effective draws are above the second. The usual limit, 1.01, is for one entry: the largest
# of 270 exceeds it in stationary chains of 600 effective draws.
R_HAT, EFFECTIVE = 1.05, 400.0
# Exact draws of the continuous law, to within what a grid of 1/32 trip can show.
FINE = 2.0**-5


@dataclass(frozen=True, eq=False)
class Cells:
    """Errors of one method at one epsilon.

    Attributes
    ----------
    epsilon : float
    noise : str
        "continuous" or "integer".
    method : str
    errors : ndarray of float64, shape (replicates, 3)
        L1 distance over the number of queries, by level.
    """

    epsilon: float
    noise: str
    method: str
    errors: FloatArray

    @property
    def mean(self) -> FloatArray:
        """Mean error by level."""
        return np.asarray(self.errors.mean(axis=0))

    @property
    def spread(self) -> FloatArray:
        """Standard deviation of one release's error, by level."""
        return np.asarray(self.errors.std(axis=0, ddof=1))

    @property
    def standard_error(self) -> FloatArray:
        """Standard error of the mean, by level."""
        return np.asarray(self.spread / np.sqrt(self.errors.shape[0]))


@dataclass(frozen=True, eq=False)
class Chain:
    """How M_MH went at one epsilon, for continuous noise.

    Attributes
    ----------
    epsilon : float
    steps : int
        Of each chain, after the warm-up.
    acceptance : float
    r_hat, effective : float
        Of the worst query: the largest R-hat, the fewest bulk effective draws of all chains.
    mean : ndarray of float64, shape (3,)
        Mean error by level over all draws kept.
    """

    epsilon: float
    steps: int
    acceptance: float
    r_hat: float
    effective: float
    mean: FloatArray

    @property
    def settled(self) -> bool:
        """Whether the diagnostics say that the chains have reached their law."""
        return self.r_hat < R_HAT and self.effective > EFFECTIVE


def errors(
    tree: Tree, x: npt.NDArray[np.int64], epsilon: float, noise: str, count: int, source: Randomness
) -> list[Cells]:
    """Errors of `count` releases of each method."""
    scale = 1.0 / epsilon
    sums, bounded = consistent(tree), consistent(tree) & nonnegative()
    whole = noise == "integer"
    lattice = Additive(DiscreteLaplace(scale, granularity=1.0 if whole else FINE), tree)
    plain = Additive(DiscreteLaplace(scale) if whole else Laplace(scale), tree)

    def conditioned(invariant: Invariant) -> FloatArray:
        return np.asarray(condition(lattice, invariant).sample(x, count, source), dtype=np.float64)

    def imaged(invariant: Invariant) -> FloatArray:
        return np.asarray(image(plain, invariant).sample(x, count, source), dtype=np.float64)

    def top_down() -> FloatArray:
        noisy = plain.sample(x, count, source)
        return np.array([topdown(y, tree, bounded, source) for y in noisy], dtype=np.float64)

    methods: dict[str, Callable[[], FloatArray]] = {
        "noise alone": lambda: np.asarray(plain.sample(x, count, source), dtype=np.float64),
        "exact": lambda: conditioned(sums),
        "exact, at least 0": lambda: conditioned(bounded),
        "L2": lambda: imaged(sums),
        "NNL2": lambda: imaged(bounded),
        "TopDown": top_down,
    }
    return [
        Cells(epsilon, noise, name, by_level(tree, draw() - x)) for name, draw in methods.items()
    ]


def by_level(tree: Tree, change: FloatArray) -> FloatArray:
    """Summed size of the change at each level over the number of queries, shape (rows, 3)."""
    size = np.abs(change)
    return np.stack([size[:, tree.level == depth].sum(axis=1) for depth in range(3)], axis=1) / len(
        tree
    )


def run_chain(
    tree: Tree, x: npt.NDArray[np.int64], epsilon: float, steps: int, source: Randomness
) -> Chain:
    """Run the paper's algorithm from random starts, warmed up for a tenth of its steps."""
    mechanism = Additive(Laplace(1.0 / epsilon), tree)
    sampler = condition(mechanism, consistent(tree), sampler="tree-mh")
    if not isinstance(sampler, TreeMH):
        raise TypeError("the sampler asked for is the tree Metropolis–Hastings chain")
    thin = max(1, steps // KEPT)
    draw, info = sampler.run(x, steps // thin, CHAINS, source, warmup=steps // 10, thin=thin)
    change = np.asarray(draw.values, dtype=np.float64) - x
    r_hat, effective = info.worst
    return Chain(
        epsilon,
        steps,
        float(np.mean(np.asarray(info.acceptance))),
        r_hat,
        effective,
        np.asarray(by_level(tree, change.reshape(-1, len(tree))).mean(axis=0)),
    )
