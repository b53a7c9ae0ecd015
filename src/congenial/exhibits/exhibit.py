"""Exhibits: the content of tables and figures, without a file format."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from congenial.errors import ArgumentError
from congenial.wording import MOST_ROWS, aligned, cell_text, html_table, left_out

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

Cell = str | int | float | None


@dataclass(frozen=True, repr=False)
class Exhibit:
    """A table as plain rows; printed, it shows the first of them.

    ``pandas.DataFrame(table.rows, columns=table.columns)`` has the same rows.
    """

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

    def __repr__(self) -> str:
        """Lay the first rows out as lines of text, under the title."""
        shown = [list(map(cell_text, row)) for row in self.rows[:MOST_ROWS]]
        notes = (*left_out(len(shown), len(self.rows)), *self.notes)
        return "\n".join([self.title, *aligned([self.columns, *shown]), *notes])

    def _repr_html_(self) -> str:
        return html_table(self.title, self.columns, self.rows, len(self.rows), self.notes)

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
    note: str = ""  # Sentences below the figure.
