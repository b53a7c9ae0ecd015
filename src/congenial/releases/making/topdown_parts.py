"""Counts of the top and of a part, drawn by TopDown.

TopDown goes down from the root and never changes a count again. So the top is drawn first, and each
part given the released count of its node.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from congenial.domain.tree import Tree
from congenial.imaging.top_down import TopDown, descending
from congenial.invariants.resolved import checked_draws
from congenial.randomness import Randomness
from congenial.releases.making.part_draws import DrawnRows, drawn_rows, forest_below
from congenial.releases.making.part_law import CutNode, FromTop, PartLaw
from congenial.releases.making.part_method import Claims, CountedTop, TopOrder, measured_claims
from congenial.releases.model import Model
from congenial.releases.part_models import below_model
from congenial.types import IntArray


def claims(top: CountedTop) -> Claims:
    """Return the claims; refuse exact counts that leave no release."""
    _image_of(top.model).check_exact(top.counts)
    return measured_claims(top)


def draw_top(asked: TopOrder) -> tuple[DrawnRows, list[FromTop]]:
    """Measure and draw the counts down to the cut."""
    model, counts, rng = asked.top.model, asked.top.counts, asked.order.randomness
    asked.order.notify(f"drawing the counts down to {asked.top.cut.level}")
    noisy = TopDown(model.mechanism, model.resolved).measure(counts, rng=rng)
    measured = np.asarray(noisy, dtype=np.int64)
    values = _image_of(model).apply(np.where(model.determined, counts, measured), rng)
    values = checked_draws(model.resolved, np.asarray(values, dtype=np.int64), counts)
    given = [FromTop(total) for total in values[asked.roots].tolist()]
    return drawn_rows(model, counts, measured, values), given


def draw_below(
    law: PartLaw,
    domain: Tree,
    counts: IntArray,
    node: CutNode,  # noqa: ARG001 -- other methods need it, see `PartMethod`
    given: FromTop,
    rng: Randomness,
) -> DrawnRows:
    """Measure and draw the counts below a cut node; see `PartMethod`."""
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


def _image_of(model: Model) -> TopDown:
    # a count that follows from exact counts may have no measurement
    return descending(model.mechanism, replace(model.resolved, pinned=model.determined))
