"""Counts of the top and of a part, moved together to the closest counts that add up.

The closest point needs each part several times (`imaging.solvers.part_curves`), but never its
confidential counts: these are measured once (`measured_parts`).
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np

from congenial.domain.tree import Tree
from congenial.errors import DataError, ReleaseError
from congenial.imaging.closest_in_parts import ClosestPoint
from congenial.imaging.noisy import precision
from congenial.imaging.part_values import PartValues
from congenial.imaging.solvers.part_curves import solve_parts
from congenial.invariants.resolved import checked_draws
from congenial.noise.additive import Additive
from congenial.noise.law import find_law
from congenial.randomness import Randomness
from congenial.releases.making.measured_parts import (
    MeasuredParts,
    image_of,
    model_of,
    piece_of,
)
from congenial.releases.making.part_draws import DrawnRows, drawn_rows, forest_below
from congenial.releases.making.part_law import CHANGED, CutNode, FromTop, PartLaw
from congenial.releases.making.part_method import TopOrder, measured_claims
from congenial.types import IntArray

# Kinds of values that are kept: the closest point, and the integers near it.
_CLOSEST, _RELEASED = "closest", "released"

claims = measured_claims


def draw_top(asked: TopOrder) -> tuple[DrawnRows, list[FromTop]]:
    """Measure all counts, and move them to the closest counts that add up."""
    law, model, counts = asked.law, asked.top.model, asked.top.counts
    rng, roots, kept = asked.order.randomness, asked.roots, PartValues(asked.aside)
    below = Additive(find_law(law.plan.privacy.noise)(np.array(law.scale)), len(law.scale))
    most = max(float(precision(each).max()) for each in (model.mechanism, below))
    parts = MeasuredParts(law, tuple(asked.top.nodes), most, kept)
    asked.top.source.measure(parts)
    asked.order.notify("moving the counts of all parts")
    measured = np.asarray(image_of(model).measure(counts, rng=rng), dtype=np.int64)
    top = piece_of(model, measured, most, np.arange(len(counts)))
    z = solve_parts(top, roots, parts.piece, kept.storing(_CLOSEST))
    closest = ClosestPoint(top, roots, parts.piece, partial(kept.values, _CLOSEST))
    # counts below the cut are not negative and add up to those above
    largest = float(np.abs(z).max())
    whole = closest.rounded(z, largest, kept.storing(_RELEASED), rng.bits)
    values = checked_draws(model.resolved, np.rint(whole).astype(np.int64), counts)
    place = str(asked.aside)
    given = [FromTop(total, imaged=(place, k)) for k, total in enumerate(values[roots].tolist())]
    return drawn_rows(model, counts, measured, values), given


def draw_below(
    law: PartLaw,
    domain: Tree,
    counts: IntArray,
    node: CutNode,
    given: FromTop,
    rng: Randomness,  # noqa: ARG001 -- other methods need it, see `PartMethod`
) -> DrawnRows:
    """Return the released counts of a part, which follow already; see `PartMethod`."""
    if given.imaged is None:
        raise AssertionError("a part that is imaged has been measured")
    place, number = given.imaged
    tree, kept = forest_below(domain, law.depth), PartValues(Path(place))
    seen, measured = kept.measured(number)
    if not seen.same_as(tree):
        raise DataError(CHANGED)
    values = np.rint(kept.values(_RELEASED, number)).astype(np.int64)
    measured[0] = given.total
    values = checked_draws(model_of(law, tree, node).resolved, values, measured)
    if values[0] != given.total:
        raise ReleaseError("a part does not have the released count of its node; release again.")
    # for readers the node's own count is that of the top
    return drawn_rows(model_of(law, tree), counts[law.depth :], measured, values)
