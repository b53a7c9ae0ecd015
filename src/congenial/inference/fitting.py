"""Priors fitted from noisy measurements alone (empirical Bayes)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from congenial.errors import ArgumentError
from congenial.imaging.closest import project
from congenial.inference.measured import Problem
from congenial.inference.priors import Prior
from congenial.invariants.written import bounds, consistent
from congenial.kernels.network import evidence, moments
from congenial.kernels.numerics import laws
from congenial.types import FloatArray, IntArray

Places = npt.NDArray[np.intp]

# Least mean of a leaf, in counts: with mean 0, every positive count would be impossible.
_LEAST_MEAN = 0.02
# Grid of the dispersions and of the fractions of empty leaves.
_DISPERSIONS = np.exp(np.linspace(np.log(0.04), np.log(100.0), 11))
_ZEROS = np.array([0.0, 0.05, 0.15, 0.3, 0.45, 0.6, 0.75, 0.9])
# Dirichlet prior of the law of shapes: standard deviation of the log dispersion around 0,
# probability that the fraction of empty leaves is 0, and weight, as a number of families.
_SPREAD, _NONE_EMPTY, _FAMILIES = 1.2, 0.8, 8.0
# Steps of the EM algorithm that fits the law of shapes.
_STEPS = 30
# Least gain in log likelihood, in nats, for which a level gets a fraction of empty leaves.
_PROOF = 10.0
# Largest noise, relative to a level's mean count, at which a fraction of empty leaves is fitted:
# with more noise, measurements do not distinguish empty leaves, and the tables become very wide.
_TELLS = 0.5
# Largest drop of a law, in nats, between its mode at 0 and its other mode: beyond a larger drop,
# truncation would lose the second mode.
_VALLEY = 16.0
# Largest relative variance, in excess of Poisson, to which an uncertain mean widens a law: wider
# laws would make ever more leaves empty.
_WIDEST = 1.0 / 0.3
# Step of log means: families in the same step use the same likelihoods.
_APART = 0.05
# Range of noise over which a likelihood is summed, in nats of the noise law.
_NATS = 14.0


def fit(problem: Problem, family: str) -> Prior:
    """Fit the law of the leaves from noisy measurements alone.

    The mean of each leaf is the estimated mean of its siblings, given all measurements and shrunk
    towards the other families of the level. A family's dispersion and fraction of empty leaves are
    averaged over their posterior law, and shrunk likewise.

    Notes
    -----
    A shape is a dispersion and a fraction of empty leaves. The law of shapes over the families of a
    level is the law of largest likelihood on a grid, with a Dirichlet prior (Kiefer and Wolfowitz,
    1956; Laird, 1978). A family's relative variance 1 / r is its posterior mean under this law,
    enlarged twice. First, a factor corrects for the mean, which was fitted to the same leaves. Then
    it is at least the former plus ``k v / m**2``, up to a limit, where the mean m of k leaves has
    variance v. So the prior of a measured sum is at least as wide as the law that the sum was
    fitted from (Morris, 1983).

    References
    ----------
    Kiefer and Wolfowitz (1956), "Consistency of the maximum likelihood estimator in the presence
    of infinitely many incidental parameters", Annals of Mathematical Statistics 27.
    Laird (1978), "Nonparametric maximum likelihood estimation of a mixing distribution", Journal of
    the American Statistical Association 73.
    Morris (1983), "Parametric empirical Bayes inference: theory and applications", Journal of the
    American Statistical Association 78.
    """
    leaves = problem.tree.leaves
    free = leaves[~problem.pinned[leaves]]
    mean = np.full(leaves.size, _LEAST_MEAN)
    if not free.size:
        return Prior(mean)
    _, group, size = np.unique(problem.tree.parents[free], return_inverse=True, return_counts=True)
    level = np.zeros(size.size, dtype=np.int64)
    level[group] = problem.tree.level[free]
    place = np.searchsorted(leaves, free)
    of_group, relative = _means(problem, free, group, size, level)
    if family == "poisson":
        mean[place] = of_group[group]
        return Prior(mean)
    dispersion, zeros = np.ones(leaves.size), np.zeros(leaves.size)
    spread, q = _shapes(problem, free, group, of_group, level)
    # the mean was fitted to the same leaves, as in the variance of a sample
    spread *= size / np.maximum(size - 1.0, 1.0)
    r = 1.0 / np.maximum(spread, np.minimum(spread + size * relative, _WIDEST))
    mean[place] = (of_group / (1.0 - q))[group]
    dispersion[place], zeros[place] = r[group], q[group]
    return Prior(mean, dispersion, zeros)


def _means(
    problem: Problem, free: Places, group: Places, size: Places, level: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Return the mean of the leaves of every family, and its relative variance.

    The posterior of a family's sum combines the measurements with a normal law of all families of
    the level, and is truncated at 0.
    """
    tree = problem.tree
    seen = problem.measured | problem.pinned
    if not seen.any():
        raise ArgumentError("nothing is measured to fit a prior from; give a Prior.")
    noise = problem.mechanism.noise.variances(problem.mechanism.scales)
    weight = np.where(problem.measured, 1.0 / noise, 0.0)
    lo = np.where(problem.pinned, problem.lo, -np.inf)
    hi = np.where(problem.pinned, problem.hi, np.inf)
    values = np.where(seen, problem.y, 0).astype(np.float64)
    whole = consistent(tree) & bounds(lo, hi)
    nearest = project(values, whole, weights=weight if weight.any() else None)
    total = np.bincount(group, weights=np.asarray(nearest, dtype=np.float64)[free])
    variance = _variances(problem, free, group, noise)
    center, spread = total.copy(), variance.copy()
    for depth in np.unique(level):
        here = np.flatnonzero(level == depth)
        known = here[np.isfinite(variance[here])]
        if known.size > 2:
            m, v = total[known] / size[known], variance[known] / size[known] ** 2
            middle = max(float(m.mean()), 0.0)
            between = float(((m - middle) ** 2).sum()) / (known.size - 1.0)
            # standard error of the sample variance: tau is an upper estimate
            error = np.sqrt(2.0 / (known.size - 1.0))
            tau = max(between - v.mean(), 0.0) + error * max(between, float(v.mean()))
            level_variance = np.maximum(tau * size[known] ** 2.0, 1e-12)
            both = _combined(variance[known], level_variance)
            own, shared = total[known] / variance[known], middle * size[known] / level_variance
            center[known], spread[known] = both * (own + shared), both
    unknown = np.isinf(spread)
    spread[unknown] = np.maximum(center[unknown], 1.0) ** 2 / size[unknown]
    kind = np.full(size.size, laws.GAUSSIAN, dtype=np.int64)
    least, most = np.zeros(size.size), np.full(size.size, np.inf)
    found, error = np.empty(size.size), np.empty(size.size)
    # a narrower normal law would lie on one integer only
    deviation = np.sqrt(np.maximum(spread, 0.25))
    moments.moments(kind, deviation, center, least, most, np.zeros(size.size), found, error)
    mean = np.maximum(found / size, _LEAST_MEAN)
    return mean, np.minimum(spread, error) / (mean * size) ** 2


