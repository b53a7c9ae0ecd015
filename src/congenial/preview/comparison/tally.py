"""Errors of simulated releases, summed up by level and by size of the true count."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from congenial.preview.comparison.outcome import QUANTILES, LevelError, SizeError
from congenial.releases.model import Model
from congenial.types import FloatArray, IntArray

# Sizes of true counts: 0, and then from each power of ten to below the next.
MOST_DIGITS = 16


def size_class(counts: npt.ArrayLike) -> IntArray:
    """Number the sizes of counts: 0 for 0, and the number of digits otherwise."""
    array = np.asarray(counts, dtype=np.int64)
    powers = 10 ** np.arange(MOST_DIGITS, dtype=np.int64)
    return np.asarray(np.searchsorted(powers, array, side="right"), dtype=np.int64)


def size_label(low: int, high: int) -> str:
    """Name a range of true counts."""
    return "0" if high == 0 else f"{low:,} to {high:,}"


@dataclass(eq=False)
class Tally:
    """Errors as they come in; nothing of a single release is kept."""

    model: Model
    counts: IntArray  # shape (n,)
    satisfied: bool = True
    absolute: list[FloatArray] = field(default_factory=list)
    squares: FloatArray = field(init=False)
    by_size: list[FloatArray] = field(default_factory=list)
    signed: list[FloatArray] = field(default_factory=list)
    values: list[tuple[IntArray, IntArray]] = field(init=False)

    def __post_init__(self) -> None:
        tree = self.model.domain
        self.squares = np.zeros(tree.depth)
        none = np.zeros(0, dtype=np.int64)
        self.values = [(none, none)] * tree.depth
        open_ = np.flatnonzero(~self.model.resolved.pinned)
        group = tree.level[open_] * (MOST_DIGITS + 1) + size_class(self.counts[open_])
        order = np.argsort(group, kind="stable")
        self._order = open_[order]
        self._groups, self._starts = np.unique(group[order], return_index=True)

    def add(self, released: IntArray) -> None:
        """Take in releases, shape (size, n)."""
        model, tree = self.model, self.model.domain
        resolved = model.resolved
        inside = (released >= resolved.lo) & (released <= resolved.hi)
        self.satisfied = self.satisfied and bool(inside[:, ~resolved.pinned].all())
        self.satisfied = self.satisfied and tree.is_consistent(released)
        error = released - self.counts
        size = np.abs(error)
        sums = np.zeros((len(released), tree.depth))
        for level in range(tree.depth):
            here = size[:, tree.level == level]
            sums[:, level] = here.mean(axis=1)
            self.squares[level] += float((here.astype(np.float64) ** 2).sum())
            self.values[level] = _merged(self.values[level], here)
        self.absolute.append(sums)
        if self._order.size:
            ordered = error[:, self._order].astype(np.float64)
            self.signed.append(np.add.reduceat(ordered, self._starts, axis=1))
            self.by_size.append(np.add.reduceat(np.abs(ordered), self._starts, axis=1).sum(axis=0))

    def levels(self) -> tuple[LevelError, ...]:
        """Errors by level, coarse to fine."""
        means = np.concatenate(self.absolute)
        spread = _standard_error(means)
        return tuple(
            LevelError(
                level.name,
                level.nodes,
                level.scale,
                float(means[:, level.depth].mean()),
                float(spread[level.depth]),
                float(np.sqrt(self.squares[level.depth] / (len(means) * level.nodes))),
                _quantiles(*self.values[level.depth]),
            )
            for level in self.model.levels
        )

    def sizes(self) -> tuple[SizeError, ...]:
        """Errors by level and size of the true count."""
        if not self.signed:
            return ()
        ends = np.append(self._starts[1:], self._order.size)
        nodes = ends - self._starts
        means = np.concatenate(self.signed) / nodes
        spread = _standard_error(means)
        size = np.sum(self.by_size, axis=0) / (nodes * len(means))
        found = []
        for at, group in enumerate(self._groups.tolist()):
            level, digits = divmod(group, MOST_DIGITS + 1)
            low, high = (0, 0) if digits == 0 else (10 ** (digits - 1), 10**digits - 1)
            name = self.model.plan.level_names[level]
            bias, l1 = float(means[:, at].mean()), float(size[at])
            found.append(SizeError(name, low, high, int(nodes[at]), l1, bias, float(spread[at])))
        return tuple(found)


def _standard_error(means: FloatArray) -> FloatArray:
    """Standard errors of means over releases, shape (releases, k); NaN of a single release."""
    if len(means) < 2:
        return np.full(means.shape[1], np.nan)
    return np.asarray(means.std(axis=0, ddof=1) / np.sqrt(len(means)))


def _merged(before: tuple[IntArray, IntArray], new: IntArray) -> tuple[IntArray, IntArray]:
    """Distinct values and how often they came, with new ones counted in."""
    values, times = np.unique(new, return_counts=True)
    both, place = np.unique(np.concatenate((before[0], values)), return_inverse=True)
    counted = np.zeros(both.size, dtype=np.int64)
    np.add.at(counted, place, np.concatenate((before[1], times)))
    return both, counted


def _quantiles(values: IntArray, times: IntArray) -> tuple[float, ...]:
    """Least values that the given shares of all do not exceed."""
    share = np.cumsum(times) / times.sum()
    return tuple(float(values[np.searchsorted(share, q - 1e-12)]) for q in QUANTILES)
