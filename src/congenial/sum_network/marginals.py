"""Marginal laws of a sum network, of one variable or of all, and their summaries."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from congenial.domain.tree import Tree
from congenial.kernels.network import descend
from congenial.kernels.network import marginals as kernels
from congenial.kernels.network.messages import PRODUCT
from congenial.kernels.network.records import Slots
from congenial.kernels.network.twins import pair
from congenial.kernels.numerics import elementwise
from congenial.sum_network.fourier import DIRECT_LIMIT, convolve_directly
from congenial.sum_network.network import Network
from congenial.sum_network.tables import Tables
from congenial.types import BoolArray, FloatArray, IntArray

# Most different laws that are computed one by one.
_FEW = 64
# Largest share of an entry of an even table by which rounding may change it.
_EVEN = 1e-11
# Most entries of spectra that are transformed at once, of those of one family, and of the bounds
# from which the lengths of transforms follow.
_AT_ONCE, _OF_FAMILY, _OF_ALL = 1 << 20, 1 << 22, 1 << 25
# Largest total variation that transforms may cost a law: half of the `TIE` that a reach has to
# spare.
_OFF_BY = 0.5 * kernels.TIE
# Mass of a sum that may fall on wrong values because transforms are periodic, and the number of
# exponents of the bound on that mass. Largest exponent times value: exp(700) is a double.
_BEYOND, _EXPONENTS, _STEEPEST = 1e-15, 16, 700.0
# Nanoseconds of processor time, measured: transforms take so long for each entry, each law and each
# level, and sums term by term for each product and each node.
_PER_ENTRY, _PER_LAW, _PER_LEVEL = 50.0, 2e4, 3e5
_PER_PRODUCT, _PER_NODE = 0.25, 300.0
_UNIT = 2.0**-53
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

    The reach of each different law is computed once. A few laws are computed one by one, many by
    one pass down to them: by transforms if laws are even and wide, otherwise term by term. The
    error of the tables is taken from `alpha`.
    """
    n, alpha = len(tree), max(alpha - tables.error, 0.0)
    number = _alike(tables.network.slot_class[:n].astype(np.int64), tree)
    _, different, number = np.unique(number, return_index=True, return_inverse=True)
    if different.size <= _FEW:
        laws = (marginal(tables, int(v)) for v in different)
        found = [interval_and_reach(*law, alpha)[2] for law in laws]
        return np.array(found, dtype=np.int64)[number]
    even = _is_even(tables)
    if even:
        listed = _different(tables, tree, different, number)
        if _transforms_pay(tables, tree, listed):
            each = _reaches_of_even(tables, listed, alpha)
            if each is not None:
                return each[number]
    own = tables.table, np.zeros(tables.lo.size)
    rising = np.zeros(n), np.zeros(n, dtype=np.int64)
    none = np.empty(0)
    summed = _laws(tables, *own, tree.is_leaf, alpha, rising, none, number, even=even)[0]
    return np.rint(summed[:, kernels.REACH]).astype(np.int64)


class _Different(NamedTuple):
    """The different laws of a tree's nodes, from the root down.

    Children of one class have one law if their parents have one law.
    """

    of: IntArray  # shape (k,): Class of the nodes that have the law.
    above: IntArray  # shape (k,): Law of their parents, ascending; -1 at the root.
    times: IntArray  # shape (k,): How many children of one parent have the law.
    begins: IntArray  # shape (k + 1,): Where the laws of the children of each law's nodes begin.


class _Rows(NamedTuple):
    """Messages from above, a row for each of some laws."""

    laws: IntArray  # shape (r,)
    outside: FloatArray  # shape (r, w): Entries from 0 on; 1 at 0, and 0 beyond the window.
    off_by: FloatArray  # shape (r,): Bound on the error of the entries.


