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
    """A table of a study.

    Attributes
    ----------
    name : str
        Part of the file's name.
    rows : tuple of tuple
        Text, integers, floats, or None for an empty cell.
    notes : tuple of str
        Sentences below the table.
    """

    name: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()

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
    """A figure of a study; every number in it is also in a table.

    Attributes
    ----------
    name : str
        Part of the files' names.
    draw : callable
        Draws on an empty ``matplotlib.figure.Figure``.
    size : (float, float)
        Width and height in inches.
    """

    name: str
    title: str
    draw: Callable[[Canvas], None]
    size: tuple[float, float] = (7.0, 4.2)
