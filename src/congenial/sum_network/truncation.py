"""Truncation error of windows, bounded entry by entry from the leaves up (`kernels.certify`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from congenial.kernels.network import certify
from congenial.kernels.network import workspace as rooms
from congenial.kernels.network.messages import MERGE
from congenial.kernels.network.records import ClassLosses, Windows
from congenial.sum_network.fourier import cross_wide
from congenial.sum_network.network import Network
from congenial.sum_network.windows import Placement
from congenial.types import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Messages:
    """Filled tables of all classes, as `exact.Tables` has them."""

    lo: IntArray  # shape (c,)
    hi: IntArray
    offset: IntArray
    table: FloatArray
    factor: FloatArray  # shape (c,)
    # Bounds on the errors of the entries of the tables that transforms have filled.
    errors: Mapping[int, FloatArray]

    def entries(self, c: int) -> FloatArray:
        """Return the table of class `c`, a view."""
        return self.table[self.offset[c] : self.offset[c] + self.hi[c] - self.lo[c] + 1]


@dataclass(frozen=True, eq=False)
class Losses:
    """Bounds on the mass missing from tables; a bound may be overwritten after its last reading."""

    place: IntArray  # shape (c,): Where the losses of each class begin in `lost`.
    lost: FloatArray
    # shape (c, 4): Edge and ratio of the geometric tails below and above each window.
    tails: FloatArray


def shared_rooms(network: Network, width: IntArray) -> tuple[IntArray, int]:
    """Reserve a place for every class until its last reader; return the places and their extent."""
    kept = np.zeros(width.size, dtype=np.bool_)
    kept[network.roots] = kept[network.fixed] = True
    place = np.empty(width.size, dtype=np.int64)
    extent = rooms.assign(network.left, network.right, width, kept, place)
    return place, int(extent)


def follow(
    network: Network,
    messages: Messages,
    support: tuple[FloatArray, FloatArray],
    small: float,
    where: tuple[IntArray, int],
) -> Losses:
    """Bound the losses of every class."""
    lo, hi, table = messages.lo, messages.hi, messages.table
    place, extent = where
    lost, even, tails = np.empty(extent), np.zeros(lo.size), np.zeros((lo.size, 4))
    width = hi - lo + 1
    crossed = np.zeros(lo.size, dtype=np.bool_)
    wide = np.array(sorted(messages.errors), dtype=np.int64)
    crossed[wide] = True
    windows = Windows(lo, hi, messages.offset)
    losses = ClassLosses(place, lost, even, tails)
    of = network.classes, windows, *support, table, messages.factor
    args = (*of, small, crossed, losses)
    done = 0
    for _, c in stretches(np.where(network.ctype == MERGE, width**2, 0), wide):
        certify.certify(done, c, *args)
        done = c
        if c not in messages.errors:
            continue
        a, b = network.left[c], network.right[c]
        one = messages.entries(a), lost[place[a] : place[a] + width[a]]
        other = one if b == a else (messages.entries(b), lost[place[b] : place[b] + width[b]])
        first = int(lo[c] - lo[a] - lo[b])
        crossed_over = cross_wide(one[0], other[0], one[1], other[1], first, int(width[c]))
        lost[place[c] : place[c] + width[c]] = messages.errors[c] + crossed_over
    return Losses(place, lost, tails)


def cut_off(network: Network, messages: Messages, place: Placement, small: float) -> float:
    """Bound the probability that a draw leaves some window, plus the error of transforms."""
    width = messages.hi - messages.lo + 1
    support = place.support_lo, place.support_hi
    found = follow(network, messages, support, small, shared_rooms(network, width))
    cut = 0.0
    for c in network.roots:
        here = found.lost[found.place[c] : found.place[c] + width[c]]
        cut += certify.root_loss(messages.entries(c), here, found.tails[c])
    fixed = network.fixed
    missing = found.lost[found.place[fixed] - messages.lo[fixed]]
    there = messages.table[messages.offset[fixed] - messages.lo[fixed]]
    finite = missing < np.inf
    shares = np.where(finite, missing, 1.0) / np.where(finite, there + missing, 1.0)
    # rounding in the losses themselves is far below one in a million
    return (1.0 + 1e-6) * (cut + float(shares.sum()))


def stretches(cost: IntArray, wide: IntArray) -> Iterator[tuple[int, int]]:
    """Divide the classes into ranges of limited cost that contain no wide class.

    Yields (begin, stop) pairs. Kernels run one range at a time, so that an interrupt is handled
    between two of them.
    """
    at = np.flatnonzero(np.diff(np.cumsum(cost) >> 31)) + 1
    stops = np.unique(np.concatenate((at, wide, [cost.size])))
    begins = np.concatenate(([0], stops[:-1] + np.isin(stops[:-1], wide)))
    return ((int(i), int(j)) for i, j in zip(begins, stops, strict=True))
