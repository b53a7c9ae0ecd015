"""Monotone curves: polylines with a straight ray at either end, added along one axis.

Benchmark row: `imaging`.

A curve is the graph of the derivative of a convex piecewise quadratic function, vertical and
horizontal pieces included. It is stored as points ``x[i0:i1], y[i0:i1]``, both nondecreasing, and
the slopes dy/dx of the left and the right ray, from 0 (horizontal) to inf (vertical).
"""

from __future__ import annotations

import numpy as np

from congenial.kernels.numerics.compiling import njit


@njit()
def inverse(slope: float) -> float:
    """Slope of a ray after the axes are swapped."""
    if slope == 0.0:
        return np.inf
    if slope == np.inf:
        return 0.0
    return 1.0 / slope


@njit(inner=True)
def _between(x: np.ndarray, y: np.ndarray, i: int, at: float) -> float:
    """Ordinate at `at` on the piece from point i - 1 to point i, where x[i - 1] < at < x[i]."""
    share = (at - x[i - 1]) / (x[i] - x[i - 1])
    value = y[i - 1] + share * (y[i] - y[i - 1])
    return float(min(max(value, y[i - 1]), y[i]))


@njit(inner=True)
def _off(
    x: np.ndarray, y: np.ndarray, i0: int, i1: int, left: float, right: float, i: int, at: float
) -> float:
    """Ordinate at `at`, which is no point's abscissa; point i is the first one to the right."""
    if i == i0:
        return float(y[i0] - left * (x[i0] - at) if left > 0.0 else y[i0])
    if i == i1:
        return float(y[i1 - 1] + right * (at - x[i1 - 1]) if right > 0.0 else y[i1 - 1])
    return _between(x, y, i, at)


@njit()
def span(
    x: np.ndarray, y: np.ndarray, i0: int, i1: int, left: float, right: float, at: float
) -> tuple[float, float]:
    """Least and largest ordinate at abscissa `at`; beyond a vertical ray, those of the ray."""
    if left == np.inf:
        at = max(at, x[i0])
    if right == np.inf:
        at = min(at, x[i1 - 1])
    i = i0 + int(np.searchsorted(x[i0:i1], at))
    if i == i1 or x[i] != at:
        value = _off(x, y, i0, i1, left, right, i, at)
        return value, value
    j = i0 + np.searchsorted(x[i0:i1], at, side="right")
    low, high = y[i], y[j - 1]
    if i == i0 and left == np.inf:
        low = -np.inf
    if j == i1 and right == np.inf:
        high = np.inf
    return low, high


@njit()
def add(
    xa: np.ndarray,
    ya: np.ndarray,
    a0: int,
    a1: int,
    la: float,
    ra: float,
    xb: np.ndarray,
    yb: np.ndarray,
    b0: int,
    b1: int,
    lb: float,
    rb: float,
    xo: np.ndarray,
    yo: np.ndarray,
    o: int,
) -> tuple[int, float, float]:
    """Add two curves' ordinates at equal abscissae; write from index `o` on.

    Returns the index after the last point (at most as many points as both curves have) and the
    two ray slopes. Where the abscissae do not meet, by a rounding error that the caller has
    accepted, the result is the vertical line midway.
    """
    start, end = -np.inf, np.inf
    if la == np.inf:
        start = xa[a0]
    if lb == np.inf:
        start = max(start, xb[b0])
    if ra == np.inf:
        end = xa[a1 - 1]
    if rb == np.inf:
        end = min(end, xb[b1 - 1])
    if start > end:
        xo[o] = 0.5 * (start + end)
        yo[o] = 0.0
        return o + 1, np.inf, np.inf
    i, j = a0, b0
    while i < a1 or j < b1:
        at = np.inf
        if i < a1:
            at = xa[i]
        if j < b1:
            at = min(at, xb[j])
        if at > end:
            break
        ia, jb = i, j
        while i < a1 and xa[i] == at:
            i += 1
        while j < b1 and xb[j] == at:
            j += 1
        if at < start:
            continue
        if i > ia:
            low, high = ya[ia], ya[i - 1]
        else:
            low = _off(xa, ya, a0, a1, la, ra, i, at)
            high = low
        if j > jb:
            low, high = low + yb[jb], high + yb[j - 1]
        else:
            value = _off(xb, yb, b0, b1, lb, rb, j, at)
            low, high = low + value, high + value
        xo[o], yo[o] = at, low
        o += 1
        if high > low:
            xo[o], yo[o] = at, high
            o += 1
    return o, la + lb, ra + rb
