"""Error margins of a release, worked out from its plan and its nodes before it is drawn."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, Literal, cast

import msgspec
import numpy as np

from congenial.accounting.mechanism import Certified
from congenial.accounting.neighbours.scope import Kind
from congenial.conditioning.laws.cycles import WithCycles
from congenial.conditioning.laws.forest_sampler import Conditioned
from congenial.imaging.top_down import TopDown
from congenial.imaging.update import Imaged
from congenial.inference.error_law import error_margins, error_margins_of_sums, stretched
from congenial.inference.noise_intervals import error_margin_of_noise_sum
from congenial.inference.simulated import cautious_alpha
from congenial.noise.law import NoiseLaw
from congenial.plan.plan import Plan, named_nodes
from congenial.randomness import seeded
from congenial.releases.model import Model
from congenial.sum_network import alike
from congenial.types import BoolArray, FloatArray, IntArray
from congenial.wording import on_a_line

# Why there are no intervals of a kind.
Obstacle = Literal[
    "bounds-bind",
    "errors-depend-on-counts",
    "margins-cross",
    "too-many-counts",
    "drawn-in-parts",
    "inversion-does-not-cover-bounds",
    "inversion-takes-too-much",
    "inversion-needs-wider-tables",
    "posterior-takes-too-much-work",
    "posterior-takes-too-much-memory-or-time",
    "posterior-error-not-bounded",
    "posterior-has-no-prior",
]

# Marks a node whose error margin is not known.
UNKNOWN = -1
# Number of simulated releases, and the number for plans with many counts; the largest number of
# values drawn for each.
DRAWS, FEWER = 9_999, 256
VALUES, MOST_VALUES = 1 << 25, 1 << 27
# Most work of simulated draws where margins cross: values drawn and numbers multiplied, seconds.
_MOST_WORK = 1 << 27
# Most counts of a table whose margins cross for which releases by imaging are simulated: each takes
# up to a tenth of a second, and FEWER are simulated.
_MOST_CROSSING = 400
# Probability that simulation makes a margin too small. The seed is fixed, so that `verify` gets the
# same margins.
RISK = 3e-5
_SEED = 20_261_121


class BasisKind(Kind, frozen=True):
    """How the intervals of a release were worked out, or why there are none."""

    @property
    def source(self) -> str:
        """The kind."""
        return str(self.__struct_config__.tag)


class ByLaw(BasisKind, frozen=True, tag="law"):
    """Intervals by the law of the error, which under equalities is the same for all counts."""


class BySimulation(BasisKind, frozen=True, tag="simulation"):
    """Intervals by the law of the error, from the quantiles of simulated releases."""

    releases: Annotated[int, msgspec.Meta(ge=1)]  # Number of simulated releases.
    # Bound on the probability that simulation makes any error margin too small.
    risk: Annotated[float, msgspec.Meta(ge=0.0, le=1.0)]


class ByMeasurements(BasisKind, frozen=True, tag="measurements"):
    """Intervals around the published measurements, or sums of them, by the law of their noise."""


class ByInversion(BasisKind, frozen=True, tag="inversion"):
    """Intervals by inversion, worked out from the released table alone."""


class ByPosterior(BasisKind, frozen=True, tag="posterior"):
    """Intervals of leaves by the posterior under a prior fitted to the table; none is proved."""

    not_by_inversion: Obstacle  # Why the intervals are not those by inversion.


class NoIntervals(BasisKind, frozen=True, tag="none"):
    """No intervals except of exact counts."""

    obstacles: tuple[Obstacle, ...]  # Why each way to work out intervals failed.


# Basis of the intervals of a release.
Basis = ByLaw | BySimulation | ByMeasurements | ByInversion | ByPosterior | NoIntervals
# That of a table that was conditioned part by part.
IN_PARTS = NoIntervals(("drawn-in-parts",))
# That of a table conditioned on crossing margins: bounds apply, or draws take too much work.
NO_MARGINS_OF_CROSSING = NoIntervals(("margins-cross",))


@dataclass(frozen=True, eq=False)
class Margins:
    """Error margins of the published numbers, known before anything is drawn."""

    # How the margins were worked out. Under `ByMeasurements` they are margins of measurements, not
    # of released counts. Under `ByInversion` and `ByPosterior` there are intervals once the table
    # is drawn.
    basis: Basis
    # shape (n,): 0 if a count is determined by exact counts, `UNKNOWN` if no margin is known.
    margin: IntArray
    # shape (n,), or None: Margins that hold for all counts of a level at once.
    together: IntArray | None
    sums: tuple[SumMargin, ...]


@dataclass(frozen=True)
class SumMargin:
    """The margin of a sum that the plan asks for; None where there is none."""

    name: str
    nodes: tuple[int, ...]
    margin: int | None


class LevelAccuracy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The error margins of a level, in counts.

    Where intervals rest on measurements, the margins are those of the measurements.
    """

    level: str  # Name of the level.
    # The largest error margin of one count; null if none is known before the release.
    margin: int | None
    # The largest error margin that holds for all counts of the level at once; null if the plan does
    # not ask for it, or none is known before the release.
    together: int | None
    # The largest error margin that the plan allows; null if it sets no limit.
    required: float | None
    met: bool | None  # Whether `margin` is at most `required`; null if either is null.


