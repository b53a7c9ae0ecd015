"""Say what a release will do before anything is spent: from the plan and its domain alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import astuple, dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np

from congenial.accounting.amounts import Amount, amount_of
from congenial.accounting.guarantee import Guarantee
from congenial.data.counts import build_domain
from congenial.data.row_weights import unweighted_source
from congenial.data.spelling import odd_names
from congenial.errors import LedgerError
from congenial.ledger.debits import remaining
from congenial.ledger.records import dataset_of
from congenial.noise.law import find_law, half_law
from congenial.plan.plan import Plan, checked_plan
from congenial.plan.sections import GAUSSIAN, LAPLACE
from congenial.preview.cautions import nested_sums, reversed_levels, source_missing, unused_levels
from congenial.preview.comparison.tally import size_label
from congenial.preview.comparison.trial_counts import find_basis
from congenial.preview.trial_releases import COUNTS_SEED, Simulated, simulated
from congenial.releases.accuracy import LevelAccuracy, Margins, levels, margins
from congenial.releases.model import Level, Model, build_model, choose_method, claim
from congenial.releases.sentences import (
    about_intervals,
    conditioning_on_bounds,
    confidence,
    noise_and_bounds,
    worst_neighbours,
)
from congenial.releases.specification import Claim, claim_of
from congenial.wording import aligned, on_a_line, rounded_up, show


@dataclass(frozen=True)
class LevelForecast:
    """The forecast of one level of the release."""

    level: Level
    # Expected absolute value of the noise alone, in counts; None where there is none.
    noise_error: float | None
    # Expected absolute error of a released count, averaged over the level's nodes, in counts; None
    # where no release was simulated.
    release_error: float | None
    # Error by the default method; None where the plan uses that method, or it was not simulated.
    default_error: float | None = None


@dataclass(frozen=True)
class SizeForecast:
    """The forecast for the counts of one size at one level."""

    level: str
    # Smallest and largest true count of this size.
    low: int
    high: int
    nodes: int  # Nodes of that size in the simulation that are not published exactly.
    error: float  # Expected absolute error of such a count.
    bias: float  # Expected difference of the released count from the true one.
    standard_error: float  # Of the bias, over releases; NaN for a single release.
    # Error and bias by the default method; None where the plan uses that method, or it was not
    # simulated.
    default_error: float | None = None
    default_bias: float | None = None


@dataclass(frozen=True)
class Explanation:
    """The explanation of a plan: its noise, its guarantee and its expected errors.

    Attributes
    ----------
    forecasts : tuple of LevelForecast
        Coarse to fine.
    sizes : tuple of SizeForecast
        By level, coarse to fine, and size of the true count; empty where errors are the same for
        all counts, and where no release was simulated.
    basis : str
        The counts behind the expected errors.
    default : str
        The default method if its errors are shown beside those of the plan's; else empty.
    will_not_run : str
        Why a release of such counts would be refused; empty where one was drawn, or none tried.
    route : str
        How a release is drawn, and why.
    claim : Claim
        The guarantee as a certificate states it.
    unused : tuple of str
        Measured levels whose counts no neighbouring dataset changes: their budget is not used.
    found : dict of str to float or None
        The shares found for the plan's goal, by level; None without a goal.
    accuracy : tuple of LevelAccuracy
        The error margin of every level beside the one that the plan requires.
    margins : Margins or None
        The error margins of all counts, and their source.
    reversed : tuple of str
        Levels that seem to be finer than the one below them.
    missing : bool
        Whether the plan's source does not exist.
    nested : tuple of str
        Sums that name a node and one of its ancestors.
    odd : tuple of str
        Sentences about names of nodes, and of a column, that may be mistakes.
    remaining : Amount or None
        Budget left in the plan's ledger for these rows; None without a readable ledger.
    ledger_fault : str
        Why the ledger cannot be read; empty if it can, or without a ledger.
    """

    plan: Plan
    nodes: int
    forecasts: tuple[LevelForecast, ...]
    basis: str
    route: str
    guarantee: Guarantee
    claim: Claim
    sizes: tuple[SizeForecast, ...] = ()
    default: str = ""
    will_not_run: str = ""
    unused: tuple[str, ...] = ()
    found: dict[str, float] | None = None
    accuracy: tuple[LevelAccuracy, ...] = ()
    margins: Margins | None = None
    reversed: tuple[str, ...] = ()
    missing: bool = False
    nested: tuple[str, ...] = ()
    odd: tuple[str, ...] = ()
    remaining: Amount | None = None
    ledger_fault: str = ""

    @property
    def intervals(self) -> str:
        """The basis of the release's intervals, or why there are none."""
        if self.margins is None:
            return ""
        return about_intervals(self.margins.basis, self.plan.accuracy.confidence, drawn=False)

    def __str__(self) -> str:
        """Write the explanation as lines of plain text."""
        return as_text(self)


