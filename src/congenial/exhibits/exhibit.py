"""Exhibits: the content of tables and figures, without a file format."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from congenial.errors import ArgumentError

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

Cell = str | int | float | None


@dataclass(frozen=True)
class Exhibit:
    """A table of a study."""

    name: str  # Part of the file's name.
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]  # Text, integers, floats, or None for an empty cell.
    notes: tuple[str, ...] = ()  # Sentences below the table.

    def __post_init__(self) -> None:
        """Check that every row has a cell for each column."""
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ArgumentError(
                    f"a row of table {self.name!r} has {len(row)} cells for {len(self.columns)} "
                    "columns; give one cell a column."
                )

    def column(self, name: str) -> tuple[Cell, ...]:
        """Cells of one column."""
        at = self.columns.index(name)
        return tuple(row[at] for row in self.rows)


@dataclass(frozen=True)
class Figure:
    """A figure of a study; every number in it is also in a table."""

    name: str  # Part of the files' names.
    title: str
    draw: Callable[[Canvas], None]  # Draws on an empty ``matplotlib.figure.Figure``.
    size: tuple[float, float] = (7.0, 4.2)  # Width and height in inches.
