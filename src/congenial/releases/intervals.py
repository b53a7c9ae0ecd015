"""Intervals of a release, from its plan, its nodes and the published numbers alone."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Literal, cast

import msgspec
import numpy as np

from congenial.accounting.mechanism import Certified
from congenial.conditioning.laws.forest_sampler import Conditioned
from congenial.errors import ArgumentError, NumericalError, UnsupportedError
from congenial.invariants.written import consistent, exactly, nonnegative
from congenial.releases.accuracy import (
    UNKNOWN,
    Basis,
    ByInversion,
    ByMeasurements,
    ByPosterior,
    LevelAccuracy,
    Margins,
    NoIntervals,
    Obstacle,
    estimates,
    levels,
)
from congenial.releases.file_table import Column, Numbers
from congenial.releases.model import Model
from congenial.types import BoolArray, IntArray

if TYPE_CHECKING:
    from congenial.inference.posteriors import Posterior, PriorName
    from congenial.inference.priors import Prior
    from congenial.inference.splits.dirichlet_tree import DirichletTree

Ends = tuple[IntArray, IntArray]

# The prior of intervals in a release: no other suits skewed counts.
PRIOR: Literal["negative-binomial"] = "negative-binomial"
# Largest sum of the squared noise scales of the leaves for which posterior intervals are computed,
# and the least scale counted: a million leaves of scale 4 take half a minute and 2.4 GB.
MOST_WORK, LEAST_SCALE = float(1 << 24), 4.0
# Most intervals that may differ between machines, and the probability that one may lose thereby.
_FEW, _CLOSE = 32, 1e-7


@dataclass(frozen=True, eq=False)
class Intervals:
    """The intervals of one release."""

    basis: Basis  # How they were worked out; `ByPosterior` if an inversion was not possible.
    known: BoolArray  # shape (n,): Where there are intervals.
    # `lower` and `upper`: shape (n,): Ends, where `known`.
    lower: IntArray
    upper: IntArray
    # `lower_all` and `upper_all`: shape (n,), or None: Ends of the intervals that hold for all
    # counts of a level at once.
    lower_all: IntArray | None
    upper_all: IntArray | None
    known_all: BoolArray  # shape (n,): Where there are such intervals.
    sums: tuple[SumInterval, ...]

    @property
    def columns(self) -> dict[str, Column]:
        """The ends as columns of the released table, by name."""
        found: dict[str, Column] = {
            "lower": Numbers(self.lower, self.known),
            "upper": Numbers(self.upper, self.known),
        }
        if self.lower_all is not None and self.upper_all is not None:
            found["level_lower"] = Numbers(self.lower_all, self.known_all)
            found["level_upper"] = Numbers(self.upper_all, self.known_all)
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
    def source(self) -> str:
        """The kind of the basis."""
        return self.basis.source


def interval_columns(simultaneous: bool) -> tuple[str, ...]:
    """Names of the columns that hold intervals."""
    return ("lower", "upper", *(("level_lower", "level_upper") if simultaneous else ()))


def state(model: Model, found: Margins, made: Intervals) -> StatedAccuracy:
    """State the intervals of a release as the certificate does."""
    return StatedAccuracy(
        model.plan.accuracy.confidence, made.basis, levels(model, found), made.sums
    )


def intervals(
    model: Model,
    mechanism: Certified,
    found: Margins,
    value: IntArray,
    measured: IntArray | None = None,
) -> Intervals:
    """Work out the intervals of a release from what is published.

    A release that was conditioned on bounds has intervals by inversion; if that is not possible,
    its leaves have intervals by the posterior.
    """
    if isinstance(found.basis, ByPosterior):
        proved: Intervals | Obstacle = found.basis.not_by_inversion
    elif isinstance(found.basis, ByInversion):
        proved = by_inversion(model, cast(Conditioned, mechanism), found, value)
    else:
        return by_margins(model, found, value, measured)
    if isinstance(proved, Intervals):
        return proved
    ends = posterior_ends(model, value)
    if isinstance(ends, str):
        return by_margins(model, replace(found, basis=NoIntervals((proved, ends))), value)
    made = by_margins(model, replace(found, basis=ByPosterior(proved)), value)
    return replace(made, known=made.known | model.domain.is_leaf, lower=ends[0], upper=ends[1])


def sums_of(
    model: Model,
    mechanism: Certified,
    found: Margins,
    value: IntArray,
    measured: IntArray | None = None,
) -> tuple[SumInterval, ...]:
    """Return the intervals of the sums alone, as `intervals` has them.

    By a posterior no sum has an interval unless it is exact, so it is not worked out.
    """
    if isinstance(found.basis, ByInversion):
        proved = by_inversion(model, cast(Conditioned, mechanism), found, value)
        if isinstance(proved, Intervals):
            return proved.sums
    return by_margins(model, found, value, measured).sums


def by_margins(
    model: Model, found: Margins, value: IntArray, measured: IntArray | None = None
) -> Intervals:
    """Work out intervals by error margins around the counts, or around their measurements."""
    known = known_all = found.margin != UNKNOWN
    centre, least = value, np.iinfo(np.int64).min
    if isinstance(found.basis, ByMeasurements) and measured is not None:
        centre = estimates(model, value, measured)
        # other bounds hold for released counts, and true counts may break them
        least = 0 if model.plan.invariants.nonnegative else least
    lower, upper = _around(centre, found.margin, value, least)
    lower_all = upper_all = None
    if found.together is not None:
        lower_all, upper_all = _around(centre, found.together, value, least)
        known_all = found.together != UNKNOWN
    sums = []
    for asked in found.sums:
        at = list(asked.nodes)
        total, middle = int(value[at].sum()), int(centre[at].sum())
        first = last = None
        if asked.margin is not None:
            first = min(total, max(middle - asked.margin, least))
            last = max(total, middle + asked.margin)
        sums.append(SumInterval(asked.name, _names(model, at), total, first, last))
    return Intervals(found.basis, known, lower, upper, lower_all, upper_all, known_all, tuple(sums))


def _around(centre: IntArray, margin: IntArray, value: IntArray, least: int) -> Ends:
    """Ends at a margin from the centre, cut at `least` and widened to include the value."""
    lower = np.minimum(np.maximum(centre - margin, least), value)
    return lower, np.maximum(centre + margin, value)


def by_inversion(
    model: Model, mechanism: Conditioned, found: Margins, value: IntArray
) -> Intervals | Obstacle:
    """Work out intervals that hold with the plan's confidence, whatever the counts are.

    If the intervals of all its nodes hold, a sum lies between the sums of their ends.
    """
    from congenial.inference.inversion import invert

    domain, fixed = model.domain, model.determined
    free = [] if found.together is None else range(domain.depth)
    alike = [~fixed & (domain.level == depth) for depth in free]
    sizes = [max(int(here.sum()), 1) for here in alike]
    parts = [max(int(np.count_nonzero(~fixed[list(asked.nodes)])), 1) for asked in found.sums]
    together = sorted({1, *sizes, *parts})
    try:
        inverted = invert(mechanism, value, model.plan.accuracy.alpha, together)
    except (UnsupportedError, MemoryError):
        return "inversion-takes-too-much"
    except NumericalError:
        return "inversion-needs-wider-tables"
    ends = dict(zip(together, inverted, strict=True))
    lower, upper = ends[1]
    lower_all, upper_all = lower.copy(), upper.copy()
    for here, size in zip(alike, sizes, strict=True):
        lower_all[here], upper_all[here] = (end[here] for end in ends[size])
    sums = []
    for asked, size in zip(found.sums, parts, strict=True):
        at = list(asked.nodes)
        low, high = (int(end[at].sum()) for end in ends[size])
        sums.append(SumInterval(asked.name, _names(model, at), int(value[at].sum()), low, high))
    every = np.ones(len(domain), dtype=np.bool_)
    return Intervals(
        found.basis,
        every,
        lower,
        upper,
        None if found.together is None else lower_all,
        None if found.together is None else upper_all,
        every,
        tuple(sums),
    )


def posterior_of_table(
    model: Model, value: IntArray, prior: PriorName | Prior | DirichletTree
) -> Posterior:
    """Return the law of the confidential counts given a released table, see `Release.posterior`."""
    from congenial.inference.posteriors import posterior

    if model.plan.method.name != "conditioning":
        raise UnsupportedError(
            "the posterior of this release is not known exactly, because it is an image without "
            "measurements; make releases with publish = ['table', 'measurements']."
        )
    # under equalities the normaliser is the same for all counts
    known = consistent(model.tree) & nonnegative()
    pinned = model.resolved.pinned
    if pinned.any():
        known = known & exactly(np.flatnonzero(pinned).tolist())
    return posterior(value, model.mechanism, known, prior)


def posterior_ends(model: Model, value: IntArray) -> Ends | Obstacle:
    """Work out intervals of a release from its table alone, under a prior fitted to it.

    Only the ends of leaves are of use: a posterior of the table does not undo the shift that bounds
    give to sums. Both the ends and the obstacle are functions of the released table, so they cost
    no privacy.
    """
    fixed = model.determined
    # a plan measures every leaf
    scales = np.maximum(model.mechanism.scales[model.domain.is_leaf & ~fixed], LEAST_SCALE)
    if float(scales @ scales) > MOST_WORK:
        return "posterior-takes-too-much-work"
    try:
        low, high = posterior_of_table(model, value, PRIOR).intervals(model.plan.accuracy.alpha)
    except (UnsupportedError, MemoryError):
        return "posterior-takes-too-much-memory-or-time"
    except NumericalError:
        return "posterior-error-not-bounded"
    except ArgumentError:
        return "posterior-has-no-prior"
    return np.where(fixed, value, low), np.where(fixed, value, high)


def as_likely(model: Model, value: IntArray, at: IntArray, stated: Ends, found: Ends) -> bool:
    """Whether stated intervals are as likely as the intervals found, where the two differ.

    Notes
    -----
    Another machine may round a prior's last digits differently. Of two intervals that are equally
    short and likely it may then find the other one. That happens at few nodes, so more differences
    are a fault.
    """
    alike = (stated[0] - found[0] == stated[1] - found[1]) & (abs(stated[0] - found[0]) == 1)
    if at.size > _FEW or not alike.all():
        return False
    law = posterior_of_table(model, value, PRIOR)
    for v, *ends in zip(at.tolist(), *stated, *found, strict=True):
        values, probabilities = law.marginal(v)
        own, other = (
            probabilities[(low <= values) & (values <= high)].sum()
            for low, high in (ends[:2], ends[2:])
        )
        if own < other - _CLOSE:
            return False
    return True


def _names(model: Model, nodes: list[int]) -> tuple[str, ...]:
    return tuple("/".join(model.domain.path(v)) for v in nodes)