def explain(
    plan: Plan,
    base: str | Path = ".",
    *,
    total: int | None = None,
    counts: str | Path | None = None,
    notify: Callable[[str], None] | None = None,
) -> Explanation:
    """Say what a release of a plan will do, before anything is spent.

    The explanation has the noise of each level, the errors to expect, the guarantee, and what is
    not protected. No row is counted and nothing is written; a ledger is read.

    Parameters
    ----------
    plan : Plan
        From `congenial.read_plan` or `congenial.parse_plan`.
    base : path
        Directory from which the plan's relative paths start.
    total : int, optional
        Simulate releases of made-up counts with this total; by default 20 for each leaf.
    counts : path, optional
        Simulate releases of these public counts instead; the file is as for `compare`.
    notify : callable, optional
        Called with the name of each step as it begins.

    Returns
    -------
    Explanation
        ``print`` shows it as text.

    Raises
    ------
    ArgumentError
        If both `total` and `counts` are given, or the total is out of range.
    PlanError, DataError, StructureError, PrivacyError, InvariantError
        As a release with this plan would.

    Notes
    -----
    Only the domain is read. A plan whose domain is "data" takes the nodes from the rows, which it
    declares unprotected. Made-up counts have the skew of real ones: most leaves are empty or small.

    Examples
    --------
    >>> import congenial as cg
    >>> found = cg.explain(cg.read_plan("plan.toml"))
    >>> print(str(found).splitlines()[0])
    10 counts will be released, of 3 levels:
    """
    say = notify or (lambda _: None)
    say("reading the domain")
    domain = build_domain(checked_plan(plan), base=Path(base))
    say("working out the noise and the guarantee")
    model = build_model(plan, domain)
    mechanism = choose_method(model)
    guarantee = claim(model, mechanism.error_bound)
    say("working out error margins")
    error_margins = margins(model, mechanism)
    say("simulating releases")
    basis = find_basis(plan, model.domain, Path(base), total=total, counts=counts, seed=COUNTS_SEED)
    asked = total is not None or counts is not None
    drawn = simulated(model, mechanism, basis, asked=asked)
    return Explanation(
        plan,
        len(model.domain),
        _forecasts(model, drawn),
        drawn.text,
        mechanism.explain(),
        guarantee,
        claim_of(model, guarantee),
        _sizes(model, drawn),
        drawn.default,
        drawn.refused,
        unused_levels(model),
        None
        if plan.privacy.goal is None
        else {plan.level_names[depth]: share for depth, share in model.split.items()},
        levels(model, error_margins),
        error_margins,
        reversed_levels(model),
        source_missing(plan, Path(base)),
        nested_sums(model, error_margins),
        (*unweighted_source(plan, Path(base)), *odd_names(model.domain)),
        *_remaining(plan, Path(base)),
    )


