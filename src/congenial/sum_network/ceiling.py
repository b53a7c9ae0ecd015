"""An upper bound on the log probability of an invariant, without computing it.

Tilting every weight by multipliers of the sums does not change the products over values that
satisfy the sums. The total over these values is at most the total over all values, which is the
product of the totals of the tilted weights (Chernoff's inequality). Values that are neither
measured nor bounded follow from the others if the law is proper, and are not summed over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any

import numpy as np
import numpy.typing as npt

from congenial.kernels.numerics import elementwise, laws
from congenial.sum_network.forest import SumForest
from congenial.sum_network.weights import SharedUnary, Unary
from congenial.types import FloatArray, IntArray

Rows = FloatArray | Any  # dense, or a sparse array, for which scipy has no types

# Limits of the interior-point method: steps, size of its dense and of its sparse equations, and
# the part of the distance to a bound that one step may take.
_STEPS, _DENSE, _SPARSE, _NEARER = 80, 600, 200_000, 0.995
# Relative error of a term of the bound, rounded up.
_ROUNDING = 2.0**-46
# Most times that multipliers are doubled while the bound falls.
_DOUBLINGS = 10
# A tilt below this, relative to the terms of its sum, is zero up to rounding.
_ROUNDED = 1e-13


def log_ceiling(forest: SumForest, weights: SharedUnary, theta: FloatArray) -> float:
    """Return an upper bound on `Tables.log_sum`; inf if none is known."""
    tilt = np.append(theta, 0.0)[forest.above]
    owned = forest.owner >= 0
    np.subtract.at(tilt, forest.owner[owned], forest.sign[owned] * theta[owned])
    return _tilted(weights.each, tilt)


def forest_rows(forest: SumForest) -> Rows | None:
    """Return the sums of a forest as rows, shape (m, n); None if there are too many."""
    summands = np.flatnonzero(forest.above >= 0)
    owned = np.flatnonzero(forest.owner >= 0)
    row = np.append(forest.above[summands], owned).astype(np.int64)
    entry = np.append(summands, forest.owner[owned]).astype(np.int64)
    value = np.append(np.ones(summands.size), -1.0 * forest.sign[owned])
    return _rows(row, entry, value, (forest.m, forest.n))


def sum_rows(sums: Sequence[Mapping[int, int]], n: int) -> Rows | None:
    """Return sums, each entry -> -1 or 1, as rows, shape (m, n); None if there are too many."""
    row = np.repeat(np.arange(len(sums), dtype=np.int64), [len(given) for given in sums])
    entry = np.array([v for given in sums for v in given], dtype=np.int64)
    value = np.array([a for given in sums for a in given.values()], dtype=np.float64)
    return _rows(row, entry, value, (len(sums), n))


def _rows(row: IntArray, entry: IntArray, value: FloatArray, shape: tuple[int, int]) -> Rows | None:
    """Return a matrix of these entries, sparse if it is large; None if it is too large."""
    size = 2 * shape[1] + shape[0]
    if size <= _DENSE:
        rows = np.zeros(shape)
        rows[row, entry] = value
        return rows
    if size > _SPARSE:
        return None
    from scipy.sparse import csr_array

    return csr_array((value, (row, entry)), shape)


def least_ceiling(rows: Rows | None, each: Unary) -> float:
    """Return the least bound at the multipliers of `interior_tilts`; inf where there are no rows.

    Every multiplier gives an upper bound. The multipliers of `tilts` do not move if noise is far
    narrower than one count, because its variance vanishes, and may give no bound if entries are
    not measured.
    """
    if rows is None:
        return np.inf

    def bound(theta: FloatArray) -> float:
        tilt = theta @ rows
        tilt[np.abs(tilt) <= _ROUNDED * (np.abs(theta) @ abs(rows))] = 0.0
        return _tilted(each, tilt)

    best, theta = min(((bound(t), t) for t in interior_tilts(rows, each)), key=itemgetter(0))
    # many values less than half a count beyond their bounds make the multipliers too small
    for _ in range(_DOUBLINGS):
        theta = 2.0 * theta
        farther = bound(theta)
        if not farther < best:
            break
        best = farther
    return best


def interior_tilts(rows: Rows, each: Unary) -> Iterator[FloatArray]:
    """Yield multipliers of the sums, on the way to those of the likeliest real values.

    A primal-dual interior-point method (Wright 1997, chapter 5). Bounds are moved out by half a
    count, so that values strictly within them can satisfy the sums. A logarithmic barrier of weight
    1 keeps values off the bounds: a weight that decays at rate t has its mean 1 / t away. The
    values add up to zero along each of the `rows`, shape (m, n), dense or sparse.
    """
    # Laplace noise is the part above its centre less the part below, each at a price
    laplace = np.flatnonzero(each.kind == laws.LAPLACE)
    lo, hi = each.lo - each.center, each.hi - each.center
    low, high = np.concatenate((lo, np.maximum(-hi[laplace], 0.0))), np.append(hi, -lo[laplace])
    low[laplace] = np.maximum(lo[laplace], 0.0)
    low, high = low - 0.5, np.maximum(high, low) + 0.5
    price = np.where(each.kind == laws.LAPLACE, 1.0 / each.scale, 0.0)
    price = np.append(price, price[laplace])
    bend = np.append(
        1.0 / np.where(each.kind == laws.GAUSSIAN, each.scale, np.inf) ** 2, np.zeros(laplace.size)
    )
    m, n = rows.shape[0], each.kind.size + laplace.size
    value = np.clip(np.zeros(n), low + 0.5, high - 0.5)
    below, above = 1.0 / (value - low), 1.0 / (high - value)  # forces that the bounds exert
    theta = np.zeros(m)
    yield theta
    if not m:
        return
    sums, solve = _equations(rows, laplace)
    for _ in range(_STEPS):
        room, left = value - low, high - value
        ends = np.isfinite(room), np.isfinite(left)
        gap = np.append(room[ends[0]] * below[ends[0]], left[ends[1]] * above[ends[1]])
        # if nothing satisfies the sums, steps grow without limit
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            aim = max(1.0, 0.1 * float(gap.mean())) if gap.size else 1.0
            diagonal = bend + below / room + above / left
            force = theta @ sums - price - bend * value + aim / room - aim / left
            off = -(sums @ value + rows @ each.center)
            try:
                step = solve(diagonal, np.append(force, off))
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


def _equations(
    rows: Rows, laplace: npt.NDArray[np.intp]
) -> tuple[Rows, Callable[[FloatArray, FloatArray], FloatArray]]:
    """Return the rows, those of Laplace noise twice, and a solver of the equations of a step.

    The matrix of a step has the curvatures of the values on its diagonal, and the rows beside it.
    """
    if isinstance(rows, np.ndarray):
        sums = np.hstack((rows, -rows[:, laplace]))
        m, n = sums.shape
        matrix = np.block([[np.zeros((n, n)), -sums.T], [sums, np.zeros((m, m))]])

        def solve(diagonal: FloatArray, right: FloatArray) -> FloatArray:
            matrix[np.arange(n), np.arange(n)] = diagonal
            return np.asarray(np.linalg.solve(matrix, right))

        return sums, solve
    from scipy import sparse
    from scipy.sparse.linalg import splu

    columns = sparse.csr_array(sparse.hstack((rows, -rows[:, laplace])))
    beside = sparse.block_array([[None, -columns.T], [columns, None]], format="csc")

    def solve_sparse(diagonal: FloatArray, right: FloatArray) -> FloatArray:
        if not np.isfinite(diagonal).all():
            raise np.linalg.LinAlgError("a value is at its bound")
        bends = np.append(diagonal, np.zeros(columns.shape[0]))
        try:
            return np.asarray(splu((beside + sparse.diags_array(bends)).tocsc()).solve(right))
        except RuntimeError as error:  # no pivot is left
            raise np.linalg.LinAlgError(str(error)) from error

    return columns, solve_sparse


def _tilted(each: Unary, tilt: FloatArray) -> float:
    """Bound the log of the product of the sums of all weights, each tilted."""
    lo, hi = each.lo - each.center, each.hi - each.center
    rate = np.where(each.kind == laws.LAPLACE, 1.0 / each.scale, 0.0)
    below = _log_geometric(tilt + rate, lo, np.minimum(hi, -1.0))
    above = _log_geometric(tilt - rate, np.maximum(lo, 0.0), hi)
    # values neither tilted, measured nor bounded follow from the rest
    follows = (each.kind == laws.FLAT) & (tilt == 0.0) & np.isneginf(lo) & np.isposinf(hi)
    total = np.where(follows, 0.0, elementwise.log_add(below, above))
    gaussian = each.kind == laws.GAUSSIAN
    sigma = np.where(gaussian, each.scale, 1.0)
    peak = np.clip(tilt * sigma**2, lo, hi)
    # a sum of one mode is at most its largest term and its integral
    most = np.minimum(1.0 + sigma * np.sqrt(2.0 * np.pi), hi - lo + 1.0)
    bell = peak * (tilt - 0.5 * peak / sigma**2) + elementwise.log(most)
    bell = np.minimum(bell, _log_narrow(tilt, sigma, lo, hi))
    own, moved = np.where(gaussian, bell, total), tilt * each.center
    return float((own + moved).sum() + _ROUNDING * (np.abs(own) + np.abs(moved)).sum())


def _log_narrow(tilt: FloatArray, sigma: FloatArray, lo: FloatArray, hi: FloatArray) -> FloatArray:
    """Bound the log of sum exp(tilt * u - u^2 / (2 sigma^2)) over u = lo..hi from above.

    Tight if sigma is far below 1. On each side of the largest term, the ratio of a term to the one
    before is at most that of the first two, and falls by exp(-1 / sigma^2) a step.
    """
    mode = np.clip(np.rint(tilt * sigma**2), lo, hi)
    steeper = elementwise.exp(-1.0 / sigma**2)
    beside = np.zeros(mode.size)
    for way, end in ((1.0, hi), (-1.0, lo)):
        first = elementwise.exp(np.minimum(way * tilt - (way * mode + 0.5) / sigma**2, 0.0))
        with np.errstate(divide="ignore"):  # where sigma is large, this bounds nothing
            beside += np.where(mode == end, 0.0, first / (1.0 - first * steeper))
    return np.asarray(mode * (tilt - 0.5 * mode / sigma**2) + elementwise.log1p(beside))


def _log_geometric(rate: FloatArray, lo: FloatArray, hi: FloatArray) -> FloatArray:
    """Bound the log of sum exp(rate * u) over u = lo..hi from above; -inf where there is no u."""
    with np.errstate(invalid="ignore", divide="ignore"):
        end = np.where(rate > 0.0, hi, lo)
        top = np.where(rate == 0.0, 0.0, rate * end)
        falling = -elementwise.log(-elementwise.expm1(-np.abs(rate)))
        out = top + np.minimum(falling, elementwise.log(hi - lo + 1.0))
    out = np.where(np.isinf(end) & (rate != 0.0), np.inf, out)
    return np.asarray(np.where(lo > hi, -np.inf, out))
