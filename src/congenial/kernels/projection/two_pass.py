"""The closest point of a tree, by one pass up and one pass down over monotone curves.

Benchmark row: `imaging`.

Every node carries the curve of (price, value): the values that its subtree prefers when one more
unit is worth `price` to the parent. Children share a price, so their curves add up along the price
axis; the node's own cost and bounds add along the value axis. All arrays are per node. A leaf may
have a given curve: that of a part of the tree which is worked out elsewhere.
"""

from __future__ import annotations

import numpy as np

from congenial.kernels.numerics.compiling import njit
from congenial.kernels.projection.curves import add, inverse, span
from congenial.kernels.projection.fill import fill
from congenial.kernels.projection.forest import Curves

OK = 0
TOO_LARGE = 1
# Rows of points, and the axes along which curves are added.
PRICE, VALUE = 0, 1


@njit(inner=True)
def _grown(points, need):
    """Return points (2, k), copied to a larger array if there is room for fewer than `need`."""
    size = points.shape[1]
    if need <= size:
        return points
    out = np.empty((2, max(need, 2 * size)))
    out[:, :size] = points
    return out


@njit(inner=True)
def _own_quadratic(out, center, weight, lo, hi):
    """Curve (value, price) of ``weight / 2 * (z - center)**2`` on [lo, hi]."""
    k = 0
    if lo > -np.inf:
        out[VALUE, k], out[PRICE, k] = lo, weight * (lo - center)
        k += 1
    if hi < np.inf and hi > lo:
        out[VALUE, k], out[PRICE, k] = hi, weight * (hi - center)
        k += 1
    if k == 0:
        out[VALUE, 0], out[PRICE, 0] = center, 0.0
        k = 1
    return k, np.inf if lo > -np.inf else weight, np.inf if hi < np.inf else weight


@njit(inner=True)
def _own_linear(out, b0, b1, mid, weight, lo, hi):
    """Curve of a cost with slope -weight below b0, `mid` up to b1, weight above, on [lo, hi]."""
    k = 0
    if lo > -np.inf:
        out[VALUE, k] = lo
        out[PRICE, k] = -weight if lo < b0 else (mid if lo < b1 else weight)
        k += 1
    if lo < b0 < hi:
        out[VALUE, k], out[PRICE, k] = b0, -weight
        out[VALUE, k + 1], out[PRICE, k + 1] = b0, mid if b1 > b0 else weight
        k += 2
    if b1 > b0 and lo < b1 < hi:
        out[VALUE, k], out[PRICE, k] = b1, mid
        out[VALUE, k + 1], out[PRICE, k + 1] = b1, weight
        k += 2
    if hi < np.inf and hi > lo:
        out[VALUE, k] = hi
        out[PRICE, k] = -weight if hi <= b0 else (mid if hi <= b1 else weight)
        k += 1
    return k, np.inf if lo > -np.inf else 0.0, np.inf if hi < np.inf else 0.0


@njit()
def rise(forest, quadratic, costs, lo, hi, given, limit):
    """Return a status, the curve of each node, and the summed curve of each node's children.

    Abscissae of the sums are values, so that their rays are those of the inverse. A leaf that has
    points in `given` has that curve, and no cost or bounds of its own. `limit` bounds the number
    of points kept.
    """
    starts, children, downward, _ = forest
    b0, b1, mid, weight = costs
    n = downward.size
    points, at, ray = np.empty((2, 4 * n)), np.zeros((n, 2), dtype=np.int64), np.zeros((n, 2))
    # the children's summed curves, with values as abscissae
    sums, sum_at, sum_ray = np.empty_like(points), np.zeros_like(at), np.zeros_like(ray)
    own, own_at, own_ray = np.empty((2, 8)), np.zeros((1, 2), dtype=np.int64), np.empty((1, 2))
    used, sums_used, status = 0, 0, OK
    for step in range(n - 1, -1, -1):
        v = downward[step]
        first, last = starts[v], starts[v + 1]
        if given.at.shape[0] > 0 and given.at[v, 1] > given.at[v, 0]:
            points = _grown(points, used + given.at[v, 1] - given.at[v, 0])
            at[v, 0] = used
            used = _copied(given.points, given.at[v, 0], given.at[v, 1], points, used)
            at[v, 1] = used
            ray[v, 0], ray[v, 1] = given.ray[v, 0], given.ray[v, 1]
            continue
        if quadratic:
            k, left, right = _own_quadratic(own, b0[v], weight[v], lo[v], hi[v])
        else:
            k, left, right = _own_linear(own, b0[v], b1[v], mid[v], weight[v], lo[v], hi[v])
        if last > first:
            size = 0
            for c in children[first:last]:
                size += at[c, 1] - at[c, 0]
            if sums_used + used + 2 * size > limit:
                status = TOO_LARGE
                break
            sums = _grown(sums, sums_used + size)
            end, l, r = _sum_children(children[first:last], points, at, ray, size, sums, sums_used)
            sum_at[v, 0], sum_at[v, 1] = sums_used, end
            sum_ray[v, 0], sum_ray[v, 1] = inverse(l), inverse(r)
            points = _grown(points, used + k + end - sums_used)
            sums_used = end
            own_at[0, 1], own_ray[0, 0], own_ray[0, 1] = k, left, right
            at[v, 0] = used
            used, left, right = add(
                VALUE, sums, sum_at, sum_ray, v, own, own_at, own_ray, 0, points, used
            )
        else:
            points = _grown(points, used + k)
            at[v, 0] = used
            used = _copied(own, 0, k, points, used)
        at[v, 1] = used
        ray[v, 0], ray[v, 1] = inverse(left), inverse(right)
    return status, Curves(points, at, ray), Curves(sums, sum_at, sum_ray)