def _forecasts(model: Model, drawn: Simulated) -> tuple[LevelForecast, ...]:
    own, beside = drawn.own, drawn.beside
    noise = model.mechanism.noise.name
    return tuple(
        LevelForecast(
            level,
            None if level.scale is None else expected_noise(level.scale, noise),
            None if own is None else own.levels[level.depth].l1,
            None if beside is None else beside.levels[level.depth].l1,
        )
        for level in model.levels
    )


def _sizes(model: Model, drawn: Simulated) -> tuple[SizeForecast, ...]:
    if drawn.own is None or not model.resolved.has_inequalities:
        return ()
    own = [SizeForecast(*astuple(size)) for size in drawn.own.sizes]
    if drawn.beside is None:
        return tuple(own)
    return tuple(
        replace(size, default_error=other.l1, default_bias=other.bias)
        for size, other in zip(own, drawn.beside.sizes, strict=True)
    )


def _remaining(plan: Plan, base: Path) -> tuple[Amount | None, str]:
    """Return the budget left in the plan's ledger, and why it cannot be read."""
    if plan.privacy.ledger is None:
        return None, ""
    path, dataset = base / plan.privacy.ledger, dataset_of(plan, base)
    try:
        return remaining(path, dataset, neighbours=plan.privacy.neighbours), ""
    except LedgerError as error:
        return None, str(error)


def expected_noise(scale: float, noise: str = LAPLACE) -> float:
    """Mean absolute value of the noise.

    Notes
    -----
    The pmf ``(1 - a) / (1 + a) * a ** abs(u)`` gives ``2 a / (1 - a ** 2) = 1 / sinh(1 / scale)``.
    For a sigma above 100, the Gaussian sum is given by two terms of the Euler-Maclaurin formula,
    ``sqrt(2 / pi) * (sigma - 1 / (12 sigma))``. The next term is below 1e-9 of that.
    """
    if noise == GAUSSIAN and scale > 100.0:
        return math.sqrt(2.0 / math.pi) * (scale - 1.0 / (12.0 * scale))
    if noise == LAPLACE:
        rate = 1.0 / scale
        return 1.0 / math.sinh(rate) if rate < 700.0 else 0.0
    law = half_law(find_law(noise)(scale), scale)
    return float(2.0 * (np.arange(law.size) * law).sum())


def as_text(explanation: Explanation) -> str:
    """Write an explanation as lines of plain text."""
    return "\n".join(
        [
            *_counts(explanation),
            *_margins(explanation),
            *_guarantee(explanation),
            *_budget(explanation),
            "",
            f"Nothing was spent or written: {_read(explanation)}.",
        ]
    )


def _counts(explanation: Explanation) -> Iterator[str]:
    """Yield the released counts and their expected errors, with remarks about their names."""
    plan = explanation.plan
    if explanation.missing:
        yield (
            f"data.source is {show(plan.data.source)}, and there is no such file; before you "
            "release, give a path that starts from the plan's directory."
        )
        yield ""
    yield f"{explanation.nodes:,} counts will be released, of {len(plan.level_names)} levels:"
    yield ""
    yield from _table(explanation)
    remarks = [
        f"Check the order: most counts of {level} have one count of {below} below them, and "
        f"{level} has more names; hierarchy.levels goes from coarse to fine."
        for level, below in pairwise(plan.place_names)
        if level in explanation.reversed
    ]
    remarks += explanation.odd
    if remarks:
        yield from ("", *remarks)
    if explanation.sizes:
        yield from ("", *_sizes_table(explanation))
    yield ""
    if explanation.will_not_run:
        yield (
            f"Will not run on {explanation.will_not_run}. A release of the confidential rows may "
            "fail for the same reason, and a failed release still costs its epsilon in a ledger."
        )
    if explanation.basis:
        yield explanation.basis
    yield _columns(explanation)


