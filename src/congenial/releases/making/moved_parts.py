"""Counts of the top and of a part, moved together to counts that add up.

These are the closest ones, or those of the least expected error. Either needs each part several
times (`imaging.solvers.part_curves`, `inference.best_in_parts`), but never its confidential counts:
these are measured once (`measured_parts`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from congenial.domain.tree import Tree
from congenial.domain.workers import Workers
from congenial.errors import DataError, ReleaseError
from congenial.imaging.closest_in_parts import ClosestPoint
from congenial.imaging.noisy import precision
from congenial.imaging.part_values import PartValues, Storing
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
    rng, roots = asked.order.randomness, asked.roots
    below = Additive(find_law(law.plan.privacy.noise)(np.array(law.scale)), len(law.scale))
    most = max(float(precision(each).max()) for each in (model.mechanism, below))
    exact = np.array([node.exact for node in asked.top.nodes])
    place = asked.aside.absolute()  # for workers elsewhere, too
    kept, workers = asked.top.source.workers(place)
    parts = MeasuredParts(law, exact, most, kept)
    categories = asked.top.source.measure(parts, asked.top.nodes)
    measured = np.asarray(image_of(model).measure(counts, rng=rng), dtype=np.int64)
    moving = _Moving(asked, parts, measured, workers)
    table = moving.best(categories) if law.plan.method.name == "posterior" else None
    values, prior = moving.closest() if table is None else table
    values = checked_draws(model.resolved, values, counts)
    given = [
        FromTop(total, moved=(str(place), k)) for k, total in enumerate(values[roots].tolist())
    ]
    return replace(drawn_rows(model, counts, measured, values), prior=prior), given


@dataclass(frozen=True, eq=False)
class _Moving:
    """All measurements, which are moved to counts that add up. Those of parts are kept."""

    asked: TopOrder
    parts: MeasuredParts
    measured: IntArray  # Of the top.
    workers: Workers

    def closest(self) -> _Top:
        """Return the top of the closest table."""
        parts, roots, workers = self.parts, self.asked.roots, self.workers
        y, kept = self.measured, parts.kept
        top = piece_of(self.asked.top.model, y, parts.precision, np.arange(y.size))
        z = solve_parts(top, roots, parts.piece, Storing(kept, _CLOSEST), workers)
        closest = ClosestPoint(top, roots, parts.piece, partial(kept.values, _CLOSEST))
        # counts below the cut are not negative and add up to those above
        largest, rng = float(np.abs(z).max()), self.asked.order.randomness
        whole = closest.rounded(z, largest, Storing(kept, RELEASED), rng, workers)
        return np.rint(whole).astype(np.int64), None

    def best(self, categories: int) -> _Top | None:
        """Return the top of the table of least expected error, and the prior.

        None if the posterior cannot be worked out. `categories` is the number of those that all
        families of leaves have.
        """
        model, plan = self.asked.top.model, self.asked.law.plan
        top, parts = evidence_about(model.mechanism, model.resolved, self.measured), self.parts
        fetched = parts.evidence, parts.kept, categories, self.workers
        pieces = Pieces.of(top, self.asked.roots, *fetched)
        try:
            splits = fit_in_parts(pieces)
            law = LawInParts.of(pieces, model.resolved.pinned, splits)
            values = law.least(plan.method.loss, self.asked.order.randomness)
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
    values = checked_draws(model_of(law, tree, exact=node.exact).resolved, values, measured)
    if values[0] != given.total:
        raise ReleaseError("a part does not have the released count of its node; release again.")
    # for readers the node's own count is that of the top
    return drawn_rows(model_of(law, tree, exact=False), counts[law.depth :], measured, values)
