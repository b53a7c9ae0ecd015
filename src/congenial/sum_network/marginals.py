"""Marginal laws of a sum network, of one variable or of all, and their summaries."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from congenial.domain.tree import Tree
from congenial.kernels.network import descend
from congenial.kernels.network import marginals as kernels
from congenial.kernels.network.messages import PRODUCT
from congenial.kernels.network.records import Slots
from congenial.kernels.network.twins import pair
from congenial.sum_network.fourier import DIRECT_LIMIT
from congenial.sum_network.network import Network
from congenial.sum_network.tables import Tables
from congenial.types import BoolArray, FloatArray, IntArray

# Most different laws that are computed one by one.
_FEW = 64
# Largest share of an entry of an even table by which rounding may change it.
_EVEN = 1e-11
_NO_NUMBERS = np.zeros(0, dtype=np.int64)


class Summaries(NamedTuple):
    """Summaries of the marginal law of every node, each of shape (n,)."""

    mean: FloatArray
    variance: FloatArray
    median: IntArray
    # `lower` to `upper` is the shortest interval of probability 1 - alpha, ends included. Of
    # several it is the most likely, and of equally likely ones (up to 1e-9) the lowest.
    lower: IntArray
    upper: IntArray
    reach: IntArray  # -reach to reach, before `center` is added, has probability 1 - alpha.
    empty: FloatArray  # Probability of 0.
    rise: FloatArray  # Mean derivative of the log prior by the dispersion.


def reaches(tables: Tables, tree: Tree, alpha: float) -> IntArray:
    """Return the reach of every node of a tree, see `Summaries`.

    The reach of each different law is computed once. A few laws are computed one by one with
    transforms, many by one pass down to them, which needs no transforms. The error of the tables
    is taken from `alpha`.
    """
    n, alpha = len(tree), max(alpha - tables.error, 0.0)
    number = _alike(tables.network.slot_class[:n].astype(np.int64), tree)
    _, different, number = np.unique(number, return_index=True, return_inverse=True)
    if different.size > _FEW:
        own = tables.table, np.zeros(tables.lo.size)
        rising = np.zeros(n), np.zeros(n, dtype=np.int64)
        even = _is_even(tables)
        none = np.empty(0)
        found = _laws(tables, *own, tree.is_leaf, alpha, rising, none, number, even=even)[0]
        return np.rint(found[:, kernels.REACH]).astype(np.int64)
    laws = (marginal(tables, int(v)) for v in different)
    return np.array([interval_and_reach(*law, alpha)[2] for law in laws], dtype=np.int64)[number]


def _is_even(tables: Tables) -> bool:
    """Whether no table changes if the signs of all values do, up to rounding."""
    lo, hi, offset = tables.windows
    used = np.flatnonzero(lo <= hi)
    if (lo[used] != -hi[used]).any():
        return False
    width = 2 * hi[used] + 1
    begin = np.repeat(np.cumsum(width) - width, width)
    ahead = np.arange(begin.size) - begin
    start = np.repeat(offset[used], width)
    one = tables.table[start + ahead]
    other = tables.table[start + np.repeat(2 * hi[used], width) - ahead]
    return bool((np.abs(one - other) <= _EVEN * np.maximum(one, other)).all())


def _alike(slot_class: IntArray, tree: Tree) -> IntArray:
    """Number the nodes of a tree, shape (n,); nodes with one number have the same law.

    A node's law follows from its message, that of its class, from its parent's law and from the
    messages of its siblings. Classes are equal only if they are built alike, so parents of one
    class have children of the same classes.
    """
    number = np.zeros(len(tree), dtype=np.int64)
    most = int(slot_class.max(initial=0)) + 1
    for depth in range(tree.depth):
        here = np.flatnonzero(tree.short_level == depth)
        above = number[tree.parents[here]] if depth else np.zeros(here.size, dtype=np.int64)
        both = above * most + slot_class[here]
        number[here] = number.max() + 1 + np.unique(both, return_inverse=True)[1]
    return number


class OneSided(NamedTuple):
    """Tails of laws that lie between the laws of two networks; other shapes are (n,)."""

    below: IntArray  # shape (n, t): Lower and upper quantiles for each tail probability.
    above: IntArray
    mean: FloatArray
    variance: FloatArray
    edge: FloatArray  # The larger probability of the first and the last value.
    lost: FloatArray  # Probability that truncation may have removed.


def marginal(tables: Tables, v: int) -> tuple[IntArray, FloatArray]:
    """Return the law of variable `v` as (values, probabilities) on its window."""
    network = tables.network
    setter = np.full(network.slots, -1, dtype=np.int64)
    split = network.op == descend.SPLIT
    linked = network.op != descend.SPLIT
    setter[network.first[linked]] = np.flatnonzero(linked)
    setter[network.second[split]] = np.flatnonzero(split)
    setter[network.third[split]] = np.flatnonzero(split)
    path: list[int] = [v]
    while True:
        i = setter[path[-1]]
        at_root = network.op[i] == descend.ROOT
        if at_root or (network.op[i] == descend.LINK and network.third[i] == 0):
            break
        path.append(int(network.first[i] if network.op[i] == descend.SPLIT else network.second[i]))
    top = int(network.slot_class[path[-1]])
    values = np.arange(tables.lo[top], tables.hi[top] + 1)
    outside = np.ones(values.size) if at_root else (values == 0).astype(np.float64)
    for parent, child in zip(path[:0:-1], path[-2::-1], strict=True):
        i = int(setter[child])
        if network.op[i] == descend.SPLIT:
            other = network.third[i] if network.second[i] == child else network.second[i]
            outside = _through_split(tables, parent, child, int(other), outside)
        else:
            outside = _through_link(tables, parent, child, int(network.third[i]), outside)
    c = int(network.slot_class[v])
    probabilities = tables.of_class(c) * outside
    probabilities = probabilities / probabilities.sum()
    kept = np.flatnonzero(probabilities > 0)
    values = np.arange(tables.lo[c], tables.hi[c] + 1)
    return values[kept[0] : kept[-1] + 1], probabilities[kept[0] : kept[-1] + 1]


def _correlate(outside: FloatArray, table: FloatArray) -> FloatArray:
    """Return sum over s of outside[s] * table[s - l], l from -(len(table) - 1)."""
    if outside.size * table.size <= DIRECT_LIMIT:
        return np.convolve(outside, table[::-1])
    size = 1 << int(np.ceil(np.log2(outside.size + table.size)))
    product = np.fft.rfft(outside, size) * np.fft.rfft(table[::-1], size)
    full = np.fft.irfft(product, size)[: outside.size + table.size - 1]
    return np.maximum(full, 0.0)


def _through_split(
    tables: Tables, parent: int, child: int, other: int, outside: FloatArray
) -> FloatArray:
    network = tables.network
    p, c, o = (int(network.slot_class[s]) for s in (parent, child, other))
    full = _correlate(outside, tables.of_class(o))
    first = int(tables.lo[p] - tables.hi[o])  # the value of index 0
    return _window(full, first, int(tables.lo[c]), int(tables.hi[c]))


def _through_link(
    tables: Tables, parent: int, child: int, sign: int, outside: FloatArray
) -> FloatArray:
    network = tables.network
    c, target = int(network.slot_class[parent]), int(network.slot_class[child])
    lo, hi = int(tables.lo[c]), int(tables.hi[c])
    around = outside.copy()
    found = False
    while network.ctype[c] == PRODUCT:
        below = int(network.right[c])
        if below == target and network.sign[c] == sign and not found:
            found = True
        else:
            at = network.sign[c] * np.arange(lo, hi + 1) - tables.lo[below]
            around *= tables.of_class(below)[at]
        c = int(network.left[c])
    around *= _window(tables.of_class(c), int(tables.lo[c]), lo, hi)
    if sign < 0:
        around, lo, hi = around[::-1], -hi, -lo
    return _window(around, lo, int(tables.lo[target]), int(tables.hi[target]))


def _window(values: FloatArray, first: int, lo: int, hi: int) -> FloatArray:
    """Return entries lo..hi of an array whose index 0 has the value `first`; 0 outside."""
    out = np.zeros(hi - lo + 1)
    start, stop = max(lo, first), min(hi, first + values.size - 1)
    if stop >= start:
        out[start - lo : stop - lo + 1] = values[start - first : stop - first + 1]
    return out


def summaries(
    tables: Tables,
    is_leaf: BoolArray,
    alpha: float,
    *,
    center: IntArray | None = None,
    dispersion: FloatArray | None = None,
) -> Summaries:
    """Return summaries of the marginal laws of a tree's nodes, by one pass down.

    The tables are filled with ``drawn=False``. Values of each node are counted from `center` (n,),
    0 by default. `rise` needs the `dispersion` (n,) of each leaf's prior, 0 where there is none.
    """
    n = is_leaf.size
    rising = np.zeros(n) if dispersion is None else dispersion
    begin = np.zeros(n, dtype=np.int64) if center is None else center
    # nodes of one class are summarised once, unless their derivatives differ
    origin = np.zeros(n, dtype=np.int64) if dispersion is None else begin
    own = tables.table, np.zeros(tables.lo.size)
    found = _laws(tables, *own, is_leaf, alpha, (rising, origin), np.empty(0))[0]
    whole = [kernels.MEDIAN, kernels.LOW, kernels.HIGH, kernels.REACH]
    median, low, high, reach = np.rint(found[:, whole]).astype(np.int64).T
    mean, variance, empty, rise = found[
        :, [kernels.MEAN, kernels.VARIANCE, kernels.EMPTY, kernels.RISE]
    ].T
    values = median + begin, low + begin, high + begin
    return Summaries(mean + begin, variance, *values, reach, empty, rise)


def one_sided(
    around: Tables, shown: FloatArray, lost: FloatArray, is_leaf: BoolArray, tails: FloatArray
) -> OneSided:
    """Return the ends of laws of networks that differ from `around` below the node alone."""
    none = np.zeros(is_leaf.size), np.zeros(is_leaf.size, dtype=np.int64)
    found, below, above = _laws(around, shown, lost, is_leaf, 0.5, none, tails)
    columns = [kernels.MEAN, kernels.VARIANCE, kernels.EDGE, kernels.LOST]
    return OneSided(below, above, *found[:, columns].T)


def _laws(
    tables: Tables,
    shown: FloatArray,
    lost: FloatArray,
    is_leaf: BoolArray,
    alpha: float,
    rising: tuple[FloatArray, IntArray],
    tails: FloatArray,
    number: IntArray = _NO_NUMBERS,
    *,
    even: bool = False,
) -> tuple[FloatArray, IntArray, IntArray]:
    """Return the results of one pass down over the marginal laws of the nodes.

    Nothing is truncated if tails are asked for. Nodes of one `number` have the same law. `even`:
    see `kernels.marginals`; weights must decrease on both sides of 0, as those of noise do.
    """
    network, n = tables.network, is_leaf.size
    dispersion, base = rising
    cut = 0.0 if tails.size else kernels.CUT
    ends = np.zeros(network.slots, dtype=np.bool_)
    ends[:n] = is_leaf
    out = np.empty((n, kernels.SUMMARIES))
    below, above = (np.empty((n, tails.size), dtype=np.int64) for _ in range(2))
    twin = _twins(network, dispersion, base, number)
    nodes = Slots(network.slot_class, twin, ends, dispersion, base)
    of = network.program, network.left, tables.windows, tables.table, shown, lost
    kernels.marginals(*of, nodes, alpha, cut, even, tails, (out, below, above))
    return out, below, above


def _twins(network: Network, dispersion: FloatArray, base: IntArray, number: IntArray) -> IntArray:
    """Return the slot whose summaries each slot has; nodes of one class may differ in these two."""
    of = network.slot_class[: base.size]
    alike = np.ones(network.ctype.size, dtype=np.bool_)
    for column in (dispersion, base):
        some = np.zeros(alike.size, dtype=column.dtype)
        some[of] = column
        alike[of[column != some[of]]] = False
    twin = np.empty(network.slots, dtype=np.int64)
    of_classes = network.slot_class, network.left, network.right
    pair(*network.program[:4], *of_classes, alike, number, twin)
    return twin


def interval_and_reach(
    values: IntArray, probabilities: FloatArray, alpha: float
) -> tuple[int, int, int]:
    """Return (lower, upper, reach) of one law on consecutive values, as `Summaries` has them."""
    out = np.empty(kernels.SUMMARIES)
    kernels.summarise(np.ascontiguousarray(probabilities), float(values[0]), alpha, out)
    return int(out[kernels.LOW]), int(out[kernels.HIGH]), int(out[kernels.REACH])
