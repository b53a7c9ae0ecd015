"""One margin of one table at one level: the block of which workloads consist."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import starmap
from typing import Any

import numpy as np

from congenial.domain.table import UNNAMED, Margin, Table, margin_names
from congenial.domain.tree import Path
from congenial.errors import ArgumentError
from congenial.types import IntArray


@dataclass(frozen=True, eq=False)
class Block:
    """One margin of one table at one level: contiguous entries."""

    table: Table
    level: int  # Depth in the geography.
    margin: Margin
    # shape (nodes at the level, classes of the margin): Entry of each, -1 where no record can be.
    ids: IntArray = field(repr=False)
    start: int  # First entry.
    stop: int  # One past the last entry.

    @property
    def entries(self) -> slice:
        """The entries."""
        return slice(self.start, self.stop)

    @property
    def text(self) -> str:
        """The block in words."""
        margin = f"{' by '.join(self.margin) or 'the total'} in {self.table.name}"
        if self.table.geography is None:
            return margin
        return f"{margin} at level {self.table.level_names[self.level]}"

    def name(self, row: int, column: int) -> str:
        """Name an entry, such as "sex=F, age=0-17 in people at town/a", by its place in `ids`."""
        return self._name(self._place(row), self._counted(column))

    def names(self) -> Iterator[str]:
        """Yield the name of every entry, in their order."""
        return starmap(self._name, self._labels(self._counted))

    def _name(self, place: Path, counted: str) -> str:
        text = f"{counted or 'total'} in {self.table.name}"
        return text if self.table.geography is None else f"{text} at {'/'.join(place)}"

    def path(self, row: int, column: int) -> Path:
        """Names down to an entry: those of its place, and the values that it counts."""
        return _path(self._place(row), self._in_paths[column])

    def paths(self) -> Iterator[Path]:
        """Yield the path of every entry, in their order."""
        return starmap(_path, self._labels(self._in_paths.__getitem__))

    def place(self, entry: int) -> tuple[int, int]:
        """Return the row and the column of an entry in `ids`."""
        row, column = divmod(int(self._places[entry - self.start]), self.ids.shape[1])
        return row, column

    @cached_property
    def _places(self) -> IntArray:
        """The places of all entries in the flattened `ids`, where they ascend."""
        return np.flatnonzero(self.ids >= 0)

    def _labels(self, text: Callable[[int], str]) -> Iterator[tuple[Path, str]]:
        """Yield the place of every entry, and the text of its class."""
        tree = self.table.geography
        places: list[Path] = (
            [()] if tree is None else [tree.path(node) for node in self._nodes.tolist()]
        )
        counted = [text(column) for column in range(self.ids.shape[1])]
        for row, column in np.argwhere(self.ids >= 0).tolist():
            yield places[row], counted[column]

    def values(self, column: int) -> tuple[str, ...]:
        """Value of each name of the margin, at a class."""
        labels = self.table.labels(self.margin)
        at = np.unravel_index(column, tuple(map(len, labels))) if labels else ()
        return tuple(values[int(i)] for values, i in zip(labels, at, strict=True))

    def _counted(self, column: int) -> str:
        pairs = zip(self.margin, self.values(column), strict=True)
        return ", ".join(f"{name}={value}" for name, value in pairs)

    @cached_property
    def _in_paths(self) -> list[str]:
        """Values of each class in a path, after the table's name if it has one of its own."""
        counted = [self._counted(column) for column in range(self.ids.shape[1])]
        if self.table.name == UNNAMED:
            return counted
        return [f"{self.table.name}: {each}" if each else self.table.name for each in counted]

    def _place(self, row: int) -> Path:
        tree = self.table.geography
        return () if tree is None else tree.path(int(self._nodes[row]))

    @cached_property
    def _nodes(self) -> IntArray:
        return self.table.nodes(self.level)


def _path(place: Path, counted: str) -> Path:
    return (*place, counted) if counted else place


def select(blocks: list[Block], given: Mapping[Any, Any]) -> list[tuple[Block, Any]]:
    """Return the blocks that a mapping names, each with its value."""
    if not isinstance(given, Mapping):
        raise ArgumentError(f"{given!r} was given for margins; give a mapping from them to values.")
    found: list[tuple[Block, Any]] = []
    for key, value in given.items():
        if isinstance(value, Mapping):
            inner = [
                b for b in blocks if key in (b.table.name, b.level, b.table.level_names[b.level])
            ]
            new = select(inner, value) if inner else []
        else:
            names = sorted(margin_names(key))
            new = [(b, value) for b in blocks if sorted(b.margin) == names]
        if not new:
            raise ArgumentError(
                f"{key!r} names no block of the workload; give margins that it counts, or levels "
                "or tables with a mapping of margins."
            )
        found += new
    return found