def _variances(problem: Problem, free: Places, group: Places, noise: FloatArray) -> FloatArray:
    """Return the variance of each family's sum given all measurements, as of normal noise.

    Bounds are ignored. Two passes (Hay et al., 2010) combine the measurements below a node, then
    those above it and below its siblings.
    """
    tree, n = problem.tree, len(problem.tree)
    own = np.where(problem.measured, noise, np.inf)
    own[problem.pinned] = 1e-12
    below, sums, lacking = own.copy(), np.zeros(n), np.zeros(n, dtype=np.int64)
    levels = [np.flatnonzero(tree.level == depth) for depth in range(tree.depth)]
    for at in reversed(levels[1:]):
        inner = at[~tree.is_leaf[at]]
        whole = np.where(lacking[inner] > 0, np.inf, sums[inner])
        below[inner] = _combined(own[inner], whole)
        known = np.isfinite(below[at])
        sums += np.bincount(tree.parents[at], np.where(known, below[at], 0.0), n)
        lacking += np.bincount(tree.parents[at[~known]], minlength=n)
    above = np.full(n, np.inf)
    for at in levels[1:]:
        parent, known = tree.parents[at], np.isfinite(below[at])
        others = np.maximum(sums[parent] - np.where(known, below[at], 0.0), 0.0)
        others[lacking[parent] > ~known] = np.inf
        above[at] = _combined(own[parent], above[parent]) + others
    known = np.isfinite(below[free])
    inside = np.bincount(group, np.where(known, below[free], 0.0)).astype(np.float64)
    missing = np.bincount(group[~known], minlength=inside.size)
    parent = np.zeros(inside.size, dtype=np.intp)
    parent[group] = tree.parents[free]
    beside = np.maximum(sums[parent] - inside, 0.0)
    beside[lacking[parent] > missing] = np.inf
    inside[missing > 0] = np.inf
    outside = _combined(own[parent], above[parent]) + beside
    return _combined(inside, outside)