def _margins(explanation: Explanation) -> Iterator[str]:
    """Yield the release's intervals, and further publications."""
    plan, found = explanation.plan, explanation.margins
    if found is None:
        return
    yield ""
    yield (
        f"Intervals of {confidence(plan.accuracy.confidence)}, in the columns lower and upper. "
        f"{explanation.intervals}"
    )
    later = " before it is drawn" if found.basis.source == "inversion" else ""
    unknown = f"no margin is known{later}"
    within = _within(explanation)
    for asked in found.sums:
        text = unknown if asked.margin is None else f"{within} ±{asked.margin:,}"
        twice = " It names a place and a part of that place, so the part counts twice."
        nested = asked.name in explanation.nested
        yield f"The sum {on_a_line(asked.name)}: {text}.{twice * nested}"
    for level in explanation.accuracy:
        if level.required is not None:
            met = {None: unknown, True: "met", False: "not met"}[level.met]
            yield f"Required at {level.level}: {within} ±{level.required:,g}, {met}."
    if plan.release.measurements:
        yield (
            "Also published, at no further cost: the noisy counts behind the table, in "
            "measurements.csv."
        )


def _guarantee(explanation: Explanation) -> Iterator[str]:
    """Yield the rows left out, the method, the guarantee and what it does not protect."""
    plan, guarantee = explanation.plan, explanation.guarantee
    if plan.data.where is not None:
        yield ""
        yield (
            f"Left out by the plan's row filter: rows for which {plan.data.where} does not hold. "
            "Their number is never shown."
        )
    route = explanation.route.removeprefix(f"{plan.method.name}: ")
    yield ""
    yield f"Method: {plan.method.name}. {route[:1].upper()}{route[1:]}"
    if plan.method.name == "conditioning" and plan.invariants.bounded:
        shown = "the tables above show" if explanation.default else "congenial compare shows"
        nonnegative = plan.invariants.nonnegative
        yield conditioning_on_bounds(guarantee.gamma, shown, nonnegative=nonnegative)
    yield ""
    yield f"Guarantee: {guarantee.sentence}"
    if not guarantee.unprotected:
        # if every count is noisy, only a row filter changes the number of counted rows
        all_rows = "the number of all rows, counted or left out"
        nothing = "nothing is published outside the guarantee"
        same = plan.privacy.neighbours == "substitute"
        yield f"Not protected: {all_rows if same else nothing}."
    yield f"Epsilon is {rounded_up(guarantee.epsilon, 6)}. " + noise_and_bounds(
        guarantee.base_epsilon, guarantee.gamma, guarantee.gamma_source
    )
    if guarantee.rho is not None:
        orders = ", computed from divergences of whole orders only" * guarantee.whole_orders
        yield (
            f"The noise satisfies zCDP with rho = {rounded_up(guarantee.rho, 6)}, divided among "
            "the levels (zCDP: zero-concentrated differential privacy; see proofs/composition.md). "
            f"At the plan's delta, that is the epsilon above{orders}. A noise scale is a sigma: "
            "about the standard deviation of the noise."
        )
    yield f"Worst neighbours: {worst_neighbours(explanation.claim.worst_neighbours)}"


def _budget(explanation: Explanation) -> Iterator[str]:
    """Yield the levels' shares of epsilon, and the debit of the ledger."""
    privacy, guarantee = explanation.plan.privacy, explanation.guarantee
    goal, found, split = privacy.goal, explanation.found, privacy.split or {}
    if goal is not None and found is not None:
        weights = ", ".join(f"{level} {goal[level]:g}" for level in found)
        shares = ", ".join(f"{level} = {share:g}" for level, share in found.items())
        yield (
            "The plan's goal is the least sum of noise scales, with the weights "
            f"{weights}. It gives the same noise as split = {{ {shares} }}."
        )
    for level in explanation.unused:
        if level in split:
            yield (
                f"Not used: the share {split[level]:g} of level {level}, whose counts are the same "
                "in all neighbouring datasets. The guarantee uses "
                f"{rounded_up(guarantee.epsilon, 6)} of the plan's epsilon "
                f"{privacy.epsilon:g}; give that share to other levels."
            )
    if privacy.ledger is None:
        return
    cost, left = amount_of(guarantee.epsilon, guarantee.delta), explanation.remaining
    if left is None:
        yield f"A release would be refused: {explanation.ledger_fault}"
    elif left.covers(cost):
        yield (
            f"In the ledger {privacy.ledger}, {left} remain. A release costs {cost}; then "
            f"{left - cost} will remain."
        )
    else:
        yield (
            f"A release would be refused: it costs {cost}, and in the ledger {privacy.ledger} "
            f"only {left} remain. Ask for less, or make no further release of these rows."
        )