def _different(tables: Tables, tree: Tree, first: IntArray, number: IntArray) -> _Different:
    """List the different laws; `first` has a node of each, `number` the law of each node."""
    above = np.where(tree.parents[first] < 0, -1, number[tree.parents[first]])
    listed = np.zeros(number.size, dtype=np.bool_)
    listed[first] = True
    counted = (tree.parents < 0) | listed[tree.parents]
    times = np.bincount(number[counted], minlength=first.size)
    of = tables.network.slot_class[first].astype(np.int64)
    return _Different(of, above, times, np.searchsorted(above, np.arange(first.size + 1)))


def _transforms_pay(tables: Tables, tree: Tree, different: _Different) -> bool:
    """Whether `_reaches_of_even` is likely to take less time than sums term by term."""
    hi, counts = tables.hi[different.of] + 1.0, np.diff(different.begins)
    parents = np.flatnonzero(counts)
    starts, counts = different.begins[parents], counts[parents]
    own, widest = hi[parents], np.maximum.reduceat(hi, starts)
    # a sum is taken apart by one convolution for each halving of like parts, two for other parts
    sums = 2.0 * (counts - 1) + np.add.reduceat(elementwise.log2(different.times), starts)
    each = _PER_PRODUCT * float(sums @ (2.0 * own * widest)) + _PER_NODE * len(tree)
    entries = float((counts + 1.0) @ (2.5 * (own + widest)))
    fixed = _PER_LAW * different.of.size + _PER_LEVEL * tree.depth
    return _PER_ENTRY * entries + fixed < each


