"""The closest point of a tree, by one pass up and one pass down over monotone curves.

Benchmark row: `imaging`.

Every node carries the curve of (price, value): the values that its subtree prefers when one more
unit is worth `price` to the parent. Children share a price, so their curves add up along the price
axis; the node's own cost and bounds add along the value axis. All arrays are per node.
"""

from __future__ import annotations

import numpy as np

from congenial.kernels.numerics.compiling import njit
from congenial.kernels.projection.curves import add, inverse, span
from congenial.kernels.projection.fill import fill

OK = 0
TOO_LARGE = 1


@njit(inner=True)
def _grown(array: np.ndarray, need: int) -> np.ndarray:
    """Return `array`, copied to at least `need` entries where it is shorter."""
    if need <= array.size:
        return array
    out = np.empty(max(need, 2 * array.size))
    out[: array.size] = array
    return out


@njit(inner=True)
def _own_quadratic(
    x: np.ndarray, y: np.ndarray, center: float, weight: float, lo: float, hi: float
) -> tuple[int, float, float]:
    """Curve (value, price) of ``weight / 2 * (z - center)**2`` on [lo, hi]."""
    k = 0
    if lo > -np.inf:
        x[k], y[k] = lo, weight * (lo - center)
        k += 1
    if hi < np.inf and hi > lo:
        x[k], y[k] = hi, weight * (hi - center)
        k += 1
    if k == 0:
        x[0], y[0] = center, 0.0
        k = 1
    return k, np.inf if lo > -np.inf else weight, np.inf if hi < np.inf else weight


@njit(inner=True)
def _own_linear(
    x: np.ndarray,
    y: np.ndarray,
    b0: float,
    b1: float,
    mid: float,
    weight: float,
    lo: float,
    hi: float,
) -> tuple[int, float, float]:
    """Curve of a cost with slope -weight before b0, `mid` up to b1, weight after, on [lo, hi]."""
    k = 0
    if lo > -np.inf:
        x[k] = lo
        y[k] = -weight if lo < b0 else (mid if lo < b1 else weight)
        k += 1
    if lo < b0 < hi:
        x[k], y[k] = b0, -weight
        x[k + 1], y[k + 1] = b0, mid if b1 > b0 else weight
        k += 2
    if b1 > b0 and lo < b1 < hi:
        x[k], y[k] = b1, mid
        x[k + 1], y[k + 1] = b1, weight
        k += 2
    if hi < np.inf and hi > lo:
        x[k] = hi
        y[k] = -weight if hi <= b0 else (mid if hi <= b1 else weight)
        k += 1
    return k, np.inf if lo > -np.inf else 0.0, np.inf if hi < np.inf else 0.0


@njit()
def solve(
    starts: np.ndarray,
    children: np.ndarray,
    downward: np.ndarray,
    is_root: np.ndarray,
    quadratic: bool,
    b0: np.ndarray,
    b1: np.ndarray,
    mid: np.ndarray,
    weight: np.ndarray,
    lo: np.ndarray,
    hi: np.ndarray,
    prefer: np.ndarray,
    words: np.ndarray,
    limit: int,
    z: np.ndarray,
) -> int:
    """Fill `z` with the minimiser of the summed costs over the tree.

    `downward` lists the nodes, parents first. With `quadratic` the cost of a node is
    ``weight / 2 * (z - b0)**2``, otherwise it is piecewise linear with breaks b0 <= b1. Among
    equally good values each node takes those closest to `prefer`; a non-empty `words` (one
    uint64 a node) asks for integers and breaks what ties are left. `limit` bounds the number of
    points kept.
    """
    n = downward.size
    whole = words.size > 0
    cost, val = np.empty(4 * n), np.empty(4 * n)  # outgoing curves: price, value
    sum_cost, sum_val = np.empty(4 * n), np.empty(4 * n)  # children's summed curves
    at = np.zeros((n, 2), dtype=np.int64)
    ray = np.zeros((n, 2))
    sum_at = np.zeros((n, 2), dtype=np.int64)
    sum_ray = np.zeros((n, 2))
    used, sum_used = 0, 0
    own_x, own_y = np.empty(8), np.empty(8)
    for step in range(n - 1, -1, -1):
        v = downward[step]
        if quadratic:
            k, left, right = _own_quadratic(own_x, own_y, b0[v], weight[v], lo[v], hi[v])
        else:
            k, left, right = _own_linear(
                own_x, own_y, b0[v], b1[v], mid[v], weight[v], lo[v], hi[v]
            )
        first, last = starts[v], starts[v + 1]
        size = k
        if last > first:
            points = 0
            for c in children[first:last]:
                points += at[c, 1] - at[c, 0]
            if sum_used + used + 2 * points > limit:
                return TOO_LARGE
            sum_cost = _grown(sum_cost, sum_used + points)
            sum_val = _grown(sum_val, sum_used + points)
            end, l, r = _sum_children(
                children[first:last], cost, val, at, ray, points, sum_cost, sum_val, sum_used
            )
            sum_at[v, 0], sum_at[v, 1] = sum_used, end
            sum_ray[v, 0], sum_ray[v, 1] = l, r
            size += end - sum_used
            sum_used = end
        cost, val = _grown(cost, used + size), _grown(val, used + size)
        at[v, 0] = used
        if last > first:
            used, left, right = add(
                sum_val,
                sum_cost,
                sum_at[v, 0],
                sum_at[v, 1],
                inverse(sum_ray[v, 0]),
                inverse(sum_ray[v, 1]),
                own_x,
                own_y,
                0,
                k,
                left,
                right,
                val,
                cost,
                used,
            )
        else:
            for i in range(k):
                val[used + i], cost[used + i] = own_x[i], own_y[i]
            used += k
        at[v, 1] = used
        ray[v, 0], ray[v, 1] = inverse(left), inverse(right)
    low, high = np.empty(n), np.empty(n)
    for step in range(n):
        v = downward[step]
        if is_root[v]:
            a, b = span(cost, val, at[v, 0], at[v, 1], ray[v, 0], ray[v, 1], 0.0)
            z[v] = _pick(a, b, prefer[v], whole, words, v)
        first, last = starts[v], starts[v + 1]
        if last == first:
            continue
        a, b = span(
            sum_val,
            sum_cost,
            sum_at[v, 0],
            sum_at[v, 1],
            inverse(sum_ray[v, 0]),
            inverse(sum_ray[v, 1]),
            z[v],
        )
        price = _middle(a, b)
        for c in children[first:last]:
            low[c], high[c] = span(cost, val, at[c, 0], at[c, 1], ray[c, 0], ray[c, 1], price)
        fill(children[first:last], z[v], low, high, prefer, words, z)
    return OK


