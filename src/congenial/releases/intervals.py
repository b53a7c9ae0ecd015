"""Intervals of a release, from its plan, its nodes and the published numbers alone."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, cast

import msgspec
import numpy as np

from congenial.accounting.mechanism import Certified
from congenial.conditioning.laws.forest_sampler import Conditioned
from congenial.releases.accuracy import (
    UNKNOWN,
    Basis,
    ByPosterior,
    LevelAccuracy,
    Margins,
    NoIntervals,
    Obstacle,
    Source,
    estimates,
    levels,
    source_of,
)
from congenial.releases.model import Model
from congenial.releases.table_inversion import proved_ends
from congenial.releases.table_posterior import NoEnds, posterior_ends
from congenial.types import BoolArray, IntArray


@dataclass(frozen=True, eq=False)
class Intervals:
    """The intervals of one release."""

    basis: Basis  # How they were worked out; `ByPosterior` if an inversion was not possible.
    known: BoolArray  # shape (n,)
    # `lower` and `upper`: shape (n,): Ends, where known.
    lower: IntArray
    upper: IntArray
    # `lower_all` and `upper_all`: shape (n,), or None: Ends of the intervals that hold for all
    # counts of a level at once.
    lower_all: IntArray | None
    upper_all: IntArray | None
    known_all: BoolArray  # shape (n,): Where there are such intervals.
    sums: tuple[SumInterval, ...]

    @property
    def source(self) -> Source:
        """The kind of the basis."""
        return source_of(self.basis)

    @property
    def columns(self) -> dict[str, list[int | None]]:
        """The ends as columns of the released table, by name."""
        found = {"lower": _column(self.lower, self.known), "upper": _column(self.upper, self.known)}
        if self.lower_all is not None and self.upper_all is not None:
            found["level_lower"] = _column(self.lower_all, self.known_all)
            found["level_upper"] = _column(self.upper_all, self.known_all)
        return found


class SumInterval(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A sum that the plan asks for."""

    name: str  # Name of the sum in the plan.
    nodes: tuple[str, ...]  # Paths of the nodes that are summed, from the root.
    value: int  # The sum of their released counts.
    # `lower` and `upper`: Ends of the sum's interval; null if it has none.
    lower: int | None
    upper: int | None


class StatedAccuracy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The meaning of the columns `lower` and `upper` of the released table.

    By a posterior only leaves and exact counts have intervals, and no sum that is not exact.
    """

    # Probability, at least, with which an interval holds its true count.
    confidence: Annotated[float, msgspec.Meta(ge=0.0, le=1.0)]
    basis: Basis  # How the intervals were worked out, or why there are none.
    levels: tuple[LevelAccuracy, ...]  # The error margins known before the release, by level.
    sums: tuple[SumInterval, ...]  # The sums that the plan asks for.

    @property
    def source(self) -> Source:
        """The kind of the basis."""
        return source_of(self.basis)


def interval_columns(*, simultaneous: bool) -> tuple[str, ...]:
    """Names of the columns that hold intervals."""
    return ("lower", "upper", *(("level_lower", "level_upper") if simultaneous else ()))


def intervals(
    model: Model,
    mechanism: Certified,
    found: Margins,
    value: IntArray,
    measured: IntArray | None = None,
) -> Intervals:
    """Work out the intervals of a release from what is published."""
    if found.source == "inversion":
        return _by_inversion(model, cast(Conditioned, mechanism), found, value)
    return _by_margins(model, found, value, measured)


def _by_margins(
    model: Model, found: Margins, value: IntArray, measured: IntArray | None
) -> Intervals:
    n = len(model.domain)
    known = known_all = found.margin != UNKNOWN
    centre, low, high = value, np.full(n, -np.inf), np.full(n, np.inf)
    if found.source == "measurements" and measured is not None:
        centre = estimates(model, value, measured)
        # other bounds are mandates on released counts, which the true ones need not keep
        low = np.full(n, 0.0 if model.plan.invariants.nonnegative else -np.inf)

    def ends(at: IntArray, reach: IntArray) -> tuple[IntArray, IntArray]:
        below = np.minimum(np.maximum(at - reach, low), value)
        above = np.maximum(np.minimum(at + reach, high), value)
        return below.astype(np.int64), above.astype(np.int64)

    lower, upper = ends(centre, found.margin)
    lower_all = upper_all = None
    if found.together is not None:
        lower_all, upper_all = ends(centre, found.together)
        known_all = found.together != UNKNOWN
    sums = []
    for asked in found.sums:
        at = list(asked.nodes)
        total, middle = int(value[at].sum()), int(centre[at].sum())
        first = last = None
        if asked.margin is not None:
            least = float(low[at].sum())
            first = min(total, int(max(middle - asked.margin, least)))
            last = max(total, int(min(middle + asked.margin, float(high[at].sum()))))
        sums.append(SumInterval(asked.name, _names(model, at), total, first, last))
    return Intervals(found.basis, known, lower, upper, lower_all, upper_all, known_all, tuple(sums))


def _by_inversion(
    model: Model, mechanism: Conditioned, found: Margins, value: IntArray
) -> Intervals:
    """Work out intervals from the released counts: by inversion, else by the posterior."""
    ends = proved_ends(model, mechanism, value, [asked.nodes for asked in found.sums])
    if isinstance(ends, NoEnds):
        return _by_posterior(model, found, value, ends.why)
    made = _by_margins(model, found, value, None)
    every, asked_all = np.ones_like(made.known), found.together is not None
    return replace(
        made,
        known=every,
        lower=ends.lower,
        upper=ends.upper,
        lower_all=ends.lower_all if asked_all else None,
        upper_all=ends.upper_all if asked_all else None,
        known_all=every,
        sums=tuple(
            msgspec.structs.replace(total, lower=low, upper=high)
            for total, (low, high) in zip(made.sums, ends.sums, strict=True)
        ),
    )


def _by_posterior(model: Model, found: Margins, value: IntArray, why: Obstacle) -> Intervals:
    """Work out intervals of the leaves by the posterior of the table, or say why there are none.

    Sums have none, because the posterior does not undo the shift that bounds give to them.
    """
    ends = posterior_ends(model, value)
    if isinstance(ends, NoEnds):
        return _by_margins(model, replace(found, basis=NoIntervals((why, ends.why))), value, None)
    found = replace(found, basis=ByPosterior(why))
    made = _by_margins(model, found, value, None)
    return replace(made, known=made.known | model.domain.is_leaf, lower=ends[0], upper=ends[1])


def _column(ends: IntArray, known: BoolArray) -> list[int | None]:
    return [v if k else None for v, k in zip(ends.tolist(), known.tolist(), strict=True)]


def _names(model: Model, nodes: list[int]) -> tuple[str, ...]:
    return tuple("/".join(model.domain.path(v)) for v in nodes)


def state(model: Model, found: Margins, made: Intervals) -> StatedAccuracy:
    """State the intervals of a release as the certificate does."""
    return StatedAccuracy(
        model.plan.accuracy.confidence, made.basis, levels(model, found), made.sums
    )
