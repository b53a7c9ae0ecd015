"""Summaries of the marginal laws of a tree's nodes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from congenial.conditioning.exact import Tables
from congenial.conditioning.network import Network
from congenial.errors import ArgumentError
from congenial.kernels import marginals as kernels
from congenial.kernels.twins import pair

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


class Summary(NamedTuple):
    """Of the marginal law of every node, each of shape (n,).

    Means add up as the counts do; medians and ends need not.

    Attributes
    ----------
    mean, standard_deviation : ndarray of float64
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
    shown: FloatArray | None = None,
    lost: FloatArray | None = None,
) -> FloatArray:
    """Return summaries of the marginal laws of a tree's nodes, shape (n, 11).

    Parameters
    ----------
    tables : Tables
    n : int
    is_leaf : ndarray of bool, shape (n,)
    alpha : float
    dispersion : ndarray of float64, shape (n,), optional
        Nodes where it is positive have a `congenial.kernels.marginals.rise` and the probability
        of a count of 0 too.
    base : ndarray of int64, shape (n,), optional
        What the tables' values are counted from.
    shown : ndarray of float64, optional
        Messages of the nodes in place of their own, which lie as those do: laws are then those of
        networks that differ from `tables` below the node alone.
    lost : ndarray of float64, shape (classes,), optional
        What entries of any of these lack at most; 0 by default.
    """
    network = tables.network
    width = tables.hi - tables.lo + 1
    ends = np.zeros(network.slots, dtype=np.bool_)
    ends[:n] = is_leaf
    program = network.op, network.first, network.second, network.third
    needed = np.zeros(kernels.SIZES, dtype=np.int64)
    kernels.rooms_needed(*program, width, network.slot_class, ends, needed)
    begins = np.concatenate(([0], np.cumsum(needed << np.arange(kernels.SIZES))))
    out = np.empty((n, kernels.SUMMARIES))
    where = tables.lo, tables.hi, tables.offset, tables.table
    own, cut = (tables.table, kernels.CUT) if shown is None else (shown, 0.0)
    rising = np.zeros(n) if dispersion is None else dispersion
    origin = np.zeros(n, dtype=np.int64) if base is None else base
    lacking = np.zeros(width.size) if lost is None else lost
    twin = _twins(network, ends, rising, origin)
    shape = network.left, *where, own, lacking, network.slot_class, twin, ends, rising, origin
    kernels.marginals(n, *program, *shape, alpha, cut, begins, out)
    return out


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
    """Check a probability of error.

    Raises
    ------
    ArgumentError
        If it is no number between 0 and 1.
    """
    if not isinstance(alpha, float | np.floating) or not 0.0 < alpha < 1.0:
        raise ArgumentError(f"alpha is {alpha!r}; give a number between 0 and 1.")
