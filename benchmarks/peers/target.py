"""The law that the chains draw from: Laplace noise at every node of a tree that adds up.

The chains move real numbers, so they get the continuous law; its log density at the leaves' noise
u is minus the sum over all nodes of the size of the node's noise (the sum of u below it), over the
scale. This is the easier target: no chain here could draw integers as it stands, but the
tree Metropolis–Hastings.
"""

from __future__ import annotations

from dataclasses import dataclass

import numba
import numpy as np

import congenial as cg
from congenial.types import FloatArray, IntArray


@dataclass(frozen=True)
class Target:
    """A tree's conditional law over the noise of its leaves.

    Attributes
    ----------
    above : ndarray of int64, shape (n,)
        Parent of each node, -1 at the root; a parent comes before its children.
    leaves : ndarray of int64, shape (k,)
    x : ndarray of float64, shape (k,)
        Confidential counts of the leaves.
    scale : float
    nonnegative : bool
        Whether released leaves are at least 0.
    """

    above: IntArray
    leaves: IntArray
    x: FloatArray
    scale: float
    nonnegative: bool


def target(tree: cg.Tree, x: IntArray, scale: float, *, nonnegative: bool) -> Target:
    """Return the target of a tree whose parents come before their children."""
    if (tree.parents >= np.arange(len(tree))).any():
        raise ValueError("a parent comes after its child; order the nodes from the root down.")
    counts = x[tree.leaves].astype(np.float64)
    return Target(tree.parents, tree.leaves, counts, scale, nonnegative)


@dataclass(frozen=True)
class Chains:
    """What a peer drew.

    Attributes
    ----------
    draws : ndarray of float64, shape (chains, kept, k)
        Leaves' noise.
    seconds : float
        Processor time of those draws, without warm-up, tuning and compiling.
    note : str
    """

    draws: FloatArray
    seconds: float
    note: str


@numba.njit(cache=True)
def log_density(
    u: FloatArray, above: IntArray, leaves: IntArray, rate: float, sums: FloatArray
) -> float:
    """Log density of the leaves' noise, up to a constant; `sums` is room for all nodes."""
    sums[:] = 0.0
    for i in range(leaves.size):
        sums[leaves[i]] = u[i]
    total = 0.0
    for v in range(above.size - 1, -1, -1):
        total += abs(sums[v])
        if above[v] >= 0:
            sums[above[v]] += sums[v]
    return -rate * total


def start(law: Target, rng: np.random.Generator) -> FloatArray:
    """Return a dispersed starting point within the bounds."""
    u = rng.laplace(0.0, law.scale, law.x.size)
    return np.maximum(u, 0.5 - law.x) if law.nonnegative else u


def judge(chains: Chains) -> tuple[float, float]:
    """Return the smallest bulk effective sample size over the leaves, and the largest R-hat.

    References
    ----------
    Vehtari, Gelman, Simpson, Carpenter and Bürkner (2021), Rank-normalization, folding, and
    localization.
    """
    import warnings

    with warnings.catch_warnings():
        # a notice about the library's own future
        warnings.simplefilter("ignore", FutureWarning)
        import arviz

    data = arviz.convert_to_dataset({"u": chains.draws})
    ess = arviz.ess(data, method="bulk")["u"].to_numpy()
    rhat = arviz.rhat(data, method="rank")["u"].to_numpy()
    return float(ess.min()), float(rhat.max())