def margins(
    model: Model,
    mechanism: Certified,
    *,
    in_parts: bool = False,
    without_crossing: bool = False,
    sums_only: bool = False,
) -> Margins:
    """Work out the margins of a release, which may have been drawn in parts.

    A release `without_crossing` states that there are none where margins cross.

    With `sums_only`, only the margins of sums and of counts determined by exact counts are worked
    out: those of millions of nodes take seconds.

    Notes
    -----
    Under equalities alone the error has one law for all counts: exact for conditioning, simulated
    for images, and for conditioning where margins cross. Under bounds an image has the margins of
    its measurements, where these are published; conditioning then has intervals by inversion, once
    the table is drawn, or by the posterior where inversion does not cover the bounds.
    """
    plan = model.plan
    named = {
        name: named_nodes(plan, model.domain, f"accuracy.sums.{on_a_line(name)}", nodes)
        for name, nodes in (plan.accuracy.sums or {}).items()
    }
    if in_parts:
        return margins_in_parts(model)
    if isinstance(mechanism, Conditioned):
        known = not (without_crossing and model.plan.crossing)
        return _of_conditioned(model, mechanism, named, sums_only=sums_only, known=known)
    # errors of a best table depend on the counts, bounds or not
    if model.resolved.has_inequalities or plan.method.name == "posterior":
        bounded = model.resolved.has_inequalities
        obstacle: Obstacle = "bounds-bind" if bounded else "errors-depend-on-counts"
        return margins_of_measured(model, named, obstacle, sums_only=sums_only)
    images, most = cast("Imaged | TopDown", mechanism), DRAWS
    if plan.crossing:
        if len(model.domain) > _MOST_CROSSING:
            return margins_of_measured(model, named, "margins-cross", sums_only=sums_only)
        most = max(FEWER, _least_draws(model))
    return _by_simulation(model, images, named, most, sums_only=sums_only)


def _of_conditioned(
    model: Model,
    engine: Conditioned,
    named: Mapping[str, tuple[int, ...]],
    *,
    sums_only: bool,
    known: bool,
) -> Margins:
    """Return the margins of a conditioned table; `known` is False if it states none."""
    crossing, bounded = model.plan.crossing, model.resolved.has_inequalities
    if not crossing and not bounded:
        return _of_law(model, engine, named, sums_only=sums_only)
    if not crossing:
        return _none(model, named, _of_table(engine))
    most = engine.draws_within(_MOST_WORK) if isinstance(engine, WithCycles) else DRAWS
    if bounded or not known or not simulated_releases(model, most):
        return _none(model, named, NO_MARGINS_OF_CROSSING)
    return _by_simulation(model, engine, named, most, sums_only=sums_only)


def margins_of_measured(
    model: Model,
    named: Mapping[str, tuple[int, ...]] = MappingProxyType({}),
    obstacle: Obstacle = "bounds-bind",
    *,
    sums_only: bool = False,
) -> Margins:
    """Return the margins of an image whose errors depend on the counts: its measurements' own.

    Where these are not published, only exact counts have margins, because of the obstacle. `named`
    has the nodes of each sum that the plan asks for.
    """
    if model.plan.release.measurements:
        return _of_measurements(model, named, sums_only=sums_only)
    return _none(model, named, NoIntervals((obstacle,)))


def margins_in_parts(model: Model) -> Margins:
    """Return the margins of a release that is drawn in parts, or of some of its counts.

    Intervals of a conditioned table are worked out from the whole table.
    """
    if model.plan.method.name == "conditioning":
        return _none(model, {}, IN_PARTS)
    return margins_of_measured(model)


