"""Counts as the page about a release shows them, all at once or some at a time."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np

from congenial.domain.tree import Path
from congenial.domain.workload import Workload
from congenial.releases.file_table import FileTable, Numbers
from congenial.releases.specification import Statement
from congenial.types import BoolArray, FloatArray, IntArray

# Number of quantiles by which a page says how many counts of a level are accurate enough.
_QUANTILES = 201


class Label(NamedTuple):
    """How a count is named."""

    path: Path
    start: int  # Where in the path the count's own name begins; the names before are above it.

    @property
    def name(self) -> str:
        """The count's own name."""
        return "/".join(self.path[self.start :])


class Labels(Protocol):
    """The names of a release's counts."""

    def of(self, shown: ShownCounts) -> Iterator[Label]:
        """Yield the label of each of some counts."""

    def place(self, path: Path, level: int) -> str:
        """Return the name by which a count is searched for, as `searched` has it."""


def searched(text: str) -> str:
    """Return a text as the page's search takes it: in lower case, without accents."""
    if text.isascii():
        return text.lower()
    parts = unicodedata.normalize("NFD", text)
    return "".join(c for c in parts if not unicodedata.category(c).startswith("M")).lower()


@dataclass(frozen=True)
class NodeLabels:
    """The names of the nodes of a tree."""

    level_names: Sequence[str]
    # The level by whose names the counts of each level are searched for. A name that occurs in most
    # places, such as a cell's in every block, is no place's: then it is a level above.
    called: Mapping[int, int]

    def of(self, shown: ShownCounts) -> Iterator[Label]:
        """Yield the label of each of some counts."""
        cells = [shown.rows.texts(name) for name in self.level_names]
        names = [
            each.words.array[each.codes].tolist() if len(each.words) else [""] * len(each)
            for each in cells
        ]
        for level, *path in zip(shown.level.tolist(), *names, strict=True):
            yield Label(tuple(path[: level + 1]), level)

    def place(self, path: Path, level: int) -> str:
        """Return the name by which a count is searched for, as `searched` has it."""
        return searched(path[self.called[level]])


@dataclass(frozen=True, eq=False)
class QueryLabels:
    """The names of the counts of a table, each below the total of the closest place above it."""

    domain: Workload

    def of(self, shown: ShownCounts) -> Iterator[Label]:
        """Yield the label of each of some counts."""
        for v in shown.number.tolist():
            path = self.domain.path(v)
            above = (k for k in range(len(path) - 1, 0, -1) if path[:k] in self._totals)
            yield Label(path, next(above, 0))

    @cached_property
    def _totals(self) -> set[Path]:
        paths, blocks = self.domain.paths, self.domain.blocks
        totals = (block for block in blocks if not block.margin)
        return {paths[v] for block in totals for v in range(block.start, block.stop)}

    def place(self, path: Path, level: int) -> str:
        """Return the name by which a count is searched for, as `searched` has it."""
        return searched(path[-2 if self.domain.blocks[level].margin else -1])


@dataclass(frozen=True, eq=False)
class ShownCounts:
    """Some counts of a release, in the order of their rows."""

    number: IntArray  # shape (n,): Number of each count's row in its file.
    level: IntArray  # shape (n,)
    exact: BoolArray  # shape (n,): Whether a count is exact.
    rows: FileTable
    measured: Numbers | None  # None if the release publishes no measurements.

    def take(self, at: IntArray | slice) -> ShownCounts:
        """Return some of the counts."""
        at = np.arange(self.number.size)[at]
        measured = None if self.measured is None else self.measured.take(at)
        return ShownCounts(
            self.number[at], self.level[at], self.exact[at], self.rows.take(at), measured
        )

    @property
    def columns(self) -> dict[str, list[object] | None]:
        """The numbers of the counts, by the names that the page's script has for them."""
        ends = {name: self.rows.numbers(name).objects() for name in ("value", "lower", "upper")}
        return {
            "level": self.level.tolist(),
            **ends,
            "exact": self.exact.astype(int).tolist(),
            "measured": None if self.measured is None else self.measured.objects(),
        }


@dataclass(frozen=True, eq=False)
class LevelFacts:
    """Facts about the counts of one level, or about some of these counts."""

    exact: int  # Number of exact counts.
    # The different distances of the other counts from the farther ends of their intervals,
    # ascending; inf stands for no interval.
    widths: FloatArray
    # The different relative error margins of counts with intervals, ascending, and the number of
    # counts with each. It is inf for a count that is not exact, whose interval has one value: a
    # measurement far below 0 leaves only 0, which says little about the count.
    shares: FloatArray
    times: IntArray

    def __add__(self, other: LevelFacts) -> LevelFacts:
        """Return the facts about the counts of both."""
        shares, place = np.unique(np.append(self.shares, other.shares), return_inverse=True)
        times = np.zeros(shares.size, dtype=np.int64)
        np.add.at(times, place, np.append(self.times, other.times))
        widths = np.unique(np.append(self.widths, other.widths))
        return LevelFacts(self.exact + other.exact, widths, shares, times)

    @property
    def known(self) -> int:
        """Number of counts that have an interval."""
        return int(self.times.sum())

    @property
    def quantiles(self) -> list[float | None]:
        """Quantiles of the relative error margins, None for infinity."""
        if not self.known:
            return []
        at = np.linspace(0, self.known - 1, _QUANTILES).astype(np.int64)
        found = self.shares[np.searchsorted(np.cumsum(self.times), at, side="right")]
        return [None if np.isinf(share) else round(share, 6) for share in found.tolist()]


def cut_at_zero(certificate: Statement) -> bool:
    """Whether intervals are around measurements, so that some leave only 0 of those far below."""
    return certificate.accuracy.source == "measurements"


def level_facts(
    exact: BoolArray, value: Numbers, lower: Numbers, upper: Numbers, *, cut: bool
) -> LevelFacts:
    """Return the facts about some counts of one level; for `cut` see `cut_at_zero`."""
    ends = [np.where(end.known, end.values, np.inf) for end in (lower, upper)]
    reach = np.maximum(np.abs(value.values - ends[0]), np.abs(ends[1] - value.values))
    known = np.isfinite(reach)
    with np.errstate(divide="ignore", invalid="ignore"):
        none = np.where(exact | (value.values != 0) | (not cut), 0.0, np.inf)
        share = np.where(reach == 0.0, none, reach / np.abs(value.values))
    shares, times = np.unique(share[known], return_counts=True)
    return LevelFacts(int(exact.sum()), np.unique(reach[~exact]), shares, times)