def _reaches_of_even(tables: Tables, different: _Different, alpha: float) -> IntArray | None:
    """Return the reach of each different law, shape (k,), by transforms, if all tables are even.

    The message to a child is that to its parent, times the parent's own weight, convolved with the
    tables of the child's siblings. The transform of this convolution is a product. All messages are
    largest at 0, so an absolute error of an entry is small beside the total of a law. Returns None
    if a family has too many different members, or if the bound on the errors is too large.
    """
    size, sizes = different.of.size, np.diff(different.begins)
    inner = different.of[sizes > 0]
    if size * _EXPONENTS > _OF_ALL or not (tables.network.ctype[inner] == PRODUCT).all():
        return None
    down = _Down(tables, different, _lengths(tables, different))
    if (sizes * (down.length // 2 + 1)).max() > _OF_FAMILY:
        return None
    out, roots = np.zeros(size, dtype=np.int64), np.flatnonzero(different.above < 0)
    most = tables.hi[different.of[roots]]
    outside = (np.arange(int(most.max()) + 1) <= most[:, None]).astype(np.float64)
    stack = [iter([_Rows(roots, outside, np.zeros(roots.size))])]
    while stack:
        rows = next(stack[-1], None)
        if rows is None:
            stack.pop()
            continue
        out[rows.laws], off_by = down.reaches(rows, alpha)
        if not off_by <= _OFF_BY:
            return None
        stack.append(down.below(rows))
    return out


def _lengths(tables: Tables, different: _Different) -> IntArray:
    """Return the lengths of the transforms for the children of each law's nodes; 0 without any.

    The convolution of all children has at most `_BEYOND` of its mass where the period would move
    it into a window. Markov's inequality for cosh(t x) bounds that mass (Chernoff 1952).
    """
    hi, members = tables.hi, different.of
    out, parents = np.zeros(members.size, dtype=np.int64), np.flatnonzero(np.diff(different.begins))
    if not parents.size:
        return out
    starts, times = different.begins[parents], different.times.astype(np.float64)
    used, place = np.unique(members, return_inverse=True)
    wholes = [np.append(half[0], 2.0 * half[1:]) for half in (_half(tables, c) for c in used)]
    wholes = [whole / whole.sum() for whole in wholes]
    values = np.arange(max(whole.size for whole in wholes), dtype=np.float64)
    variance = np.array([whole @ values[: whole.size] ** 2 for whole in wholes])
    # the first law is the root's, which is nobody's child
    joint = np.add.reduceat(times * variance[place], starts)
    spans = np.zeros(parents.size)
    if joint.any():
        # a normal law of variance v would have its best exponent at some standard deviations over v
        least, most = 4.0 / np.sqrt([joint.max(), variance[variance > 0.0].min()])
        steepest = _STEEPEST / values[-1]
        exponents = np.geomspace(min(least, steepest), min(most, steepest), _EXPONENTS)
        growth = np.cosh(exponents[:, None] * values)
        logs = np.array([elementwise.log(growth[:, : whole.size] @ whole) for whole in wholes])
        joint = np.add.reduceat(times[:, None] * logs[place], starts)
        spans = ((joint - elementwise.log(0.5 * _BEYOND)) / exponents).min(axis=1)
    widest, own = np.maximum.reduceat(hi[members], starts), hi[members[parents]]
    # a period is longer than a window, too
    least = np.maximum(own + widest + spans, 2.0 * np.maximum(own, widest)) + 16.0
    power = elementwise.power_of_two_above(least)
    # multiples of 5 and 3 are transformed as fast
    out[parents] = (
        np.select([least <= 0.625 * power, least <= 0.75 * power], [0.625, 0.75], 1.0) * power
    )
    return out


@dataclass(frozen=True, eq=False)
class _Down:
    """The way down the different laws of even tables, see `_reaches_of_even`."""

    tables: Tables
    different: _Different
    length: IntArray  # shape (k,): Of the transforms for children, see `_lengths`.

    def reaches(self, rows: _Rows, alpha: float) -> tuple[IntArray, float]:
        """Return the reach of the law of each row, and the largest error bound of these laws."""
        of = self.different.of[rows.laws]
        own = self._halves(of, rows.outside.shape[1])
        law = rows.outside * own
        law[:, 1:] *= 2.0
        inside = np.cumsum(law, axis=1)
        total = inside[:, -1]
        shown = 2.0 * own.sum(axis=1) - own[:, 0]
        off_by = float((rows.off_by * shown / total).max())  # no total is 0: entries at 0 are not
        found = inside >= ((1.0 - alpha + kernels.TIE) * total)[:, None]
        return np.where(found.any(axis=1), found.argmax(axis=1), self.tables.hi[of]), off_by

    def below(self, rows: _Rows) -> Iterator[_Rows]:
        """Yield the messages to the children of the nodes of some rows."""
        length = self.length[rows.laws]
        counts = np.diff(self.different.begins)[rows.laws] + 1
        for size in np.unique(length[length > 0]).tolist():
            at = np.flatnonzero(length == size)
            batch = np.cumsum(counts[at]) * size // _AT_ONCE
            for part in np.split(at, np.flatnonzero(np.diff(batch)) + 1):
                few = _Rows(rows.laws[part], rows.outside[part], rows.off_by[part])
                yield self._children(few, size)

    def _children(self, rows: _Rows, size: int) -> _Rows:
        """Return the messages to all children of some nodes, by transforms of one size."""
        network, hi, different = self.tables.network, self.tables.hi, self.different
        of = different.of[rows.laws]
        own = self._halves(network.left[of].astype(np.int64), int(hi[of].max()) + 1)
        around = _spectra(rows.outside[:, : own.shape[1]] * own, size)
        # nodes with sums of one class have children of the same classes
        _, known, family = np.unique(network.right[of], return_index=True, return_inverse=True)
        laws = [np.arange(*different.begins[q : q + 2]) for q in rows.laws]
        classes = np.unique(np.concatenate([different.of[laws[row]] for row in known]))
        parts = _spectra(self._halves(classes, int(hi[classes].max()) + 1), size)
        parts /= parts[:, :1]  # the first entry is the sum of all values
        siblings = []
        for row in known:
            here = np.searchsorted(classes, different.of[laws[row]])
            siblings.append(_others(parts[here], different.times[laws[row]]))
        spectra = np.concatenate([around[row] * siblings[at] for row, at in enumerate(family)])
        children = np.concatenate(laws)
        most = hi[different.of[children]]
        outside = np.fft.irfft(spectra, size)[:, : int(most.max()) + 1]
        peak = outside[:, 0].copy()
        # An entry of a transform is off by `unit` times the sum of the sizes it adds up. So spectra
        # of siblings, at most 1 in size, are off by `unit` each. A product of k of these is off by
        # 2 k `unit` times itself for the factors above 1/2, and by `unit` for all others.
        owner = np.repeat(np.arange(of.size), [at.size for at in laws])
        shown, total = 2.0 * own.sum(axis=1) - own[:, 0], around[:, 0]
        mean = np.concatenate([_mean_size(siblings[at], size) for at in family])
        number = np.array([different.times[at].sum() for at in laws], dtype=np.float64)
        unit = 7.0 * elementwise.log2(size) * _UNIT
        off_by = rows.off_by[owner] * np.minimum(shown[owner] * mean, 1.0)
        off_by += unit * (2.0 * number[owner] + 2.0) * _mean_size(spectra, size)
        off_by += unit * (_mean_size(around, size)[owner] + total[owner] * mean)
        off_by += _BEYOND * total[owner]
        off_by[~(peak > 0.0)] = np.inf
        peak = np.maximum(peak, 1e-300)
        off_by /= peak
        outside = np.maximum(outside, 0.0) / peak[:, None]
        outside[:, 0] = 1.0
        outside[np.arange(outside.shape[1]) > most[:, None]] = 0.0
        return _Rows(children, outside, off_by)

    def _halves(self, classes: IntArray, width: int) -> FloatArray:
        """Return the first entries of the tables of classes from 0 on, a row for each, or 0."""
        some, place = np.unique(classes, return_inverse=True)
        out = np.zeros((some.size, width))
        for row, c in zip(out, some.tolist(), strict=True):
            half = _half(self.tables, c)[:width]
            row[: half.size] = half
        return out[place]


def _half(tables: Tables, c: int) -> FloatArray:
    """Return the entries of an even table from 0 on, a view."""
    begin = int(tables.offset[c] + tables.hi[c])
    return tables.table[begin : begin + int(tables.hi[c]) + 1]


def _spectra(halves: FloatArray, size: int) -> FloatArray:
    """Return the transforms of even rows, whose entries from 0 on are given; they are real."""
    rows, width = halves.shape
    whole = np.zeros((rows, size))
    whole[:, :width] = halves
    whole[:, size - width + 1 :] = halves[:, :0:-1]
    return np.ascontiguousarray(np.fft.rfft(whole).real)


def _others(parts: FloatArray, times: IntArray) -> FloatArray:
    """Return the product of all rows, each as many times as stated, without one of each row."""
    out, power, left = np.ones_like(parts), parts, times - 1
    while left.any():
        odd = left % 2 == 1
        out[odd] *= power[odd]
        left = left // 2
        power = power * power
    if len(parts) > 1:
        whole = out * parts
        out[1:] *= np.cumprod(whole[:-1], axis=0)
        out[:-1] *= np.cumprod(whole[:0:-1], axis=0)[::-1]
    return out


def _mean_size(spectra: FloatArray, size: int) -> FloatArray:
    """Return at least the mean size of the entries of whole spectra, whose halves are given."""
    return np.asarray(2.0 * np.abs(spectra).sum(axis=1) / size)


def _is_even(tables: Tables) -> bool:
    """Whether no table changes if the signs of all values do, up to rounding."""
    return bool(kernels.is_even(tables.windows, tables.table, _EVEN))


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
        # not `np.convolve`, whose threads wait for each other on a busy machine
        size = outside.size + table.size - 1
        return convolve_directly(outside, table[::-1], 0, size, plain=True)
    size = int(elementwise.power_of_two_above(outside.size + table.size))
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