@njit()
def fall(forest, curves, sums, prefer, words, z):
    """Fill `z` with the minimiser of the summed costs over the tree; curves are those of `rise`.

    Among equally good values, each node takes the closest to `prefer`. If `words` is not empty (one
    uint64 for each node), values are integers and words break the remaining ties.
    """
    starts, children, downward, is_root = forest
    points, at, ray = curves
    n = downward.size
    whole = words.size > 0
    low, high = np.empty(n), np.empty(n)
    for step in range(n):
        v = downward[step]
        if is_root[v]:
            a, b = span(PRICE, points, at, ray, v, 0.0)
            z[v] = _pick(a, b, prefer[v], whole, words, v)
        first, last = starts[v], starts[v + 1]
        if last == first:
            continue
        a, b = span(VALUE, sums.points, sums.at, sums.ray, v, z[v])
        price = _middle(a, b)
        for c in children[first:last]:
            low[c], high[c] = span(PRICE, points, at, ray, c, price)
        fill(children[first:last], z[v], low, high, prefer, words, z)


@njit(inner=True)
def _middle(a, b):
    """A point inside [a, b], where either end may be infinite."""
    if a == -np.inf and b == np.inf:
        return 0.0
    if a == -np.inf:
        return b - 1.0 - abs(b)
    if b == np.inf:
        return a + 1.0 + abs(a)
    return a if a == b else 0.5 * (a + b)


@njit(inner=True)
def _pick(low, high, prefer, whole, words, v):
    """The value in [low, high] closest to `prefer`; a coin breaks ties of integers."""
    value = prefer
    if whole:
        value = np.floor(prefer)
        tied = value < prefer and value >= low and value + 1.0 <= high
        if value < prefer and (value < low or (tied and words[v] & np.uint64(1))):
            value += 1.0
    return min(max(value, low), high)


@njit(inner=True)
def _sum_children(members, points, at, ray, size, out, place):
    """Add the children's curves in rounds of pairs, so that each point is copied log k times."""
    k = members.size
    old, new = np.empty((2, size)), np.empty((2, size))
    old_at, old_ray = np.empty((k, 2), dtype=np.int64), np.empty((k, 2))
    o = 0
    for i in range(k):
        c = members[i]
        old_at[i, 0] = o
        o = _copied(points, at[c, 0], at[c, 1], old, o)
        old_at[i, 1] = o
        old_ray[i, 0], old_ray[i, 1] = ray[c, 0], ray[c, 1]
    while k > 1:
        o, kept = 0, 0
        for i in range(0, k, 2):
            begin = o
            left, right = old_ray[i, 0], old_ray[i, 1]
            if i + 1 < k:
                o, left, right = add(
                    PRICE, old, old_at, old_ray, i, old, old_at, old_ray, i + 1, new, o
                )
            else:
                o = _copied(old, old_at[i, 0], old_at[i, 1], new, o)
            old_at[kept, 0], old_at[kept, 1] = begin, o
            old_ray[kept, 0], old_ray[kept, 1] = left, right
            kept += 1
        k = kept
        old, new = new, old
    return _copied(old, 0, old_at[0, 1], out, place), old_ray[0, 0], old_ray[0, 1]


@njit(inner=True)
def _copied(points, begin, stop, out, o):
    """Copy points to `out` from point `o` on; return the index after them."""
    for i in range(begin, stop):
        out[PRICE, o], out[VALUE, o] = points[PRICE, i], points[VALUE, i]
        o += 1
    return o
