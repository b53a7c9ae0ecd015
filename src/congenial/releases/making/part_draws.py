"""Counts of the top and of a part, measured and drawn by TopDown."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import cast

import numpy as np

from congenial.accounting.mechanism import Certified
from congenial.domain.tree import Tree
from congenial.imaging.top_down import TopDown, descending
from congenial.invariants.feasibility.feasible import check_pinned
from congenial.invariants.resolved import checked_draws
from congenial.plan.plan import Plan
from congenial.randomness import Randomness
from congenial.releases.accuracy import Margins, margins_of_measured
from congenial.releases.file_table import Column, every
from congenial.releases.intervals import intervals
from congenial.releases.measurements import measurement_columns
from congenial.releases.model import Model
from congenial.releases.part_models import below_model
from congenial.types import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class DrawnRows:
    """Released counts of the top or of a part, with the other numbers of their rows."""

    model: Model = field(repr=False)
    found: Margins = field(repr=False)
    counts: IntArray = field(repr=False)  # The confidential counts.
    measured: IntArray = field(repr=False)
    values: IntArray

    def columns(self, *, truth: bool) -> dict[str, Column]:
        """Return the columns of the released table that do not name a count."""
        measured = self.measured if self.model.plan.release.measurements else None
        image = cast(Certified, TopDown(self.model.mechanism, self.model.resolved))
        ends = intervals(self.model, image, self.found, self.values, measured).columns
        own: dict[str, Column] = {"value": every(self.values), **ends}
        return {**own, "truth": every(self.counts)} if truth else own

    def measurements(self) -> dict[str, Column]:
        """Return the columns of the table of measurements that do not name a count."""
        model = self.model
        return {**measurement_columns(model.mechanism, model.resolved.pinned, self.measured)}


def check_exact(over: Model, counts: IntArray) -> None:
    """Refuse exact counts that leave no release; no other count is read."""
    check_pinned(over.resolved, counts, over.invariant, whole=True, domain=over.domain)
    _image_of(over).check_exact(counts)


def draw_top(over: Model, counts: IntArray, rng: Randomness) -> DrawnRows:
    """Measure and draw the counts down to the cut."""
    noisy = TopDown(over.mechanism, over.resolved).measure(counts, rng=rng)
    measured = np.asarray(noisy, dtype=np.int64)
    values = _image_of(over).apply(np.where(over.determined, counts, measured), rng)
    values = checked_draws(over.resolved, np.asarray(values, dtype=np.int64), counts)
    return DrawnRows(over, margins_of_measured(over), counts, measured, values)


def _image_of(over: Model) -> TopDown:
    # a count that follows from exact counts may have no measurement
    return descending(over.mechanism, replace(over.resolved, pinned=over.determined))


def draw_below(
    plan: Plan, scale: FloatArray, domain: Tree, counts: IntArray, total: int, rng: Randomness
) -> DrawnRows:
    """Measure and draw the counts below a cut node, which add up to its released count `total`.

    `domain` has the path down to the node and all below it. `scale` is that of each level below the
    node. The node comes first in what is drawn.
    """
    depth = len(plan.hierarchy.levels) - len(scale)
    parents = domain.parents[depth:] - depth
    parents[0] = -1
    tree = Tree.from_parents(parents, domain.names[depth:])
    levels = np.concatenate(([np.inf], scale))
    pinned = below_model(plan, levels, tree, tree.roots)
    image = descending(pinned.mechanism, pinned.resolved)
    measured = np.asarray(image.measure(counts[depth:], rng=rng), dtype=np.int64)
    measured[0] = total  # in the place of the confidential count, which is not exact
    values = checked_draws(pinned.resolved, image.move(measured, rng), measured)
    # for readers the node's own count is not exact either
    part = below_model(plan, levels, tree, tree.roots[:0])
    return DrawnRows(part, margins_of_measured(part), counts[depth:], measured, values)
