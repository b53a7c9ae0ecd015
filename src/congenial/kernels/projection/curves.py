"""Monotone curves: polylines with a straight ray at either end, added along one axis.

Benchmark row: `imaging`.

A curve is the graph of the derivative of a convex piecewise quadratic function, vertical and
horizontal pieces included. Many are stored end to end in one array `points` (2, k) of prices and
values: curve v has ``points[:, at[v, 0] : at[v, 1]]``, both nondecreasing. Row `axis` of the points
is the abscissa x, the other the ordinate y; ``ray[v]`` are the slopes dy/dx of the left and the
right ray, from 0 (horizontal) to inf (vertical).
"""

from __future__ import annotations

import numpy as np

from congenial.kernels.numerics.compiling import njit


@njit()
def inverse(slope):
    """Slope of a ray after the axes are swapped."""
    if slope == 0.0:
        return np.inf
    if slope == np.inf:
        return 0.0
    return 1.0 / slope


@njit(inner=True)
def _between(axis, points, i, at):
    """Ordinate at `at` on the piece from point i - 1 to point i, where x[i - 1] < at < x[i]."""
    x0, x1 = points[axis, i - 1], points[axis, i]
    y0, y1 = points[1 - axis, i - 1], points[1 - axis, i]
    value = y0 + (at - x0) / (x1 - x0) * (y1 - y0)
    return float(min(max(value, y0), y1))


@njit(inner=True)
def _off(axis, points, ends, i, at):
    """Ordinate at `at`, which is not a point's abscissa; point i is the first to its right."""
    i0, i1, left, right = ends
    if i == i0:
        y = points[1 - axis, i0]
        return float(y - left * (points[axis, i0] - at) if left > 0.0 else y)
    if i == i1:
        y = points[1 - axis, i1 - 1]
        return float(y + right * (at - points[axis, i1 - 1]) if right > 0.0 else y)
    return _between(axis, points, i, at)


@njit()
def span(axis, points, at, ray, v, x):
    """Least and largest ordinate of curve v at `x`; beyond a vertical ray, that ray's ordinates."""
    i0, i1, left, right = at[v, 0], at[v, 1], ray[v, 0], ray[v, 1]
    if left == np.inf:
        x = max(x, points[axis, i0])
    if right == np.inf:
        x = min(x, points[axis, i1 - 1])
    i = i0 + int(np.searchsorted(points[axis, i0:i1], x))
    if i == i1 or points[axis, i] != x:
        value = _off(axis, points, (i0, i1, left, right), i, x)
        return value, value
    j = i0 + np.searchsorted(points[axis, i0:i1], x, side="right")
    low, high = points[1 - axis, i], points[1 - axis, j - 1]
    if i == i0 and left == np.inf:
        low = -np.inf
    if j == i1 and right == np.inf:
        high = np.inf
    return low, high


@njit()
def add(axis, a, at_a, ray_a, v, b, at_b, ray_b, w, out, o):
    """Add the ordinates of curve v of `a` and curve w of `b`; write to `out` from point `o` on.

    Returns the index after the last point (at most as many points as both curves have) and the
    two ray slopes. If the ranges of abscissae miss each other, by a rounding error that the caller
    has accepted, the result is the vertical line midway.
    """
    a0, a1, la, ra = at_a[v, 0], at_a[v, 1], ray_a[v, 0], ray_a[v, 1]
    b0, b1, lb, rb = at_b[w, 0], at_b[w, 1], ray_b[w, 0], ray_b[w, 1]
    other = 1 - axis
    start, end = -np.inf, np.inf
    if la == np.inf:
        start = a[axis, a0]
    if lb == np.inf:
        start = max(start, b[axis, b0])
    if ra == np.inf:
        end = a[axis, a1 - 1]
    if rb == np.inf:
        end = min(end, b[axis, b1 - 1])
    if start > end:
        out[axis, o], out[other, o] = 0.5 * (start + end), 0.0
        return o + 1, np.inf, np.inf
    i, j = a0, b0
    while i < a1 or j < b1:
        x = np.inf
        if i < a1:
            x = a[axis, i]
        if j < b1:
            x = min(x, b[axis, j])
        if x > end:
            break
        ia, jb = i, j
        while i < a1 and a[axis, i] == x:
            i += 1
        while j < b1 and b[axis, j] == x:
            j += 1
        if x < start:
            continue
        if i > ia:
            low, high = a[other, ia], a[other, i - 1]
        else:
            low = _off(axis, a, (a0, a1, la, ra), i, x)
            high = low
        if j > jb:
            low, high = low + b[other, jb], high + b[other, j - 1]
        else:
            value = _off(axis, b, (b0, b1, lb, rb), j, x)
            low, high = low + value, high + value
        out[axis, o], out[other, o] = x, low
        o += 1
        if high > low:
            out[axis, o], out[other, o] = x, high
            o += 1
    return o, la + lb, ra + rb
