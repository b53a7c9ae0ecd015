"""TopDown of crossing margins: each family is fitted under its parent's cells, and rounded.

Benchmark row: `cells`.

Rows are those of `interior`. A family is the children of one node, or a root by itself, or with all
nodes below it: then the fit is the closest point of the whole tree. Cells that are zero throughout
are left out of the fit.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from congenial.kernels.numerics.compiling import njit
from congenial.kernels.projection.controlled import round_cells
from congenial.kernels.projection.interior import Fit, fit_tree, with_children

# A difference below this is a rounding error, relative to the largest cell of a family.
_CLOSE = 1e-12
# Largest violation of a margin's bounds, in units of the tolerance: no cell may be free to mend it.
_LOOSE = 1e3
# Returned for a family without a table within its bounds.
IMPOSSIBLE = np.inf


class Areas(NamedTuple):
    """All nodes of a geography: N nodes, K cells, Q rows, the first K of which are the cells."""

    first: np.ndarray  # shape (F + 1,): Where each family begins in `members`.
    members: np.ndarray  # Nodes, family by family, parents first.
    above: np.ndarray  # For each member: its parent's place in the family, 0 for the first.
    head: np.ndarray  # shape (F,): The parent of each family; -1 for a family with a root.
    of: np.ndarray  # shape (K, M): The row of each cell in each margin; the first are the cells.
    weight: np.ndarray  # shape (N, Q)
    target: np.ndarray  # shape (N, Q)
    low: np.ndarray  # shape (N, Q)
    high: np.ndarray  # shape (N, Q): At `low` where a row has a fixed value.
    counted: np.ndarray  # shape (N, Q): Whether rounding counts the change of a row.


@njit(inner=True)
def _used(areas, f, x, used):
    """Number the cells that are not zero throughout a family; -1 for the others."""
    begin, end, head = areas.first[f], areas.first[f + 1], areas.head[f]
    count = 0
    for k in range(used.size):
        idle = head < 0 or x[head, k] == 0.0
        for i in range(begin, end):
            c = areas.members[i]
            low, high = areas.low[c, k], areas.high[c, k]
            idle = idle and low == 0.0 and (head >= 0 or high == 0.0)
        used[k] = -1
        if not idle:
            used[k] = count
            count += 1
    return count


@njit(inner=True)
def _center(of, above, v0, given, y, center):
    """Make targets, bounds and the parent's cells relative to integers near the measured leaves.

    Rounding errors then have the size of the noise. An inner node's integers are its children's
    sums. Returns the largest target or fixed value of a leaf, at least 1.
    """
    n, cells = center.shape
    inner = with_children(above)
    size = 1.0
    for c in range(n - 1, 0, -1):
        up = above[c - v0] + v0
        for k in range(cells):
            if not inner[c - v0]:
                low, high = given[2, c, k], given[3, c, k]
                near = given[1, c, k]
                if given[0, c, k] == 0.0:
                    near = min(max(y[0, k] / (n - 1), low), high)
                center[c, k] = np.rint(low if low == high else near)
            near = center[c, k]
            if up == 0:
                y[0, k] -= near
            elif up != c:
                center[up, k] += near
            for m in range(of.shape[1]):
                for part in range(1, 4):
                    given[part, c, of[k, m]] -= near
        for row in range(given.shape[2]):
            known = given[0, c, row] > 0.0 or given[2, c, row] == given[3, c, row]
            if known and not inner[c - v0]:
                size = max(size, abs(given[1, c, row]))
    return size


@njit(inner=True)
def _open(fit, x):
    """Free the cells of a whole tree whose bounds differ, and start within the bounds."""
    n, cells = x.shape
    inner = with_children(fit.parent)
    for c in range(n - 1, -1, -1):
        for k in range(cells):
            if not inner[c]:
                low, high = fit.low[c, k], fit.high[c, k]
                fit.free[c, k] = low < high
                x[c, k] = min(max(0.0, low), high)
            if c > 0:
                x[fit.parent[c], k] += x[c, k]
                fit.free[fit.parent[c], k] |= fit.free[c, k]
            if inner[c]:
                fit.held[c, k] = fit.low[c, k] == fit.high[c, k]
                if fit.held[c, k]:
                    fit.target[c, k] = fit.low[c, k]


@njit(inner=True)
def _start(fit, x):
    """Share out the parent's cells (the first row of `x`) among its children, within their bounds.

    Cells whose children have no choice are fixed. False if the bounds leave no values.
    """
    n, cells = x.shape
    for k in range(cells):
        low, high, size = 0.0, 0.0, 0.0
        for c in range(1, n):
            low += fit.low[c, k]
            high += fit.high[c, k]
            if fit.low[c, k] > -np.inf:
                size += abs(fit.low[c, k])
            if fit.high[c, k] < np.inf:
                size += abs(fit.high[c, k])
        whole = x[0, k]
        slack = _CLOSE * max(size, abs(whole), 1.0)
        if not low - slack <= whole <= high + slack:
            return False
        count, rest = 0, whole
        for c in range(1, n):
            if whole <= low + slack:
                x[c, k] = fit.low[c, k]
            elif whole >= high - slack:
                x[c, k] = fit.high[c, k]
            elif fit.low[c, k] == fit.high[c, k]:
                x[c, k] = fit.low[c, k]
            else:
                fit.free[c, k] = True
                fit.free[0, k] = True
                count += 1
                continue
            rest -= x[c, k]
        for c in range(1, n):
            if fit.free[c, k]:
                x[c, k] = rest / count
    return True


@njit(inner=True)
def _beyond(of, given, y):
    """Largest violation of the bounds of rows, those without a free cell included."""
    worst, rows = 0.0, np.empty(given.shape[2])
    for v in range(1, y.shape[0]):
        rows[:] = 0.0
        for k in range(of.shape[0]):
            for m in range(of.shape[1]):
                rows[of[k, m]] += y[v, k]
        for row in range(rows.size):
            worst = max(worst, given[2, v, row] - rows[row], rows[row] - given[3, v, row])
    return worst


@njit(inner=True)
def _family(areas, f, tolerance, most, words, x):
    """Fit one family, and round it where there are `words`."""
    begin, end, head = areas.first[f], areas.first[f + 1], areas.head[f]
    all_cells = x.shape[1]
    used = np.empty(all_cells, dtype=np.int64)
    cells = _used(areas, f, x, used)
    rows = areas.low.shape[1]
    n, q = end - begin + 1, cells + rows - all_cells
    # a root stands for its own parent, so that one kind of tree is enough
    alone = head < 0
    v0 = 1 if alone else 0
    of = np.empty((cells, areas.of.shape[1]), dtype=np.int64)
    given = np.zeros((4, n, q))
    held, free = np.zeros((n, q), dtype=np.bool_), np.zeros((n, cells), dtype=np.bool_)
    counted, y = np.zeros((n, q), dtype=np.bool_), np.zeros((n, cells))
    center = np.zeros((n, cells))
    given[2], given[3] = -np.inf, np.inf
    heaviest = 0.0
    for k in range(all_cells):
        at = used[k]
        if at < 0:
            for i in range(begin, end):
                x[areas.members[i], k] = 0.0
            continue
        of[at, 0] = at
        for m in range(1, of.shape[1]):
            of[at, m] = areas.of[k, m] - all_cells + cells
        if not alone:
            y[0, at] = x[head, k]
    for i in range(begin, end):
        c, v = areas.members[i], i - begin + 1
        for row in range(rows):
            at = used[row] if row < all_cells else row - all_cells + cells
            if at >= 0:
                given[0, v, at] = areas.weight[c, row]
                given[1, v, at] = areas.target[c, row]
                given[2, v, at] = areas.low[c, row]
                given[3, v, at] = areas.high[c, row]
                counted[v, at] = areas.counted[c, row]
                held[v, at] = row >= all_cells and areas.low[c, row] == areas.high[c, row]
                if held[v, at]:
                    given[1, v, at] = areas.low[c, row]
                heaviest = max(heaviest, areas.weight[c, row])
    for v in range(n):
        for row in range(q):
            given[0, v, row] /= heaviest if heaviest > 0.0 else 1.0
    above = np.zeros(n - v0, dtype=np.int64)
    above[1 - v0 :] = areas.above[begin:end]
    size = _center(of, above, v0, given, y, center)
    fit = Fit(
        above, of, given[0, v0:], given[1, v0:], given[2, v0:], given[3, v0:], held[v0:], free[v0:]
    )
    if alone:
        y[0] = 0.0
        _open(fit, y[1:])
    elif not _start(fit, y):
        return IMPOSSIBLE
    missed = fit_tree(fit, not alone, tolerance * size, most, y[v0:]) / size
    for v in range(1, n):
        for k in range(cells):
            y[v, k] = min(max(y[v, k], given[2, v, k]), given[3, v, k])
    if _beyond(of, given, y) > _LOOSE * tolerance * size:
        missed = IMPOSSIBLE
    if words.size and missed < IMPOSSIBLE:
        some = np.empty((max(n, 3), cells), dtype=np.uint64)
        for i in range(begin, end):
            for k in range(all_cells):
                if used[k] >= 0:
                    some[i - begin + 1, used[k]] = words[areas.members[i], k]
        if alone:
            # a second child, whose cells cost nothing, takes the remainders of the root's cells
            z, whole = np.zeros((2, cells)), np.empty(cells)
            for k in range(cells):
                z[0, k] = y[1, k]
                near = np.floor(y[1, k] + 2.0**-21)
                z[1, k] = max(near + 1.0 - y[1, k], 0.0)
                whole[k] = near + 1.0
                if z[1, k] > 1.0 - 2.0**-21:
                    z[1, k] = 1.0
                some[2, k] = some[1, k] ^ np.uint64(1)
            ends = np.empty((2, 2, q))
            ends[0, 0], ends[1, 0] = given[2, 1], given[3, 1]
            ends[0, 1], ends[1, 1] = -np.inf, np.inf
            also = np.zeros((2, q), dtype=np.bool_)
            also[0] = counted[1]
            beyond = round_cells(of, z, whole, ends[0], ends[1], also, some[1:3])
            y[1] = z[0]
        else:
            beyond = round_cells(
                of, y[1:], y[0], given[2, 1:], given[3, 1:], counted[1:], some[1:n]
            )
        if beyond > 0.0:
            missed = IMPOSSIBLE
    for i in range(begin, end):
        for k in range(all_cells):
            if used[k] >= 0:
                at = used[k]
                x[areas.members[i], k] = center[i - begin + 1, at] + y[i - begin + 1, at]
    return missed


@njit()
def descend_families(areas, begin, end, tolerance, most, words, x, missed):
    """Fill the cells `x` (N, K) of the children of families begin to end, whose parents are filled.

    `missed` (F,) gets each family's violation of its conditions of optimality. With `words` (N, K),
    children are rounded to integers; `words` of shape (0, 0) leave them as they are.
    """
    for f in range(begin, end):
        missed[f] = _family(areas, f, tolerance, most, words, x)