@njit(inner=True)
def _middle(a: float, b: float) -> float:
    """A point inside [a, b], where either end may be infinite."""
    if a == -np.inf and b == np.inf:
        return 0.0
    if a == -np.inf:
        return b - 1.0 - abs(b)
    if b == np.inf:
        return a + 1.0 + abs(a)
    return a if a == b else 0.5 * (a + b)


@njit(inner=True)
def _pick(low: float, high: float, prefer: float, whole: bool, words: np.ndarray, v: int) -> float:
    """The preferred value in [low, high]; integers tie by a coin."""
    value = prefer
    if whole:
        value = np.floor(prefer)
        tied = value < prefer and value >= low and value + 1.0 <= high
        if value < prefer and (value < low or (tied and words[v] & np.uint64(1))):
            value += 1.0
    return min(max(value, low), high)


@njit(inner=True)
def _sum_children(
    members: np.ndarray,
    cost: np.ndarray,
    val: np.ndarray,
    at: np.ndarray,
    ray: np.ndarray,
    points: int,
    out_cost: np.ndarray,
    out_val: np.ndarray,
    out: int,
) -> tuple[int, float, float]:
    """Add the children's curves, two by two in rounds so that each point moves log k times."""
    k = members.size
    xs, ys = np.empty(points), np.empty(points)
    xt, yt = np.empty(points), np.empty(points)
    bound = np.empty(k + 1, dtype=np.int64)
    left, right = np.empty(k), np.empty(k)
    bound[0] = 0
    for i in range(k):
        c = members[i]
        size = at[c, 1] - at[c, 0]
        bound[i + 1] = bound[i] + size
        xs[bound[i] : bound[i + 1]] = cost[at[c, 0] : at[c, 1]]
        ys[bound[i] : bound[i + 1]] = val[at[c, 0] : at[c, 1]]
        left[i], right[i] = ray[c, 0], ray[c, 1]
    while k > 1:
        o, kept = 0, 0
        for i in range(0, k, 2):
            begin = o
            if i + 1 < k:
                o, l, r = add(
                    xs,
                    ys,
                    bound[i],
                    bound[i + 1],
                    left[i],
                    right[i],
                    xs,
                    ys,
                    bound[i + 1],
                    bound[i + 2],
                    left[i + 1],
                    right[i + 1],
                    xt,
                    yt,
                    o,
                )
            else:
                size = bound[i + 1] - bound[i]
                xt[o : o + size] = xs[bound[i] : bound[i + 1]]
                yt[o : o + size] = ys[bound[i] : bound[i + 1]]
                o += size
                l, r = left[i], right[i]
            left[kept], right[kept] = l, r
            bound[kept] = begin
            kept += 1
        bound[kept] = o
        k = kept
        xs, xt = xt, xs
        ys, yt = yt, ys
    size = bound[1]
    out_cost[out : out + size] = xs[:size]
    out_val[out : out + size] = ys[:size]
    return out + size, left[0], right[0]
