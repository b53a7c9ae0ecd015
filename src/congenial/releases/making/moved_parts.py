"""Counts of the top and of a part, moved together to counts that add up.

These are the closest ones, or those of the least expected error. Either needs each part several
times (`imaging.solvers.part_curves`, `inference.best_in_parts`), but never its confidential counts:
these are measured once (`measured_parts`).
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from congenial.domain.tree import Tree
from congenial.errors import DataError, ReleaseError
from congenial.imaging.closest_in_parts import ClosestPoint
from congenial.imaging.noisy import precision
from congenial.imaging.part_values import PartValues
from congenial.imaging.solvers.part_curves import solve_parts
from congenial.inference.best_in_parts import (
    RELEASED,
    LawInParts,
    evidence_about,
    fit_in_parts,
)
from congenial.inference.best_table import REFUSED
from congenial.inference.splits.tree_pieces import Pieces
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
from congenial.releases.measurements import stated_prior
from congenial.releases.specification import LevelAlpha
from congenial.types import IntArray

# Kind of values that are kept: the closest point. The counts are kept as `RELEASED`.
_CLOSEST = "closest"
# Counts of the top, and the prior by which they were made.
_Top = tuple[IntArray, tuple[LevelAlpha, ...] | None]

claims = measured_claims


def draw_top(asked: TopOrder) -> tuple[DrawnRows, list[FromTop]]:
    """Measure all counts, and move them to counts that add up."""
    law, model, counts = asked.law, asked.top.model, asked.top.counts
    rng, roots, kept = asked.order.randomness, asked.roots, PartValues(asked.aside)
    below = Additive(find_law(law.plan.privacy.noise)(np.array(law.scale)), len(law.scale))
    most = max(float(precision(each).max()) for each in (model.mechanism, below))
    parts = MeasuredParts(law, tuple(asked.top.nodes), most, kept)
    asked.top.source.measure(parts)
    asked.order.notify("moving the counts of all parts")
    measured = np.asarray(image_of(model).measure(counts, rng=rng), dtype=np.int64)
    table = _best(asked, parts, measured) if law.plan.method.name == "posterior" else None
    values, prior = _closest(asked, parts, measured) if table is None else table
    values = checked_draws(model.resolved, values, counts)
    place = str(asked.aside.absolute())  # for workers, too
    given = [FromTop(total, moved=(place, k)) for k, total in enumerate(values[roots].tolist())]
    return replace(drawn_rows(model, counts, measured, values), prior=prior), given


def _closest(asked: TopOrder, parts: MeasuredParts, measured: IntArray) -> _Top:
    """Return the top of the closest table; the counts of parts are kept."""
    kept, roots, rng = parts.kept, asked.roots, asked.order.randomness
    top = piece_of(asked.top.model, measured, parts.precision, np.arange(measured.size))
    z = solve_parts(top, roots, parts.piece, kept.storing(_CLOSEST))
    closest = ClosestPoint(top, roots, parts.piece, partial(kept.values, _CLOSEST))
    # counts below the cut are not negative and add up to those above
    largest = float(np.abs(z).max())
    whole = closest.rounded(z, largest, kept.storing(RELEASED), rng.bits)
    return np.rint(whole).astype(np.int64), None


def _best(asked: TopOrder, parts: MeasuredParts, measured: IntArray) -> _Top | None:
    """Return the top of the table of least expected error, and the prior; None if it is not known.

    The counts of parts are kept.
    """
    model, plan = asked.top.model, asked.law.plan
    top = evidence_about(model.mechanism, model.resolved, measured)
    number, notify = parts.number_of_categories, asked.order.notify
    pieces = Pieces(top, asked.roots, parts.evidence, parts.kept, number, notify)
    try:
        splits = fit_in_parts(pieces)
        law = LawInParts.of(pieces, model.resolved.pinned, splits)
        values = law.least(plan.method.loss, asked.order.randomness)
    except REFUSED:
        return None
    return values, stated_prior(plan, splits.alpha, splits.spread)


def draw_below(
    law: PartLaw,
    domain: Tree,
    counts: IntArray,
    node: CutNode,
    given: FromTop,
    rng: Randomness,  # noqa: ARG001 -- other methods need it, see `PartMethod`
) -> DrawnRows:
    """Return the released counts of a part, which follow already; see `PartMethod`."""
    if given.moved is None:
        raise AssertionError("a part that is moved has been measured")
    place, number = given.moved
    tree, kept = forest_below(domain, law.depth), PartValues(Path(place))
    seen, measured = kept.measured(number)
    if not seen.same_as(tree):
        raise DataError(CHANGED)
    values = np.rint(kept.values(RELEASED, number)).astype(np.int64)
    measured[0] = given.total
    values = checked_draws(model_of(law, tree, node).resolved, values, measured)
    if values[0] != given.total:
        raise ReleaseError("a part does not have the released count of its node; release again.")
    # for readers the node's own count is that of the top
    return drawn_rows(model_of(law, tree), counts[law.depth :], measured, values)
