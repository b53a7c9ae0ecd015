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
    """Tables of all classes, one after another; the other arrays have shape (c,)."""

    lo: IntArray  # Window of each class, and where its table begins.
    hi: IntArray
    offset: IntArray
    table: FloatArray
    factor: FloatArray
    log_scale: FloatArray  # Log of the factor that each table was divided by.

    @staticmethod
    def empty(lo: IntArray, hi: IntArray) -> Messages:
        """Return messages on windows, whose tables are to be filled."""
        width = np.maximum(hi - lo + 1, 0)
        table, factor = np.empty(int(width.sum())), np.ones(width.size)
        return Messages(lo, hi, np.cumsum(width) - width, table, factor, np.zeros(width.size))

    @property
    def width(self) -> IntArray:
        """Number of entries of each table."""
        return np.asarray(np.maximum(self.hi - self.lo + 1, 0))

    @property
    def windows(self) -> Windows:
        """Windows as kernels take them."""
        return Windows(self.lo, self.hi, self.offset)

    def of_class(self, c: int) -> FloatArray:
        """Return the table of class `c`, a view."""
        return self.table[self.offset[c] : self.offset[c] + self.hi[c] - self.lo[c] + 1]


@dataclass(frozen=True, eq=False)
class Losses:
    """Bounds on the mass missing from tables; a bound may be overwritten after its last reading."""

    place: IntArray  # shape (c,): Where the losses of each class begin in `lost`.
    lost: FloatArray
    tails: FloatArray  # shape (c, 4): Edge and ratio of the geometric tails below and above.


def shared_rooms(network: Network, width: IntArray) -> tuple[IntArray, int]:
    """Reserve workspace for every class until its last reader; return places and their extent."""
    kept = np.zeros(width.size, dtype=np.bool_)
    kept[network.roots] = kept[network.fixed] = True
    place = np.empty(width.size, dtype=np.int64)
    extent = rooms.assign(network.left, network.right, width, kept, place)
    return place, int(extent)


def follow(
    network: Network,
    messages: Messages,
    errors: Mapping[int, FloatArray],
    place: Placement,
    small: float,
    where: tuple[IntArray, int],
) -> Losses:
    """Bound the losses of every class; `errors` has those of tables filled by transforms.

    The supports of `place` are those of the law, not of what windows may cover.
    """
    lo, width = messages.lo, messages.width
    begins, extent = where
    lost, even, tails = np.empty(extent), np.zeros(lo.size), np.zeros((lo.size, 4))
    by_transforms = np.zeros(lo.size, dtype=np.bool_)
    wide = np.array(sorted(errors), dtype=np.int64)
    by_transforms[wide] = True
    support = place.support_lo, place.support_hi
    of = network.classes, messages.windows, *support, messages.table, messages.factor
    args = (*of, small, by_transforms, ClassLosses(begins, lost, even, tails))
    done = 0
    for _, c in stretches(np.where(network.ctype == MERGE, width**2, 0), wide):
        certify.certify(done, c, *args)
        done = c
        if c not in errors:
            continue
        a, b = network.left[c], network.right[c]
        one = messages.of_class(a), lost[begins[a] : begins[a] + width[a]]
        other = one if b == a else (messages.of_class(b), lost[begins[b] : begins[b] + width[b]])
        first = int(lo[c] - lo[a] - lo[b])
        crossed = cross_wide(one[0], other[0], one[1], other[1], first, int(width[c]))
        lost[begins[c] : begins[c] + width[c]] = errors[c] + crossed
    return Losses(begins, lost, tails)


def cut_off(
    network: Network,
    messages: Messages,
    errors: Mapping[int, FloatArray],
    place: Placement,
    small: float,
) -> float:
    """Bound the probability that a draw leaves some window, plus the error of transforms."""
    width, cut = messages.width, 0.0
    found = follow(network, messages, errors, place, small, shared_rooms(network, width))
    for c in network.roots:
        here = found.lost[found.place[c] : found.place[c] + width[c]]
        cut += certify.root_loss(messages.of_class(c), here, found.tails[c])
    fixed = network.fixed
    missing = found.lost[found.place[fixed] - messages.lo[fixed]]
    there = messages.table[messages.offset[fixed] - messages.lo[fixed]]
    finite = missing < np.inf
    shares = np.where(finite, missing, 1.0) / np.where(finite, there + missing, 1.0)
    # rounding in the losses themselves is far below one in a million
    return (1.0 + 1e-6) * (cut + float(shares.sum()))


def stretches(cost: IntArray, wide: IntArray) -> Iterator[tuple[int, int]]:
    """Divide the classes into ranges of limited cost that contain no wide class.

    Yields (begin, stop) pairs. An interrupt is handled between the kernels of two ranges.
    """
    at = np.flatnonzero(np.diff(np.cumsum(cost) >> 31)) + 1
    stops = np.unique(np.concatenate((at, wide, [cost.size])))
    begins = np.concatenate(([0], stops[:-1] + np.isin(stops[:-1], wide)))
    return ((int(i), int(j)) for i, j in zip(begins, stops, strict=True))
