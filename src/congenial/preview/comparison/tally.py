"""Errors of simulated releases, summed up by level and by size of the true count."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from congenial.preview.comparison.outcome import QUANTILES, LevelError, SizeError
from congenial.releases.model import Model
from congenial.types import FloatArray, IntArray

# Most digits of a true count. Counts of equally many digits are of one size; so are those of 0.
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
    """Errors of releases, added up as these come in; the releases are not kept."""

    model: Model
    counts: IntArray  # shape (n,)
    satisfied: bool = True
    absolute: list[FloatArray] = field(default_factory=list)
    squares: FloatArray = field(init=False)
    by_size: list[FloatArray] = field(default_factory=list)
    signed: list[FloatArray] = field(default_factory=list)
    values: list[Counter[int]] = field(init=False)  # Absolute errors of each level.

    def __post_init__(self) -> None:
        tree = self.model.domain
        self.squares = np.zeros(tree.depth)
        self.values = [Counter() for _ in range(tree.depth)]
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
            values, times = np.unique(here, return_counts=True)
            self.values[level].update(dict(zip(values.tolist(), times.tolist(), strict=True)))
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
                _quantiles(self.values[level.depth]),
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


def _quantiles(counted: Counter[int]) -> tuple[float, ...]:
    """Return the `QUANTILES` of values that were counted."""
    values, times = np.array(sorted(counted.items())).T
    share = np.cumsum(times) / times.sum()
    return tuple(float(values[np.searchsorted(share, q - 1e-12)]) for q in QUANTILES)
