"""A bound from above on the log probability of an invariant, where its own sum need not be made.

For any multipliers of the sums, tilting every weight by them leaves all products over values that
satisfy the sums as they are. The sum over these values is at most that over all values, which is
the product of the tilted weights' own sums (Chernoff's inequality).
"""

from __future__ import annotations

import numpy as np

from congenial.kernels.numerics import laws
from congenial.sum_network.forest import SumForest
from congenial.sum_network.weights import SharedUnary
from congenial.types import FloatArray

# Steps of Newton's method, and sums up to which its equations are solved.
_STEPS, _DENSE = 50, 300


def log_ceiling(forest: SumForest, weights: SharedUnary, theta: FloatArray) -> float:
    """Return a bound from above on what `exact.log_sum` returns; inf where there is none."""
    each = weights.each
    tilt = np.append(theta, 0.0)[forest.above]
    owned = forest.owner >= 0
    np.subtract.at(tilt, forest.owner[owned], forest.sign[owned] * theta[owned])
    lo, hi = each.lo - each.center, each.hi - each.center
    rate = np.where(each.kind == laws.LAPLACE, 1.0 / each.scale, 0.0)
    below = _log_geometric(tilt + rate, lo, np.minimum(hi, -1.0))
    above = _log_geometric(tilt - rate, np.maximum(lo, 0.0), hi)
    total = np.logaddexp(below, above)
    gaussian = each.kind == laws.GAUSSIAN
    sigma = np.where(gaussian, each.scale, 1.0)
    peak = np.clip(tilt * sigma**2, lo, hi)
    # a sum of one mode is at most its largest term and its integral
    most = np.minimum(1.0 + sigma * np.sqrt(2.0 * np.pi), hi - lo + 1.0)
    bell = peak * (tilt - 0.5 * peak / sigma**2) + np.log(most)
    return float((np.where(gaussian, bell, total) + tilt * each.center).sum())


def least_ceiling(forest: SumForest, weights: SharedUnary) -> float:
    """Return the least `log_ceiling` that Newton's method finds where noise is normal.

    The multipliers of `tilts` do not move where noise is far narrower than one count, since its
    variance vanishes. Here a weight has the variance of the normal law of its scale, wherever its
    mean lies within its bounds. Every multiplier gives a bound from above, so that it may stop
    anywhere. Its equations are dense: longer forests have the bound without a tilt.
    """
    each, m = weights.each, forest.m
    theta = np.zeros(m)
    best = log_ceiling(forest, weights, theta)
    if m > _DENSE:
        return best
    sums = np.zeros((m + 1, each.lo.size))
    sums[forest.above, np.arange(each.lo.size)] = 1.0  # -1, no sum, is the row left out
    owned = np.flatnonzero(forest.owner >= 0)
    sums[owned, forest.owner[owned]] -= forest.sign[owned]
    sums = sums[:m]
    variance = np.where(np.isfinite(each.scale), each.scale, 1.0) ** 2
    lo, hi = each.lo - each.center, each.hi - each.center
    for _ in range(_STEPS):
        wanted = (theta @ sums) * variance
        mean, free = np.clip(wanted, lo, hi), variance * ((lo <= wanted) & (wanted <= hi))
        curve = (sums * free) @ sums.T
        ridge = 1e-12 * (1.0 + np.trace(curve))
        step = np.linalg.solve(curve + ridge * np.eye(m), sums @ (mean + each.center))
        tried = [theta - size * step for size in 0.5 ** np.arange(12.0)]
        bounds = [log_ceiling(forest, weights, other) for other in tried]
        if not min(bounds) < best:
            return best
        best, theta = min(bounds), tried[int(np.argmin(bounds))]
    return best


def _log_geometric(rate: FloatArray, lo: FloatArray, hi: FloatArray) -> FloatArray:
    """Bound the log of sum exp(rate * u) over u = lo..hi from above; -inf where there is no u."""
    with np.errstate(invalid="ignore", divide="ignore"):
        end = np.where(rate > 0.0, hi, lo)
        top = np.where(rate == 0.0, 0.0, rate * end)
        falling = -np.log(-np.expm1(-np.abs(rate)))
        out = top + np.minimum(falling, np.log(hi - lo + 1.0))
    out = np.where(np.isinf(end) & (rate != 0.0), np.inf, out)
    return np.asarray(np.where(lo > hi, -np.inf, out))
