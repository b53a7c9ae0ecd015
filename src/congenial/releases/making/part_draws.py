"""Counts of the top and of a part as they are drawn, and how TopDown draws them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from congenial.domain.tree import Tree
from congenial.imaging.top_down import TopDown, descending
from congenial.invariants.feasibility.feasible import check_pinned
from congenial.invariants.resolved import checked_draws
from congenial.randomness import Randomness
from congenial.releases.accuracy import Margins, margins_in_parts
from congenial.releases.file_table import Column, every
from congenial.releases.intervals import by_margins
from congenial.releases.making.part_law import FromTop, PartLaw
from congenial.releases.measurements import measurement_columns
from congenial.releases.model import Model
from congenial.releases.part_models import below_model
from congenial.types import IntArray


@dataclass(frozen=True, eq=False)
class DrawnRows:
    """Released counts of the top or of a part, with the other numbers of their rows."""

    model: Model = field(repr=False)
    found: Margins = field(repr=False)
    counts: IntArray = field(repr=False)  # The confidential counts.
    measured: IntArray | None  # None if they are not published.
    values: IntArray

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


def check_exact(over: Model, counts: IntArray) -> None:
    """Refuse exact counts that leave no release; no other count is read."""
    check_pinned(over.resolved, counts, over.invariant, whole=True, domain=over.domain)
    if over.plan.method.name == "topdown":
        _image_of(over).check_exact(counts)


def draw_top(over: Model, counts: IntArray, rng: Randomness) -> DrawnRows:
    """Measure and draw the counts down to the cut."""
    noisy = TopDown(over.mechanism, over.resolved).measure(counts, rng=rng)
    measured = np.asarray(noisy, dtype=np.int64)
    values = _image_of(over).apply(np.where(over.determined, counts, measured), rng)
    values = checked_draws(over.resolved, np.asarray(values, dtype=np.int64), counts)
    return drawn_rows(over, counts, measured, values)


def _image_of(over: Model) -> TopDown:
    # a count that follows from exact counts may have no measurement
    return descending(over.mechanism, replace(over.resolved, pinned=over.determined))


def draw_below(
    law: PartLaw, domain: Tree, counts: IntArray, given: FromTop, rng: Randomness
) -> DrawnRows:
    """Measure and draw the counts below a cut node, which add up to its released count.

    `domain` has the path down to the node and all below it. The node comes first in what is drawn.
    """
    tree = forest_below(domain, law.depth)
    levels = np.concatenate(([np.inf], law.scale[1:]))
    pinned = below_model(law.plan, levels, tree, tree.roots)
    image = descending(pinned.mechanism, pinned.resolved)
    measured = np.asarray(image.measure(counts[law.depth :], rng=rng), dtype=np.int64)
    measured[0] = given.total  # in the place of the confidential count, which is not exact
    values = checked_draws(pinned.resolved, image.move(measured, rng), measured)
    # for readers the node's own count is not exact either
    part = below_model(law.plan, levels, tree, tree.roots[:0])
    return drawn_rows(part, counts[law.depth :], measured, values)


def forest_below(domain: Tree, depth: int) -> Tree:
    """Return the tree below a cut node of a depth, given the path down to it and all below it."""
    parents = domain.parents[depth:] - depth
    parents[0] = -1
    return Tree.from_parents(parents, domain.names[depth:])


def drawn_rows(model: Model, counts: IntArray, measured: IntArray, values: IntArray) -> DrawnRows:
    """Return the rows of noisy counts that were moved; measurements only if they are published."""
    published = measured if model.plan.release.measurements else None
    return DrawnRows(model, margins_in_parts(model), counts, published, values)