def _combined(one: FloatArray, other: FloatArray) -> FloatArray:
    """Return the variance of two independent measurements combined; inf if nothing is measured."""
    with np.errstate(divide="ignore"):
        return np.asarray(1.0 / (1.0 / one + 1.0 / other))


def _shapes(
    problem: Problem, free: Places, group: Places, mean: FloatArray, level: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Return 1 / dispersion and the fraction of empty leaves of every family."""
    known = np.flatnonzero(problem.measured[free])
    curves = _curves(problem, free[known], group[known], mean)
    # between its two modes, the law falls to about the probability of 0 without empty leaves
    with_zeros = mean[:, None, None] / (1.0 - _ZEROS[None, :, None])
    valley = _DISPERSIONS * np.log1p(with_zeros / _DISPERSIONS)
    curves[(valley > _VALLEY) & (_ZEROS[None, :, None] > 0.0)] = -np.inf
    deviation = np.sqrt(problem.mechanism.noise.variances(problem.mechanism.scales))
    spread, q = np.ones(mean.size), np.zeros(mean.size)
    for depth in np.unique(level):
        here = np.flatnonzero(level == depth)
        at = known[level[group[known]] == depth]
        weights, found = _shares(curves[here, :1])
        if at.size and np.median(deviation[free[at]]) <= _TELLS * mean[group[at]].mean():
            more, better = _shares(curves[here])
            if better > found + _PROOF:
                weights = more
        likeliest = np.argmax(weights.sum(axis=2), axis=1)
        q[here] = _ZEROS[likeliest]
        of_r = weights[np.arange(here.size), likeliest]
        spread[here] = (of_r @ (1.0 / _DISPERSIONS)) / of_r.sum(axis=1)
    return spread, q


def _shares(curves: FloatArray) -> tuple[FloatArray, float]:
    """Return each family's posterior probabilities of the shapes, and the total log likelihood."""
    families, zeros, _ = curves.shape
    prior = np.tile(np.exp(-0.5 * (np.log(_DISPERSIONS) / _SPREAD) ** 2), (zeros, 1))
    prior /= prior.sum(axis=1, keepdims=True)
    if zeros > 1:
        prior[0] *= _NONE_EMPTY
        prior[1:] *= (1.0 - _NONE_EMPTY) / (zeros - 1.0)
    before = prior.ravel()
    logs = curves.reshape(families, -1)
    top = logs.max(axis=1)
    likely = np.exp(logs - top[:, None])
    share = before
    for _ in range(_STEPS):
        counted = share * ((1.0 / (likely @ share)) @ likely)
        share = (counted + _FAMILIES * before) / (families + _FAMILIES)
    weights = likely * share
    each = weights.sum(axis=1)
    weights /= each[:, None]
    return weights.reshape(curves.shape), float((np.log(each) + top).sum())


def _curves(problem: Problem, nodes: Places, group: Places, mean: FloatArray) -> FloatArray:
    """Return log marginal likelihoods, shape (families, zeros, dispersions).

    Likelihoods are computed once for families of nearly equal means and for equal measurements.
    """
    out = np.zeros((mean.size, _ZEROS.size, _DISPERSIONS.size))
    scale, y = problem.mechanism.scales[nodes], problem.y[nodes]
    step = np.rint(np.log(mean) / _APART).astype(np.int64)[group]
    order = np.lexsort((scale, y, step))
    group, scale, y, step = group[order], scale[order], y[order], step[order]
    fresh = np.ones(order.size, dtype=np.bool_)
    fresh[1:] = (np.diff(step) != 0) | (np.diff(y) != 0) | (np.diff(scale) != 0)
    once = np.flatnonzero(fresh)
    of_mean = np.unique(step)
    gaussian = problem.mechanism.noise.kind == laws.GAUSSIAN
    inverse = 0.5 / scale[once] ** 2 if gaussian else 1.0 / scale[once]
    half_width = np.ceil((np.sqrt(2.0 * _NATS) if gaussian else _NATS) * scale[once]) + 4.0
    evidence.family_curves(
        np.append(np.searchsorted(step[once], of_mean), once.size).astype(np.int64),
        y[once],
        inverse,
        gaussian,
        half_width.astype(np.int64),
        np.exp(_APART * of_mean),
        _DISPERSIONS,
        _ZEROS,
        np.append(np.searchsorted(step, of_mean), order.size).astype(np.int64),
        np.cumsum(fresh) - 1,
        group.astype(np.int64),
        out,
    )
    return out
