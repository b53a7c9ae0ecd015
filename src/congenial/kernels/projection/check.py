"""Ranges of subtrees, the solve on a known active set, and the optimality certificate."""

from __future__ import annotations

import numpy as np

from congenial.kernels.numerics.compiling import njit
from congenial.kernels.projection.fill import total_of


@njit()
def reach(forest, slack, lo, hi):
    """Tighten `lo` and `hi` in place to the range that the subtree below each node allows.

    Returns the first node, leaves first, whose own bounds miss the range of its children by more
    than `slack`; -1 if there is none.
    """
    starts, children, downward, _ = forest
    for step in range(downward.size - 1, -1, -1):
        v = downward[step]
        if starts[v + 1] > starts[v]:
            below, above = 0.0, 0.0
            for c in children[starts[v] : starts[v + 1]]:
                below += lo[c]
                above += hi[c]
            if below > hi[v] + slack or above < lo[v] - slack:
                return int(v)
            a, b = max(lo[v], below), min(hi[v], above)
            if a > b:  # by rounding: the node's own bound, which is public, wins
                a, b = (hi[v], hi[v]) if below > hi[v] else (lo[v], lo[v])
            lo[v], hi[v] = a, b
    return -1


@njit()
def settle(forest, known, y, center):
    """Fill `center` with integers near `y` that add up.

    The excess of a parent over its children goes to children with a leaf that is not `known`.
    """
    starts, children, downward, is_root = forest
    n = downward.size
    guess = np.zeros(n)
    open_below = np.zeros(n, dtype=np.bool_)
    for step in range(n - 1, -1, -1):
        v = downward[step]
        total = 0.0
        for c in children[starts[v] : starts[v + 1]]:
            total += guess[c]
            open_below[v] |= open_below[c]
        if starts[v + 1] == starts[v]:
            open_below[v] = not known[v]
        guess[v] = np.floor(y[v] + 0.5) if known[v] else total
    for v in downward:
        if is_root[v]:
            center[v] = guess[v]
        gap, loose = center[v], 0
        for c in children[starts[v] : starts[v + 1]]:
            center[c] = guess[c]
            gap -= guess[c]
            loose += open_below[c]
        for c in children[starts[v] : starts[v + 1]]:
            if open_below[c]:
                share = np.floor(gap / loose)
                center[c] += share
                gap -= share
                loose -= 1
    for step in range(n - 1, -1, -1):
        v = downward[step]
        if starts[v + 1] > starts[v]:
            center[v] = 0.0
            for c in children[starts[v] : starts[v + 1]]:
                center[v] += center[c]


@njit()
def add_determined(forest, known, values):
    """Set `values` of nodes that are not `known` to the sum of their children, if determined.

    A node is determined if it is `known` or all its children are determined.
    """
    starts, children, downward, _ = forest
    determined = known.copy()
    for step in range(downward.size - 1, -1, -1):
        v = downward[step]
        if known[v] or starts[v + 1] == starts[v]:
            continue
        total, whole = 0.0, True
        for c in children[starts[v] : starts[v + 1]]:
            total += values[c]
            whole &= determined[c]
        if whole:
            determined[v] = True
            values[v] = total


@njit()
def refine(forest, y, weight, lo, hi, z):
    """Solve again in two passes, with the nodes at a bound fixed there (Hay et al. 2010).

    This removes the rounding error of the curves. Below v, the cost is ``a / 2 * (z[v] - m)**2``;
    returns a and m of all nodes, without a node's own cost and bounds.
    """
    starts, children, downward, is_root = forest
    n = downward.size
    a, m = np.empty(n), np.empty(n)
    inner_a, inner_m = np.empty(n), np.empty(n)
    for step in range(n - 1, -1, -1):
        v = downward[step]
        held = z[v] <= lo[v] or z[v] >= hi[v]
        stiff, mean = 0.0, 0.0
        if starts[v + 1] > starts[v]:
            give = 0.0
            mean = total_of(m[children[starts[v] : starts[v + 1]]])
            for c in children[starts[v] : starts[v + 1]]:
                give += np.inf if a[c] == 0.0 else 1.0 / a[c]
            stiff = np.inf if give == 0.0 else 1.0 / give
            inner_a[v], inner_m[v] = stiff, mean
        if held or stiff == np.inf:
            m[v] = z[v] if held else mean
            a[v] = np.inf
        else:
            a[v] = weight[v] + stiff
            # without a measurement, the earlier value stays
            m[v] = z[v] if a[v] == 0.0 else mean + (weight[v] / a[v]) * (y[v] - mean)
            if starts[v + 1] == starts[v] and a[v] > 0.0:
                m[v] = y[v]
    for v in downward:
        if is_root[v]:
            z[v] = m[v]
        members = children[starts[v] : starts[v + 1]]
        if members.size == 0:
            continue
        gap = z[v] - inner_m[v]
        loose = 0
        for c in members:
            if a[c] == 0.0:
                loose += 1
        for c in members:
            share = 0.0
            if loose:
                share = 1.0 / loose if a[c] == 0.0 else 0.0
            elif inner_a[v] < np.inf:
                share = inner_a[v] / a[c]
            z[c] = min(max(m[c] + share * gap, lo[c]), hi[c])
    return inner_a, inner_m


@njit()
def certify(forest, quadratic, costs, lo, hi, slack, z):
    """Residuals of optimality of `z`: the worst error of a sum, and that of a price; and prices.

    ``[below[v], above[v]]`` is the subdifferential of the cost of the subtree of v at z[v]: the
    prices at which the subtree chooses z[v]. `z` is optimal if and only if the intervals of the
    children of each node intersect and the interval of each root contains 0. Values within `slack`
    of a bound or break count as on it. The last two results are `below` and `above`.
    """
    starts, children, downward, is_root = forest
    b0, b1, mid, weight = costs
    n = downward.size
    below, above = np.empty(n), np.empty(n)
    worst_sum, worst_price = 0.0, 0.0
    for step in range(n - 1, -1, -1):
        v = downward[step]
        a, b = 0.0, 0.0
        if starts[v + 1] > starts[v]:
            a, b = -np.inf, np.inf
            total = total_of(z[children[starts[v] : starts[v + 1]]])
            for c in children[starts[v] : starts[v + 1]]:
                a, b = max(a, below[c]), min(b, above[c])
            worst_sum = max(worst_sum, abs(total - z[v]))
            if a > b:
                worst_price = max(worst_price, a - b)
                a = b = 0.5 * (a + b)
        if quadratic:
            pull = weight[v] * (z[v] - b0[v])
            a, b = a + pull, b + pull
        else:
            a += (
                -weight[v]
                if z[v] <= b0[v] + slack
                else (mid[v] if z[v] <= b1[v] + slack else weight[v])
            )
            b += (
                -weight[v]
                if z[v] < b0[v] - slack
                else (mid[v] if z[v] < b1[v] - slack else weight[v])
            )
        if z[v] <= lo[v] + slack:
            a = -np.inf
        if z[v] >= hi[v] - slack:
            b = np.inf
        below[v], above[v] = a, b
        if is_root[v]:
            worst_price = max(worst_price, a, -b)
    return worst_sum, worst_price, below, above
