"""Priors fitted from noisy measurements alone (empirical Bayes)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from congenial.errors import ArgumentError
from congenial.imaging.project import project
from congenial.inference.priors import Prior
from congenial.inference.problem import Problem
from congenial.invariants import bounds, consistent
from congenial.kernels import evidence, laws

FloatArray = npt.NDArray[np.float64]
Places = npt.NDArray[np.intp]

# Means are kept off 0, where no count could ever be seen.
_LEAST_MEAN = 0.02
# Dispersions and shares of empty leaves that are tried.
_DISPERSIONS = np.exp(np.linspace(np.log(0.04), np.log(100.0), 11))
_ZEROS = np.array([0.0, 0.05, 0.15, 0.3, 0.45, 0.6, 0.75, 0.9])
# Empty leaves are told from small ones where the noise is at most so much of a level's mean count:
# beyond it measurements do not tell them, and leaves of two modes ask for very wide tables.
_TELLS = 0.5
# What a family's level says of it weighs as much as so many leaves.
_ENOUGH = 12.0
# Nats of noise that a likelihood is summed over.
_NATS = 14.0


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
        their parent, divided among them. Dispersion and share of empty leaves of a family of
        siblings are those of greatest marginal likelihood of their measurements, held towards
        those of their level.

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
    of_group = _means(problem, free, group)
    if family == "poisson":
        mean[place] = of_group[group]
        return Prior(mean)
    dispersion, zeros = np.ones(leaves.size), np.zeros(leaves.size)
    r, q = _shapes(problem, free, group, of_group)
    mean[place] = (of_group / (1.0 - q))[group]
    dispersion[place], zeros[place] = r[group], q[group]
    return Prior(mean, dispersion, zeros)


def _means(problem: Problem, free: Places, group: Places) -> FloatArray:
    """Return the mean of every family of leaves: the share that it leaves to each."""
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
    return np.asarray(np.maximum((total + 0.5) / count, _LEAST_MEAN))


def _shapes(
    problem: Problem, free: Places, group: Places, mean: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the dispersion and the share of empty leaves of every family."""
    families = mean.size
    level = np.zeros(families, dtype=np.int64)
    level[group] = problem.tree.level[free]
    known = np.flatnonzero(problem.measured[free])
    seen = np.bincount(group[known], minlength=families)
    curves = _curves(problem, free[known], group[known], mean)
    deviation = np.sqrt(problem.mechanism.noise.variances(problem.mechanism.scales))
    r, q = np.ones(families), np.zeros(families)
    for depth in np.unique(level):
        here = np.flatnonzero(level == depth)
        leaves = int(seen[here].sum())
        if leaves:
            own = curves[here]
            at = known[level[group[known]] == depth]
            if np.median(deviation[free[at]]) > _TELLS * mean[group[at]].mean():
                own[:, _DISPERSIONS.size :] = -np.inf
            best = np.argmax(own + _ENOUGH / leaves * own.sum(axis=0), axis=1)
            q[here] = _ZEROS[best // _DISPERSIONS.size]
            r[here] = _DISPERSIONS[best % _DISPERSIONS.size]
    return r, q


def _curves(problem: Problem, nodes: Places, group: Places, mean: FloatArray) -> FloatArray:
    """Return the log marginal likelihood of each family, shape (families, shapes tried)."""
    order = np.lexsort((problem.y[nodes], group))
    nodes, group = nodes[order], group[order]
    start = np.searchsorted(group, np.arange(mean.size + 1))
    scale = problem.mechanism.scales[nodes]
    gaussian = problem.mechanism.noise.kind == laws.GAUSSIAN
    inverse = 0.5 / scale**2 if gaussian else 1.0 / scale
    reach = np.ceil((np.sqrt(2.0 * _NATS) if gaussian else _NATS) * scale) + 4.0
    out = np.empty((mean.size, _ZEROS.size, _DISPERSIONS.size))
    evidence.family_curves(
        start.astype(np.int64),
        problem.y[nodes],
        inverse,
        gaussian,
        reach.astype(np.int64),
        mean,
        _DISPERSIONS,
        _ZEROS,
        out,
    )
    return out.reshape(mean.size, _ZEROS.size * _DISPERSIONS.size)
