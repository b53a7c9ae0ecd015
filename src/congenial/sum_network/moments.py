"""Summaries of the marginal laws of a tree's nodes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from congenial.errors import ArgumentError
from congenial.kernels.network import marginals as kernels
from congenial.kernels.network.twins import pair
from congenial.sum_network.network import Network
from congenial.sum_network.tables import Tables
from congenial.types import FloatArray, IntArray


class Summary(NamedTuple):
    """Of the marginal law of every node, each of shape (n,).

    Means add up as the counts do; medians and ends need not.

    Attributes
    ----------
    median, lower, upper : ndarray of int64
        `lower` to `upper` is the shortest interval of the probability asked for, ends included;
        of several the likeliest, and of equally likely ones (up to 1e-9) the lowest.
    """

    mean: FloatArray
    standard_deviation: FloatArray
    median: IntArray
    lower: IntArray
    upper: IntArray


def summary(
    tables: Tables, center: IntArray, is_leaf: npt.NDArray[np.bool_], alpha: float
) -> Summary:
    """Return the summary of all nodes, whose tables are counted from `center`."""
    found = summaries(tables, center.size, is_leaf, alpha)
    columns = found[:, [kernels.MEDIAN, kernels.LOW, kernels.HIGH]]
    median, low, high = np.rint(columns).astype(np.int64).T + center
    deviation = np.sqrt(found[:, kernels.VARIANCE])
    return Summary(found[:, kernels.MEAN] + center, deviation, median, low, high)


def summaries(
    tables: Tables,
    n: int,
    is_leaf: npt.NDArray[np.bool_],
    alpha: float,
    dispersion: FloatArray | None = None,
    base: IntArray | None = None,
) -> FloatArray:
    """Return summaries of the marginal laws of a tree's nodes, shape (n, 10)."""
    rising = np.zeros(n) if dispersion is None else dispersion
    origin = np.zeros(n, dtype=np.int64) if base is None else base
    own = tables.table, np.zeros(tables.lo.size)
    return _laws(tables, *own, is_leaf, alpha, kernels.CUT, rising, origin, np.empty(0))[0]


class OneSided(NamedTuple):
    """Of laws that lie between two networks, what little lies beyond.

    Attributes
    ----------
    below, above : ndarray of int64, shape (n, t)
        What each node lies below, and above, with the probability of each tail at most.
    mean, variance : ndarray of float64, shape (n,)
    edge : ndarray of float64, shape (n,)
        The larger one of the shares of its law that the first and the last value have.
    lost : ndarray of float64, shape (n,)
        Share of its law that may be missed.
    """

    below: IntArray
    above: IntArray
    mean: FloatArray
    variance: FloatArray
    edge: FloatArray
    lost: FloatArray


def one_sided(
    around: Tables,
    shown: FloatArray,
    lost: FloatArray,
    is_leaf: npt.NDArray[np.bool_],
    tails: FloatArray,
) -> OneSided:
    """Return the ends of laws of networks that differ from `around` below the node alone."""
    none = np.zeros(is_leaf.size), np.zeros(is_leaf.size, dtype=np.int64)
    found, below, above = _laws(around, shown, lost, is_leaf, 0.5, 0.0, *none, tails)
    columns = [kernels.MEAN, kernels.VARIANCE, kernels.EDGE, kernels.LOST]
    return OneSided(below, above, *found[:, columns].T)


def _laws(
    tables: Tables,
    shown: FloatArray,
    lost: FloatArray,
    is_leaf: npt.NDArray[np.bool_],
    alpha: float,
    cut: float,
    dispersion: FloatArray,
    base: IntArray,
    tails: FloatArray,
) -> tuple[FloatArray, IntArray, IntArray]:
    """Return all that one pass down tells of the marginal laws of the nodes."""
    network, n = tables.network, is_leaf.size
    width = tables.hi - tables.lo + 1
    ends = np.zeros(network.slots, dtype=np.bool_)
    ends[:n] = is_leaf
    program = network.op, network.first, network.second, network.third
    needed = np.zeros(kernels.SIZES, dtype=np.int64)
    kernels.rooms_needed(*program, width, network.slot_class, ends, needed)
    begins = np.concatenate(([0], np.cumsum(needed << np.arange(kernels.SIZES))))
    out = np.empty((n, kernels.SUMMARIES))
    below, above = (np.empty((n, tails.size), dtype=np.int64) for _ in range(2))
    where = tables.lo, tables.hi, tables.offset, tables.table
    twin = _twins(network, ends, dispersion, base)
    shape = network.left, *where, shown, lost, network.slot_class, twin, ends, dispersion, base
    kernels.marginals(n, *program, *shape, alpha, cut, begins, tails, out, below, above)
    return out, below, above


def _twins(
    network: Network, ends: npt.NDArray[np.bool_], dispersion: FloatArray, base: IntArray
) -> IntArray:
    """Return the slot whose summaries each slot has; nodes of one class may differ in these two."""
    of = network.slot_class[: base.size]
    alike = np.ones(network.ctype.size, dtype=np.bool_)
    for column in (dispersion, base):
        some = np.zeros(alike.size, dtype=column.dtype)
        some[of] = column
        alike[of[column != some[of]]] = False
    twin = np.empty(ends.size, dtype=np.int64)
    program = network.op, network.first, network.second, network.third
    pair(*program, network.slot_class, network.left, network.right, alike, twin)
    return twin


def shortest(values: IntArray, probabilities: FloatArray, alpha: float) -> tuple[int, int]:
    """Return the shortest interval of probability 1 - alpha at least, as `summary` does."""
    out = np.empty(kernels.SUMMARIES)
    kernels.summarise(np.ascontiguousarray(probabilities), 0.0, alpha, out)
    return int(values[int(out[kernels.LOW])]), int(values[int(out[kernels.HIGH])])


def checked_alpha(alpha: float) -> None:
    """Check a probability of error."""
    if not isinstance(alpha, float | np.floating) or not 0.0 < alpha < 1.0:
        raise ArgumentError(f"alpha is {alpha!r}; give a number between 0 and 1.")