def _read(explanation: Explanation) -> str:
    """Return which parts of the plan's data were read."""
    plan = explanation.plan
    if plan.hierarchy.domain == "data":
        return "rows were read only for the nodes' names, which the plan leaves unprotected"
    if explanation.missing:
        return "no row was read"
    return f"{plan.data.source} was not opened, so its columns are not checked yet"


def _within(explanation: Explanation) -> str:
    """Say which error a margin bounds: of the released count, or of its measurement."""
    found = explanation.margins
    return "measured within" if found and found.basis.source == "measurements" else "within"


def _columns(explanation: Explanation) -> str:
    """Say what the columns with errors contain."""
    text = (
        'Columns: "noise error" is the mean absolute error of a noisy count, and "release error" '
        "that of a released count."
    )
    if explanation.default:
        text += f' "by {explanation.default}": the release error of that method.'
    if explanation.sizes:
        text += (
            ' "bias": the mean of released minus true counts, ± its standard error over releases.'
        )
    if _within(explanation) == "within":
        return text
    share = confidence(explanation.plan.accuracy.confidence)
    return (
        f'{text} "measured within": in at least {share} of releases, a noisy count is at most this '
        "far from its true count."
    )


def _table(explanation: Explanation) -> list[str]:
    """Lay out the noise, errors and margins by level."""
    within = _within(explanation)
    margin = ["not known" if v.margin is None else f"±{v.margin:,}" for v in explanation.accuracy]
    last = "margin" if within == "within" else within
    beside = (f"by {explanation.default}",) if explanation.default else ()
    head = ("level", "counts", "published", "noise scale", "noise error", "release error")
    body = [
        (
            f.level.name,
            str(f.level.nodes),
            _published(f.level),
            "-" if f.level.scale is None else f"{f.level.scale:.4g}",
            "-" if f.noise_error is None else f"{f.noise_error:.4g}",
            "not known" if f.release_error is None else f"{f.release_error:.4g}",
            *(f"{f.default_error:.4g}" for _ in beside),
            error_margin,
        )
        for f, error_margin in zip(explanation.forecasts, margin, strict=True)
    ]
    return aligned(((*head, *beside, last), *body))


def _sizes_table(explanation: Explanation) -> list[str]:
    """Lay out the errors by level and size of the true count."""
    name = explanation.default
    head = ("level", "true count", "counts", "release error", "bias")
    beside = (f"by {name}", f"bias by {name}") if name else ()
    body = []
    level = ""
    for size in explanation.sizes:
        one_release = math.isnan(size.standard_error)
        body.append(
            (
                size.level if size.level != level else "",
                size_label(size.low, size.high),
                f"{size.nodes:,}",
                f"{size.error:.4g}",
                f"{size.bias:+.3g}" + ("" if one_release else f" ± {size.standard_error:.1g}"),
                *((f"{size.default_error:.4g}", f"{size.default_bias:+.3g}") if name else ()),
            )
        )
        level = size.level
    return aligned(((*head, *beside), *body))


def _published(level: Level) -> str:
    if level.exact == level.nodes:
        return "exactly"
    noise = "with noise" if level.scale is not None else "from other levels"
    return noise if level.exact == 0 else f"{noise}, {level.exact} exactly"
