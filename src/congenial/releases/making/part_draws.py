"""Counts of the top and of a part as they are drawn."""

from __future__ import annotations

from dataclasses import dataclass, field

from congenial.domain.tree import Tree
from congenial.releases.accuracy import Margins, margins_in_parts
from congenial.releases.file_table import Column, every
from congenial.releases.intervals import by_margins
from congenial.releases.measurements import measurement_columns
from congenial.releases.model import Model
from congenial.releases.specification import LevelAlpha
from congenial.types import IntArray


@dataclass(frozen=True, eq=False)
class DrawnRows:
    """Released counts of the top or of a part, with the other numbers of their rows."""

    model: Model = field(repr=False)
    found: Margins = field(repr=False)
    counts: IntArray = field(repr=False)  # The confidential counts.
    measured: IntArray | None  # None if they are not published.
    values: IntArray
    prior: tuple[LevelAlpha, ...] | None = None  # Fitted to the measurements of all counts.

    def columns(self, *, truth: bool) -> dict[str, Column]:
        """Return the columns of the released table that do not name a count."""
        ends = by_margins(self.model, self.found, self.values, self.measured).columns
        own: dict[str, Column] = {"value": every(self.values), **ends}
        return {**own, "truth": every(self.counts)} if truth else own

    def measurements(self) -> dict[str, Column]:
        """Return the columns of the table of measurements that do not name a count."""
        model = self.model
        if self.measured is None:
            raise AssertionError("the measurements are not published")
        return {**measurement_columns(model.mechanism, model.resolved.pinned, self.measured)}


def forest_below(domain: Tree, depth: int) -> Tree:
    """Return the tree below a cut node of a depth, given the path down to it and all below it."""
    parents = domain.parents[depth:] - depth
    parents[0] = -1
    return Tree.from_parents(parents, domain.names[depth:])


def drawn_rows(model: Model, counts: IntArray, measured: IntArray, values: IntArray) -> DrawnRows:
    """Return the rows of noisy counts that were moved; measurements only if they are published."""
    published = measured if model.plan.release.measurements else None
    return DrawnRows(model, margins_in_parts(model), counts, published, values)
