"""An upper bound on the log probability of an invariant, without computing it.

Tilting every weight by multipliers of the sums does not change the products over values that
satisfy the sums. The total over these values is at most the total over all values, which is the
product of the totals of the tilted weights (Chernoff's inequality). Values that are neither
measured nor bounded follow from the others if the law is proper, and are not summed over.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from congenial.kernels.numerics import laws
from congenial.sum_network.forest import SumForest
from congenial.sum_network.weights import SharedUnary, Unary
from congenial.types import FloatArray

# Limits of the interior-point method: steps, values and sums of its dense equations, and the share
# of the distance to a bound that one step may take.
_STEPS, _DENSE, _NEARER = 80, 600, 0.995
# A tilt below this, relative to the terms of its sum, is zero up to rounding.
_ROUNDED = 1e-13


def log_ceiling(forest: SumForest, weights: SharedUnary, theta: FloatArray) -> float:
    """Return a bound from above on what `exact.log_sum` returns; inf where there is none."""
    tilt = np.append(theta, 0.0)[forest.above]
    owned = forest.owner >= 0
    np.subtract.at(tilt, forest.owner[owned], forest.sign[owned] * theta[owned])
    return _tilted(weights.each, tilt)


def forest_rows(forest: SumForest) -> FloatArray | None:
    """Return the sums of a forest as rows, shape (m, n); None if they are too many."""
    if 2 * forest.n + forest.m > _DENSE:
        return None
    rows = np.zeros((forest.m + 1, forest.n))
    rows[forest.above, np.arange(forest.n)] = 1.0  # -1, no sum, is the row left out
    owned = np.flatnonzero(forest.owner >= 0)
    rows[owned, forest.owner[owned]] -= forest.sign[owned]
    return rows[:-1]


def dense_rows(sums: Sequence[Mapping[int, int]], n: int) -> FloatArray | None:
    """Return sums, each entry -> -1 or 1, as rows, shape (m, n); None if they are too many."""
    if 2 * n + len(sums) > _DENSE:
        return None
    rows = np.zeros((len(sums), n))
    for row, given in zip(rows, sums, strict=True):
        row[list(given)] = list(given.values())
    return rows


def least_ceiling(rows: FloatArray | None, each: Unary) -> float:
    """Return the least bound at the multipliers of `interior_tilts`; inf where there are no rows.

    Every multiplier gives an upper bound. The multipliers of `tilts` do not move if noise is far
    narrower than one count, because its variance vanishes, and may give no bound if entries are
    not measured.
    """
    if rows is None:
        return np.inf
    best = np.inf
    for theta in interior_tilts(rows, each):
        tilt = theta @ rows
        tilt[np.abs(tilt) <= _ROUNDED * (np.abs(theta) @ np.abs(rows))] = 0.0
        best = min(best, _tilted(each, tilt))
    return best


def interior_tilts(rows: FloatArray, each: Unary) -> Iterator[FloatArray]:
    """Yield multipliers of the sums, on the way to those of the likeliest real values.

    A primal-dual interior-point method (Wright 1997, chapter 5). Bounds are moved out by half a
    count, so that values strictly within them can satisfy the sums. A logarithmic barrier of weight
    1 keeps values off the bounds: a weight that decays at rate t has its mean 1 / t away.

    Parameters
    ----------
    rows : ndarray of float64, shape (m, n)
        The values add up to zero along each row.
    each : Unary
        Weight of each value.

    Yields
    ------
    ndarray of float64, shape (m,)
    """
    # Laplace noise is what lies above its centre less what lies below, each at a cost
    laplace = np.flatnonzero(each.kind == laws.LAPLACE)
    lo, hi = each.lo - each.center, each.hi - each.center
    low, high = np.concatenate((lo, np.maximum(-hi[laplace], 0.0))), np.append(hi, -lo[laplace])
    low[laplace] = np.maximum(lo[laplace], 0.0)
    low, high = low - 0.5, np.maximum(high, low) + 0.5
    price = np.where(each.kind == laws.LAPLACE, 1.0 / each.scale, 0.0)
    price = np.append(price, price[laplace])
    bend = np.append(
        np.where(each.kind == laws.GAUSSIAN, each.scale, np.inf) ** -2.0, np.zeros(laplace.size)
    )
    sums = np.hstack((rows, -rows[:, laplace]))
    m, n = sums.shape
    value = np.clip(np.zeros(n), low + 0.5, high - 0.5)
    below, above = 1.0 / (value - low), 1.0 / (high - value)  # forces that the bounds exert
    theta = np.zeros(m)
    yield theta
    if not m:
        return
    matrix = np.zeros((n + m, n + m))
    matrix[:n, n:], matrix[n:, :n] = -sums.T, sums
    for _ in range(_STEPS):
        room, left = value - low, high - value
        ends = np.isfinite(room), np.isfinite(left)
        gap = np.append(room[ends[0]] * below[ends[0]], left[ends[1]] * above[ends[1]])
        # where nothing satisfies the sums, steps grow without an end
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            aim = max(1.0, 0.1 * float(gap.mean())) if gap.size else 1.0
            matrix[np.arange(n), np.arange(n)] = bend + below / room + above / left
            force = theta @ sums - price - bend * value + aim / room - aim / left
            off = -(sums @ value + rows @ each.center)
            try:
                step = np.linalg.solve(matrix, np.append(force, off))
            except np.linalg.LinAlgError:
                return
            move = step[:n]
            by_below = aim / room - below - below / room * move
            by_above = aim / left - above + above / left * move
            now = np.concatenate((room, left, below, above))
            change = np.concatenate((move, -move, by_below, by_above))
            falling = (change < 0.0) & np.isfinite(now)
            size = float(np.min(-_NEARER * now[falling] / change[falling], initial=1.0))
            value, theta = value + size * move, theta + size * step[n:]
            below, above = below + size * by_below, above + size * by_above
        if not np.isfinite(np.concatenate((value, theta, below, above))).all():
            return
        yield theta
        if size == 1.0 and aim == 1.0 and np.abs(step).max() <= 1e-6 * (1.0 + np.abs(theta).max()):
            return


def _tilted(each: Unary, tilt: FloatArray) -> float:
    """Bound the log of the product of the sums of all weights, each tilted."""
    lo, hi = each.lo - each.center, each.hi - each.center
    rate = np.where(each.kind == laws.LAPLACE, 1.0 / each.scale, 0.0)
    below = _log_geometric(tilt + rate, lo, np.minimum(hi, -1.0))
    above = _log_geometric(tilt - rate, np.maximum(lo, 0.0), hi)
    # values neither tilted, measured nor bounded follow from the rest
    follows = (each.kind == laws.FLAT) & (tilt == 0.0) & np.isneginf(lo) & np.isposinf(hi)
    total = np.where(follows, 0.0, np.logaddexp(below, above))
    gaussian = each.kind == laws.GAUSSIAN
    sigma = np.where(gaussian, each.scale, 1.0)
    peak = np.clip(tilt * sigma**2, lo, hi)
    # a sum of one mode is at most its largest term and its integral
    most = np.minimum(1.0 + sigma * np.sqrt(2.0 * np.pi), hi - lo + 1.0)
    bell = peak * (tilt - 0.5 * peak / sigma**2) + np.log(most)
    return float((np.where(gaussian, bell, total) + tilt * each.center).sum())


def _log_geometric(rate: FloatArray, lo: FloatArray, hi: FloatArray) -> FloatArray:
    """Bound the log of sum exp(rate * u) over u = lo..hi from above; -inf where there is no u."""
    with np.errstate(invalid="ignore", divide="ignore"):
        end = np.where(rate > 0.0, hi, lo)
        top = np.where(rate == 0.0, 0.0, rate * end)
        falling = -np.log(-np.expm1(-np.abs(rate)))
        out = top + np.minimum(falling, np.log(hi - lo + 1.0))
    out = np.where(np.isinf(end) & (rate != 0.0), np.inf, out)
    return np.asarray(np.where(lo > hi, -np.inf, out))
