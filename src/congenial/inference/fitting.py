"""Priors fitted from noisy measurements alone (empirical Bayes)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from congenial.errors import ArgumentError
from congenial.imaging.project import project
from congenial.inference.priors import Prior
from congenial.inference.problem import Problem
from congenial.invariants import bounds, consistent
from congenial.kernels import laws
from congenial.kernels import priors as kernels

FloatArray = npt.NDArray[np.float64]

# Means are kept off 0, where no count could ever be seen.
_LEAST_MEAN = 0.02
# Dispersions tried, and leaves that their likelihood is taken over at most.
_DISPERSIONS = np.exp(np.linspace(np.log(0.02), np.log(200.0), 25))
_LEAVES = 20_000
# Leaves that a family needs for a dispersion of its own to weigh as much as its level's.
_ENOUGH = 12.0
# Nats of noise that a likelihood is summed over.
_NATS = 36.0


def fit(problem: Problem, family: str) -> Prior:
    """Fit rates of the leaves from noisy measurements alone.

    Parameters
    ----------
    problem : Problem
    family : {"poisson", "negative-binomial"}

    Returns
    -------
    Prior
        The mean of each leaf is that of its siblings: what the closest tree in weighted L2 gives
        their parent, divided among them. The dispersion of a family of siblings is the one
        of greatest marginal likelihood of their measurements, held towards that of their level.

    Notes
    -----
    Given its parent's count a family of negative binomial counts of one dispersion is
    Dirichlet-multinomial, whatever the mean: the mean says something only about the parent.
    """
    tree, leaves = problem.tree, problem.tree.leaves
    free = leaves[~problem.pinned[leaves]]
    _, group = np.unique(tree.parents[free], return_inverse=True)
    mean = np.full(leaves.size, _LEAST_MEAN)
    place = np.searchsorted(leaves, free)
    mean[place] = _means(problem, free, group)
    if family == "poisson":
        return Prior(mean)
    dispersion = np.full(leaves.size, 1.0)
    dispersion[place] = _dispersions(problem, free, group, mean[place])
    return Prior(mean, dispersion)


def _means(problem: Problem, free: npt.NDArray[np.intp], group: npt.NDArray[np.intp]) -> FloatArray:
    """Return the mean of every leaf: the share that its family leaves to each."""
    tree = problem.tree
    lo = np.where(tree.is_leaf, np.maximum(problem.lo, 0.0), problem.lo)
    variance = problem.mechanism.noise.variances(problem.mechanism.scales)
    weight = np.where(problem.measured, 1.0 / variance, 0.0)
    seen = problem.measured | problem.pinned
    if not seen.any():
        raise ArgumentError("nothing is measured to fit a prior from; give a Prior.")
    whole = consistent(tree) & bounds(lo, problem.hi)
    values = np.where(seen, problem.y, 0).astype(np.float64)
    nearest = project(values, whole, weights=weight if weight.any() else None)
    total = np.bincount(group, weights=np.asarray(nearest, dtype=np.float64)[free])
    count = np.bincount(group)
    # half a person more, so that no family is sure to be empty
    return np.maximum((total + 0.5) / count, _LEAST_MEAN)[group]


def _dispersions(
    problem: Problem, free: npt.NDArray[np.intp], group: npt.NDArray[np.intp], mean: FloatArray
) -> FloatArray:
    """Return the dispersion of every leaf that is measured, its level's where it is not."""
    measured = problem.measured[free]
    level = problem.tree.level[free]
    out = np.ones(free.size)
    for depth in np.unique(level):
        here = np.flatnonzero((level == depth) & measured)
        if not here.size:
            continue
        # spread over all families
        step = max(1, here.size // _LEAVES)
        taken = here[::step] if step > 1 else here
        curves = _likelihoods(problem, free[taken], mean[taken])
        whole = curves.sum(axis=1)
        best = int(np.argmax(whole))
        out[level == depth] = _DISPERSIONS[best]
        if step > 1:
            continue
        # a family's own likelihood, and its level's as if of so many leaves
        families, index = np.unique(group[here], return_inverse=True)
        own = np.stack([np.bincount(index, weights=curve) for curve in curves])
        held = own + _ENOUGH / here.size * whole[:, None]
        chosen = _DISPERSIONS[np.argmax(held, axis=0)]
        of_group = np.full(int(group.max()) + 1, _DISPERSIONS[best])
        of_group[families] = chosen
        at = np.flatnonzero(level == depth)
        out[at] = of_group[group[at]]
    return out


def _likelihoods(
    problem: Problem, nodes: npt.NDArray[np.intp], mean: FloatArray
) -> npt.NDArray[np.float64]:
    """Return the log marginal likelihood of each leaf at each dispersion tried."""
    noise = problem.mechanism.noise
    scale = problem.mechanism.scales[nodes]
    gaussian = noise.kind == laws.GAUSSIAN
    inverse = 0.5 / scale**2 if gaussian else 1.0 / scale
    reach = np.ceil((np.sqrt(2.0 * _NATS) if gaussian else _NATS) * scale) + 4.0
    log_mode = noise.log_pmf(np.zeros(scale.size), scale)
    y = problem.y[nodes].astype(np.float64)
    out = np.empty((_DISPERSIONS.size, nodes.size))
    for k, r in enumerate(_DISPERSIONS):
        dispersion = np.full(nodes.size, r)
        kernels.log_marginals(noise.kind, inverse, log_mode, y, mean, dispersion, reach, out[k])
    return out