def levels(model: Model, found: Margins) -> tuple[LevelAccuracy, ...]:
    """Compare the margins of every level with what the plan requires."""
    out = []
    for level in model.levels:
        here = model.domain.level == level.depth
        margin, together = (
            None if each is None else largest(each[here]) for each in (found.margin, found.together)
        )
        out.append(compare_level(model.plan, level.name, margin, together))
    return tuple(out)


def largest(margins: IntArray) -> int | None:
    """Return the largest of some error margins; None if one is not known."""
    return None if (margins == UNKNOWN).any() else int(margins.max())


def compare_level(
    plan: Plan, name: str, margin: int | None, together: int | None = None
) -> LevelAccuracy:
    """Compare the margins of a level with what a plan requires."""
    required = plan.accuracy.required or {}
    target = float(required[name]) if name in required else None
    met = None if target is None or margin is None else margin <= target
    return LevelAccuracy(name, margin, together, target, met)


def simulated_releases(model: Model, most: int = DRAWS) -> int:
    """Number of releases simulated for margins; 0 if memory, or `most`, allows too few.

    Fewer simulations give wider margins, which still hold.
    """
    n, least = len(model.domain), _least_draws(model)
    draws = min(max(DRAWS, least), max(VALUES // n, min(max(FEWER, least), MOST_VALUES // n)))
    draws = draws if most >= DRAWS else min(draws, most)
    return draws if draws >= least else 0


def _least_draws(model: Model) -> int:
    """Number of simulated releases whose largest error is an error margin."""
    return math.ceil(math.log(RISK) / math.log1p(-model.plan.accuracy.alpha)) + 1


def _of_law(
    model: Model,
    engine: Conditioned,
    named: Mapping[str, tuple[int, ...]],
    *,
    sums_only: bool,
) -> Margins:
    if sums_only:
        # sums of a conditioned table are drawn without its other counts, however many these are
        draws = simulated_releases(model) or DRAWS
        return _of_sums(model, ByLaw(), _simulated_sums(model, engine, named, draws))
    alpha, fixed = model.plan.accuracy.alpha, model.determined
    margin = error_margins(engine, alpha)
    together = None
    if model.plan.accuracy.simultaneous:
        together = np.zeros_like(margin)
        for depth in range(model.domain.depth):
            here = (model.domain.level == depth) & ~fixed
            if here.any():  # a union bound over the level; it widens margins little
                together[here] = error_margins(engine, alpha / float(here.sum()))[here]
    sums = _simulated_sums(model, engine, named, simulated_releases(model))
    return Margins(ByLaw(), margin, together, sums)


def _by_simulation(
    model: Model,
    engine: Conditioned | Imaged | TopDown,
    named: Mapping[str, tuple[int, ...]],
    most: int = DRAWS,
    *,
    sums_only: bool,
) -> Margins:
    draws = simulated_releases(model, most)
    if not draws:
        return _none(model, named, NoIntervals(("too-many-counts",)))
    if sums_only:
        basis = BySimulation(draws, RISK)
        return _of_sums(model, basis, _simulated_sums(model, engine, named, draws))
    alpha, source = _cautious(model, draws), seeded(_SEED)
    margin = error_margins(engine, alpha, size=draws, rng=source)
    together = None
    if model.plan.accuracy.simultaneous:
        together = np.zeros_like(margin)
        here = [np.flatnonzero(model.domain.level == depth) for depth in range(model.domain.depth)]
        found = stretched(engine, margin, here, alpha, size=draws, rng=source)
        together[np.concatenate(here)] = np.concatenate(found)
    sums = _simulated_sums(model, engine, named, draws)
    return Margins(BySimulation(draws, RISK), margin, together, sums)


def _cautious(model: Model, draws: int) -> float:
    """Alpha less the simulation error of `draws` draws, whose number is `simulated_releases`."""
    found = cautious_alpha(model.plan.accuracy.alpha, draws, RISK)
    if found is None:
        raise AssertionError("enough releases are simulated")
    return found


def _simulated_sums(
    model: Model,
    engine: Conditioned | Imaged | TopDown,
    named: Mapping[str, tuple[int, ...]],
    draws: int,
) -> tuple[SumMargin, ...]:
    found: Sequence[int | None] = [None] * len(named)
    if named and draws:
        alpha, sums = _cautious(model, draws), list(named.values())
        found = error_margins_of_sums(engine, sums, alpha, size=draws, rng=seeded(_SEED))
    return tuple(
        SumMargin(*each, margin) for each, margin in zip(named.items(), found, strict=True)
    )


def _of_table(mechanism: Conditioned) -> Basis:
    from congenial.inference.inversion import inverts

    return ByInversion() if inverts(mechanism) else ByPosterior("inversion-does-not-cover-bounds")


def _none(model: Model, named: Mapping[str, tuple[int, ...]], basis: Basis) -> Margins:
    fixed = model.determined
    sums = tuple(
        SumMargin(name, nodes, 0 if fixed[list(nodes)].all() else None)
        for name, nodes in named.items()
    )
    return _of_sums(model, basis, sums)


def _of_sums(model: Model, basis: Basis, sums: tuple[SumMargin, ...]) -> Margins:
    """Return the margins of sums, and of the counts that exact counts determine."""
    margin = np.where(model.determined, 0, UNKNOWN)
    return Margins(basis, margin, margin if model.plan.accuracy.simultaneous else None, sums)


def _of_measurements(
    model: Model, named: Mapping[str, tuple[int, ...]], *, sums_only: bool
) -> Margins:
    sums = tuple(SumMargin(*each, _margin_of_measured(model, each[1])) for each in named.items())
    if sums_only:
        return _of_sums(model, ByMeasurements(), sums)
    domain, alpha = model.domain, model.plan.accuracy.alpha
    measured, summed = _kinds_of_nodes(model)
    noise, scales = model.mechanism.noise, model.mechanism.scales
    kinds = np.unique(scales[measured])
    # for each node's estimate, the number of measurements of each scale that it sums
    parts = np.zeros((len(domain), kinds.size), dtype=np.int64)
    parts[measured, np.searchsorted(kinds, scales[measured])] = 1
    for below, above in _upwards(model, summed):
        np.add.at(parts, above, parts[below])
    margin = _margin_of_sums(noise, kinds, parts, np.full(len(domain), alpha))
    together = None
    if model.plan.accuracy.simultaneous:
        # the measurements of a level are independent
        noisy = np.bincount(domain.level[parts.any(axis=1)], minlength=domain.depth)
        each = -np.expm1(np.log1p(-alpha) / np.maximum(noisy, 1))
        together = _margin_of_sums(noise, kinds, parts, each[domain.level])
    return Margins(ByMeasurements(), margin, together, sums)


def _margin_of_measured(model: Model, nodes: tuple[int, ...]) -> int:
    """Margin of the sum of the estimates of some nodes, from the measurements that it sums."""
    noise, scales = model.mechanism.noise, model.mechanism.scales
    measured, summed = _kinds_of_nodes(model)
    times = np.zeros(len(model.domain), dtype=np.int64)
    times[list(nodes)] = 1
    for below, above in reversed(_upwards(model, summed)):
        np.add.at(times, below, times[above])
    used = np.flatnonzero(measured & (times > 0))
    alpha = model.plan.accuracy.alpha
    return error_margin_of_noise_sum(noise, scales[used], alpha, times=times[used])


def _kinds_of_nodes(model: Model) -> tuple[BoolArray, BoolArray]:
    """Nodes whose measurement counts, and those determined by the nodes below them."""
    fixed = model.determined
    measured = np.isfinite(model.mechanism.scales) & ~fixed
    return measured, ~(measured | fixed)


def _upwards(model: Model, summed: BoolArray) -> list[tuple[IntArray, IntArray]]:
    """Counts that determine others as their sums, and for each that sum; the deepest first."""
    sums = model.domain.sums
    above = sums.totals[sums.sum_of_part]
    taken = summed[above]
    below, above = sums.parts[taken], above[taken]
    level = model.domain.level[above]
    return [
        (below[at], above[at])
        for at in (level == d for d in reversed(range(level.max(initial=-1) + 1)))
    ]


def estimates(model: Model, value: IntArray, measured: IntArray) -> IntArray:
    """Unbiased estimate of every count by its own measurement, or by those below it."""
    has, summed = _kinds_of_nodes(model)
    out = np.where(has, measured, np.where(summed, 0, value)).astype(np.int64)
    for below, above in _upwards(model, summed):
        np.add.at(out, above, out[below])
    return out


def _margin_of_sums(
    noise: NoiseLaw, kinds: FloatArray, parts: IntArray, alpha: FloatArray
) -> IntArray:
    """Margin of each sum of measurements, worked out once for sums of equal noise."""
    number, first = alike((*parts.T, alpha))
    found = [
        error_margin_of_noise_sum(noise, np.repeat(kinds, parts[at]), float(alpha[at]))
        for at in first.tolist()
    ]
    return np.array(found, dtype=np.int64)[number]
