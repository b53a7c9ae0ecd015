"""Unary weights of the noise at every variable, each listed once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from congenial.kernels.network import consing, sharing
from congenial.kernels.network import equal_families as equality
from congenial.kernels.numerics import elementwise, laws
from congenial.kernels.numerics.trees import compact, read_only
from congenial.types import BoolArray, FloatArray, Indices, IntArray

# Largest entry at an end of a window, relative to all entries, if the law lies nearly within it.
_EDGE = 1e-4
# Deviations beyond a window within which a law may lie, and least variance of its normal stand-in.
_LONGER, _NARROW = 40.0, 0.25


@dataclass(frozen=True, eq=False)
class Unary:
    """Unary weights, in the coordinates of the forest; all shapes (n,)."""

    kind: IntArray  # Law codes of `congenial.kernels.numerics.laws`.
    scale: FloatArray  # Scale or sigma; ignored for flat weights.
    center: FloatArray  # Integer-valued mode.
    lo: FloatArray  # Ends of the support, integer-valued or infinite; equal where pinned.
    hi: FloatArray

    @property
    def inverse(self) -> FloatArray:
        """1 / scale, or 1 / (2 sigma^2) of Gaussian weights."""
        return np.where(self.kind == laws.GAUSSIAN, 0.5 / self.scale**2, 1.0 / self.scale)

    def at(self, rows: npt.NDArray[np.signedinteger]) -> Unary:
        """Return the weights with these numbers."""
        return Unary(
            self.kind[rows], self.scale[rows], self.center[rows], self.lo[rows], self.hi[rows]
        )


@dataclass(frozen=True, eq=False)
class PartMessage:
    """An envelope of the message of a sum from a network of its own, see `exact.envelopes`.

    For another network it is the weight of a variable. The multiplier `theta` of the sum has tilted
    it.
    """

    lo: int  # The window begins here.
    table: FloatArray
    tails: FloatArray  # shape (4,): Edge and ratio below the window, and above.
    theta: float
    # shape (6,): Mean, variance, ends of the support, decay downwards and upwards: `Placement`.
    place: FloatArray

    @property
    def hi(self) -> int:
        """The last value of the window."""
        return self.lo + self.table.size - 1

    def same_as(self, other: PartMessage) -> bool:
        """Whether both have the same window and the same bits."""
        alike = (self.lo, self.theta) == (other.lo, other.theta)
        pairs = (self.table, other.table), (self.tails, other.tails)
        return alike and all(np.array_equal(*pair) for pair in pairs)

    def weighed(self, weight: Unary, tilt: float) -> tuple[float, float] | None:
        """Return mean and variance of the message times one tilted weight.

        If the window may lack some of that law, the message is taken as normal beyond it. None if
        the law lies too far from the window.
        """
        found = self._weighed(self.lo, self._log(), weight, tilt)
        if found is None:
            found = self._weighed(*self._extended(), weight, tilt)
        return found

    def _log(self) -> FloatArray:
        with np.errstate(divide="ignore"):
            return np.asarray(elementwise.log(self.table))

    def _weighed(
        self, lo: int, message: FloatArray, weight: Unary, tilt: float
    ) -> tuple[float, float] | None:
        """Return the moments, given logarithms of the message from `lo` on; None if these lack."""
        y = np.arange(lo, lo + message.size, dtype=np.float64)
        (kind,), (center,), (inverse,) = weight.kind, weight.center, weight.inverse
        size = np.abs(y - center)
        log = message + tilt * y
        if kind != laws.FLAT:
            log -= inverse * (size**2 if kind == laws.GAUSSIAN else size)
        log[(y < weight.lo[0]) | (y > weight.hi[0])] = -np.inf
        if not np.isfinite(log.max()):
            return None
        law = elementwise.exp(log - log.max())
        _, _, least, most, *_ = self.place
        open_below, open_above = lo > least, y[-1] < most
        if max(law[0] * open_below, law[-1] * open_above) > _EDGE:
            return None
        return moments_of_table(lo, law)

    def _extended(self) -> tuple[int, FloatArray]:
        """Return where a longer window begins, and logarithms, beyond the table normal ones."""
        mean, variance, least, most, *_ = self.place.tolist()
        away = _LONGER * math.sqrt(variance) + 1.0
        lo, hi = math.ceil(max(self.lo - away, least)), math.floor(min(self.hi + away, most))
        log = self._log()
        below = np.arange(lo, self.lo, dtype=np.float64)
        above = np.arange(self.hi + 1, hi + 1, dtype=np.float64)
        ends = [
            log[end] - ((y - mean) ** 2 - (at - mean) ** 2) / (2.0 * max(variance, _NARROW))
            for y, at, end in ((below, self.lo, 0), (above, self.hi, -1))
        ]
        return lo, np.concatenate((ends[0], log, ends[1]))


def moments_of_table(lo: int, table: FloatArray) -> tuple[float, float]:
    """Return mean and variance of the law that is proportional to a table of `lo`, lo + 1, ..."""
    x, law = np.arange(table.size), table / table.sum()
    middle = elementwise.dot(law, x)
    return float(lo) + middle, elementwise.dot(law, (x - middle) ** 2)


@dataclass(frozen=True, eq=False)
class SharedUnary:
    """Unary weights of all variables, each listed once."""

    unary: Unary  # The weights that occur.
    code: Indices  # shape (n,): Place of each variable's weight among them.

    @property
    def each(self) -> Unary:
        """The weight of every variable."""
        return self.unary.at(self.code)

    def at(self, variables: IntArray) -> SharedUnary:
        """Return the weights of some variables."""
        kept, code = np.unique(self.code[variables], return_inverse=True)
        return SharedUnary(self.unary.at(kept), code.astype(np.int32))


def share_unary(unary: Unary) -> SharedUnary:
    """List the weights of all variables, each once."""
    code, first = alike((unary.kind, unary.scale, unary.center, unary.lo, unary.hi))
    return SharedUnary(unary.at(first), code)


def side_by_side(parts: Sequence[SharedUnary]) -> SharedUnary:
    """Return the weights of all variables of some parts, one part after another."""
    columns = ("kind", "scale", "center", "lo", "hi")
    listed = [np.concatenate([getattr(part.unary, name) for part in parts]) for name in columns]
    begins = np.cumsum([0, *(part.unary.kind.size for part in parts[:-1])]).tolist()
    codes = [part.code + np.int32(begin) for part, begin in zip(parts, begins, strict=True)]
    return SharedUnary(Unary(*listed), np.concatenate(codes))


def share_noise(
    kind: int,
    scale: FloatArray,
    ends: tuple[FloatArray, FloatArray],
    fixed: BoolArray,
    size: int,
    *,
    counts: IntArray | None = None,
    dropped: BoolArray | None = None,
    orientation: npt.NDArray[np.int8] | None = None,
) -> SharedUnary:
    """List the weights of the noise of all variables."""
    code = np.empty(size, dtype=np.int32)
    rows = np.empty((size, 3), dtype=np.int64)  # untouched pages take no memory
    count = sharing.number_weights(
        compact(scale),
        compact(ends[0]),
        compact(ends[1]),
        compact(np.zeros(1, dtype=np.int64) if counts is None else counts),
        read_only(fixed),
        compact(np.zeros(1, dtype=np.bool_) if dropped is None else dropped),
        compact(np.ones(1, dtype=np.int8) if orientation is None else orientation),
        code,
        np.zeros(1024, dtype=np.int32),
        np.zeros(1024, dtype=np.int32),
        rows,
        np.zeros(sharing.room(size), dtype=np.int32),
    )
    scales, lo, hi = np.ascontiguousarray(rows[:count].T).view(np.float64)
    kinds = np.where(np.isfinite(scales), kind, laws.FLAT).astype(np.int64)
    return SharedUnary(Unary(kinds, scales, np.zeros(scales.size), lo, hi), code)


def composable(unary: Unary) -> npt.NDArray[np.int8]:
    """The kind of uniform composition by which runs of siblings with each weight are drawn, or 0.

    A Laplace weight around zero without bounds is the difference of two geometric variables
    (`consing.BOTH_WAYS`); one that ends at zero is a geometric variable (`FROM_ZERO`, `TO_ZERO`).
    The sum of a run is A - B for two sums of geometric variables, or one of the two. Given A and B,
    the members are uniform compositions of them. For unmeasured siblings with a bound on one side
    (`UPWARDS`, `DOWNWARDS`), the members minus their bounds are a uniform composition of their sum.
    """
    laplace = (unary.kind == laws.LAPLACE) & (unary.center == 0.0)
    flat = unary.kind == laws.FLAT
    no_lo, no_hi = np.isneginf(unary.lo), np.isposinf(unary.hi)
    ways = {
        consing.BOTH_WAYS: laplace & no_lo & no_hi,
        consing.FROM_ZERO: laplace & (unary.lo == 0.0) & no_hi,
        consing.TO_ZERO: laplace & no_lo & (unary.hi == 0.0),
        consing.UPWARDS: flat & np.isfinite(unary.lo) & no_hi,
        consing.DOWNWARDS: flat & no_lo & np.isfinite(unary.hi),
    }
    return np.select(list(ways.values()), list(ways), 0).astype(np.int8)


def alike(columns: tuple[npt.NDArray[Any], ...]) -> tuple[Indices, npt.NDArray[np.intp]]:
    """Number the rows of columns, equal ones alike; return the numbers and one row for each.

    The numbers follow the order of rows, sorted by the last column first.
    """
    n = columns[0].size
    some = [column for column in columns if n and column.min() != column.max()]
    rows, none = np.empty((n, len(some)), dtype=np.int64), np.empty(0, dtype=np.int64)
    for i, column in enumerate(some):
        if column.dtype.kind == "f":  # 0.0 is equal to -0.0
            np.add(column, 0.0, out=rows.view(np.float64)[:, i])
        else:
            rows[:, i] = column
    first, seen = np.empty(n, dtype=np.int64), np.full(1 << (2 * n).bit_length(), -1)
    lists = np.zeros(n + 1, dtype=np.int64), (none, none)
    equality.first_equal(np.arange(n), rows, *lists, seen, first)
    distinct = np.flatnonzero(first == np.arange(n))
    listed = distinct[np.lexsort([column[distinct] for column in columns])]
    number = np.empty(n, dtype=np.int32)
    number[listed] = np.arange(listed.size)
    return number[first], listed
