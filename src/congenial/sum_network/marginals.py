"""Marginal laws of a sum network, from the messages below a node and those around it."""

from __future__ import annotations

import numpy as np

from congenial.kernels.network import descend
from congenial.kernels.network.messages import PRODUCT
from congenial.sum_network.fourier import DIRECT_LIMIT
from congenial.sum_network.tables import Tables
from congenial.types import FloatArray, IntArray


def marginal_table(tables: Tables, v: int) -> tuple[IntArray, FloatArray]:
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
        if network.op[i] == descend.ROOT or (
            network.op[i] == descend.LINK and network.third[i] == 0
        ):
            break
        path.append(int(network.first[i] if network.op[i] == descend.SPLIT else network.second[i]))
    outside = _top(tables, path[-1], int(setter[path[-1]]))
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


def _top(tables: Tables, slot: int, i: int) -> FloatArray:
    c = int(tables.network.slot_class[slot])
    width = int(tables.hi[c] - tables.lo[c] + 1)
    if tables.network.op[i] == descend.ROOT:
        return np.ones(width)
    outside = np.zeros(width)
    outside[-tables.lo[c]] = 1.0
    return outside


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
    first = tables.lo[p] - tables.hi[o]  # value that full[0] speaks of
    return _window(full, int(first), int(tables.lo[c]), int(tables.hi[c]))


def _through_link(
    tables: Tables, parent: int, child: int, sign: int, outside: FloatArray
) -> FloatArray:
    network = tables.network
    c = int(network.slot_class[parent])
    target = int(network.slot_class[child])
    lo, hi = int(tables.lo[c]), int(tables.hi[c])
    around = outside.copy()
    found = False
    while network.ctype[c] == PRODUCT:
        below = int(network.right[c])
        if below == target and network.sign[c] == sign and not found:
            found = True
        else:
            read = tables.of_class(below)
            at = network.sign[c] * np.arange(lo, hi + 1) - tables.lo[below]
            around *= read[at]
        c = int(network.left[c])
    around *= _window(tables.of_class(c), int(tables.lo[c]), lo, hi)
    if sign < 0:
        around, lo, hi = around[::-1], -hi, -lo
    return _window(around, lo, int(tables.lo[target]), int(tables.hi[target]))


def _window(values: FloatArray, first: int, lo: int, hi: int) -> FloatArray:
    """Return values for lo..hi of an array whose index 0 speaks of `first`; 0 outside."""
    out = np.zeros(hi - lo + 1)
    start, stop = max(lo, first), min(hi, first + values.size - 1)
    if stop >= start:
        out[start - lo : stop - lo + 1] = values[start - first : stop - first + 1]
    return out
