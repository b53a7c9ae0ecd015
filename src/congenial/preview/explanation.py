"""Say what a release will do before anything is spent: from the plan and its domain alone."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from congenial.accounting.amounts import Amount, amount_of
from congenial.accounting.guarantee import Guarantee
from congenial.accounting.mechanism import Mechanism
from congenial.data.counts import build_tree
from congenial.data.spelling import odd_names
from congenial.errors import LedgerError
from congenial.ledger.debits import remaining
from congenial.ledger.records import dataset_of
from congenial.noise.law import find_law, half_law
from congenial.plan.plan import Plan, checked_plan
from congenial.plan.sections import GAUSSIAN, LAPLACE
from congenial.preview.cautions import (
    nested_sums,
    reversed_levels,
    source_missing,
    unused_levels,
)
from congenial.preview.expected import NotSimulated, draws_for, expected_errors
from congenial.releases.accuracy import (
    LevelAccuracy,
    Margins,
    levels,
    margins,
)
from congenial.releases.model import Level, Model, build_model, choose_method, claim
from congenial.releases.sentences import (
    about_intervals,
    confidence,
    noise_and_bounds,
    worst_neighbours,
)
from congenial.releases.specification import Claim, claim_of
from congenial.types import FloatArray, IntArray
from congenial.wording import aligned, on_a_line, show

# Made-up rows in every leaf for the expected error, the same for every plan; fewer where their
# total is too large to draw.
SYNTHETIC_COUNTS = (100, 10, 1)
_SEED = 20_220_201


@dataclass(frozen=True)
class LevelForecast:
    """The forecast of one level of the release.

    Attributes
    ----------
    noise_error : float or None
        Expected absolute value of the noise alone, in counts; None where there is none.
    release_error : float or None
        Expected absolute error of a released count, averaged over the level's nodes, in counts;
        None where no release could be simulated.
    """

    level: Level
    noise_error: float | None
    release_error: float | None


@dataclass(frozen=True)
class Explanation:
    """The explanation of a plan: its noise, its guarantee and its expected errors.

    Attributes
    ----------
    forecasts : tuple of LevelForecast
        Coarse to fine.
    basis : str
        The made-up counts behind the expected errors.
    route : str
        Which sampler draws, and why.
    claim : Claim
        The guarantee as a certificate states it.
    unused : tuple of str
        Measured levels whose counts no neighbouring dataset changes: their share buys nothing.
    found : dict of str to float or None
        The shares found for the plan's goal, by level; None where it has none.
    accuracy : tuple of LevelAccuracy
        The margin of every level beside the one that the plan requires.
    margins : Margins or None
        The error margins of all counts, and their source.
    reversed : tuple of str
        Levels that seem to be finer than the one below them.
    missing : bool
        Whether there is no file where the rows are said to be.
    nested : tuple of str
        Sums that name a node and one that it is a part of.
    odd : tuple of str
        Sentences about names that could be taken for others.
    remaining : Amount or None
        Budget left in the plan's ledger for these rows; None without a ledger, or where unreadable.
    ledger_fault : str
        Why it cannot tell; empty where nothing is wrong.
    """

    plan: Plan
    nodes: int
    forecasts: tuple[LevelForecast, ...]
    basis: str
    route: str
    guarantee: Guarantee
    claim: Claim
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


def explain(plan: Plan, base: str | Path = ".") -> Explanation:
    """Say what a release of a plan will do, before anything is spent.

    The explanation has the noise of each level, the errors to expect, the guarantee, and what is
    not protected. No row is counted and nothing is written; a ledger is read.

    Parameters
    ----------
    plan : Plan
        From `congenial.read_plan` or `congenial.parse_plan`.
    base : path
        Directory from which the plan's relative paths start.

    Returns
    -------
    Explanation
        ``print`` shows it as text.

    Raises
    ------
    PlanError, DataError, StructureError, PrivacyError, InvariantError
        As a release with this plan would.

    Notes
    -----
    Only the domain is read. A plan whose domain is "data" takes the nodes from the rows, which it
    declares unprotected.

    Examples
    --------
    >>> import congenial as cg
    >>> found = cg.explain(cg.read_plan("plan.toml"))
    >>> print(str(found).splitlines()[0])
    10 counts will be released, of 3 levels:
    """
    model = build_model(plan, build_tree(checked_plan(plan), base=Path(base)))
    mechanism = choose_method(model)
    reach, guarantee = margins(model, mechanism), claim(model, mechanism.error_bound)
    errors, basis = simulated_errors(model, mechanism)
    forecasts = tuple(
        LevelForecast(
            level,
            None
            if level.scale is None
            else expected_noise(level.scale, model.mechanism.noise.name),
            None if errors is None else float(errors[model.tree.level == level.depth].mean()),
        )
        for level in model.levels
    )
    return Explanation(
        plan,
        len(model.tree),
        forecasts,
        basis,
        mechanism.explain(),
        guarantee,
        claim_of(model, guarantee),
        unused_levels(model),
        None
        if plan.privacy.goal is None
        else {plan.level_names[depth]: share for depth, share in model.split.items()},
        levels(model, reach),
        reach,
        reversed_levels(model),
        source_missing(plan, Path(base)),
        nested_sums(model, reach),
        odd_names(model.tree),
        *_remaining(plan, Path(base)),
    )


def _remaining(plan: Plan, base: Path) -> tuple[Amount | None, str]:
    """Look into the plan's ledger, where a debit may be refused after all that comes before it."""
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
    For a sigma above 100 the Gaussian sum is given by the first two terms of the Euler-Maclaurin
    formula, ``sqrt(2 / pi) * (sigma - 1 / (12 sigma))``; the next one is below 1e-9 of that.
    """
    if noise == GAUSSIAN:
        if scale > 100.0:
            return math.sqrt(2.0 / math.pi) * (scale - 1.0 / (12.0 * scale))
        values = np.arange(1, math.ceil(40.0 * scale) + 1, dtype=np.float64)
        with np.errstate(under="ignore"):
            weights = np.exp(-0.5 * (values / scale) ** 2)
            return float(2.0 * (values * weights).sum() / (1.0 + 2.0 * weights.sum()))
    if noise == LAPLACE:
        rate = 1.0 / scale
        return 1.0 / math.sinh(rate) if rate < 700.0 else 0.0
    law = half_law(find_law(noise)(scale), scale)
    return float(2.0 * (np.arange(law.size) * law).sum())


def simulated_errors(model: Model, mechanism: Mechanism) -> tuple[FloatArray | None, str]:
    """Mean absolute error of each node's released count on made-up rows, and what that rests on.

    Returns
    -------
    errors : ndarray of float64, shape (n,), or None
        In counts; a mean over a fixed number of seeded draws, with as many rows in every leaf as
        the first of `SYNTHETIC_COUNTS` that can be drawn. None where none of them can be.
    basis : str
    """
    tree = model.tree
    first = None
    for count in SYNTHETIC_COUNTS:
        leaves: IntArray = np.full(tree.leaves.size, count, dtype=np.int64)
        counts = np.asarray(tree.roll_up(leaves), dtype=np.int64)
        errors = expected_errors(mechanism, counts, seed=_SEED)
        if not isinstance(errors, NotSimulated):
            return errors, _basis(model, count)
        first = first or errors
    why = "" if first is None else first.why
    return None, (
        f"No release of made-up rows could be simulated, {SYNTHETIC_COUNTS[0]} in every leaf or "
        f"fewer, so errors are not known: {why}. A release of the confidential rows may fail for "
        "the same reason, and a ledger would count it all the same."
    )


def _basis(model: Model, count: int) -> str:
    text = (
        f"Errors of the release are means over {draws_for(len(model.tree))} simulated releases of "
        f"made-up rows, {count} in every leaf"
    )
    if count != SYNTHETIC_COUNTS[0]:
        text += f", as releases of {SYNTHETIC_COUNTS[0]} cannot be simulated"
    if model.plan.method.name == "conditioning" and not model.resolved.has_inequalities:
        return f"{text}; under equalities alone they are the same for all rows."
    return f"{text}; at other counts they differ, most so near zero."


def as_text(explanation: Explanation) -> str:
    """Write an explanation as lines of plain text."""
    plan, guarantee = explanation.plan, explanation.guarantee
    lines = _missing(explanation)
    lines += [
        f"{explanation.nodes} counts will be released, of {len(plan.level_names)} levels:",
        "",
    ]
    lines += _table(explanation)
    lines += [*_order(explanation), "", explanation.basis, *_margins(explanation)]
    if plan.data.where is not None:
        lines += [
            "",
            f"Left out by the plan's rule: rows for which {plan.data.where} does not hold; their "
            "number is never shown.",
        ]
    lines += [
        "",
        f"Method: {plan.method.name}. {_sentence(plan.method.name, explanation.route)}",
        "",
        f"Guarantee: {guarantee.sentence}",
    ]
    if not guarantee.unprotected:
        # with every count noisy, only a rule lets the counted rows be more or fewer
        all_rows = "how many rows there are in all, counted and left out"
        nothing = "nothing is published outside the guarantee"
        same = plan.privacy.neighbours == "substitute"
        lines.append(f"Not protected: {all_rows if same else nothing}.")
    lines += [
        f"Epsilon is {guarantee.epsilon:.6g}. "
        + noise_and_bounds(guarantee.base_epsilon, guarantee.gamma, guarantee.gamma_source),
        *_measured(guarantee),
        f"Worst neighbours: {worst_neighbours(explanation.claim.worst_neighbours)}",
        *_found(explanation),
        *_unused(explanation),
        *_debited(explanation),
        "",
        f"Nothing has been spent: {_read(explanation)}, and nothing was written.",
    ]
    return "\n".join(lines)


def _order(explanation: Explanation) -> list[str]:
    names = explanation.plan.level_names
    remarks = [
        f"Check the order: most counts of {level} have one count of {below} below them, and "
        f"{level} has more names; hierarchy.levels goes from coarse to fine."
        for level, below in pairwise(names)
        if level in explanation.reversed
    ]
    remarks += explanation.odd
    return ["", *remarks] if remarks else []


def _sentence(method: str, route: str) -> str:
    text = route.removeprefix(f"{method}: ")
    return text[:1].upper() + text[1:]


def _measured(guarantee: Guarantee) -> list[str]:
    if guarantee.rho is None:
        return []
    return [
        f"The noise is {guarantee.rho:.6g}-zCDP, which the levels share out; at the plan's delta "
        f"that is the epsilon above{', by whole orders alone' * guarantee.whole_orders}. "
        "A scale is the noise's sigma."
    ]


def _found(explanation: Explanation) -> list[str]:
    goal, found = explanation.plan.privacy.goal, explanation.found
    if goal is None or found is None:
        return []
    weights = ", ".join(f"{level} {goal[level]:g}" for level in found)
    shares = ", ".join(f"{level} = {share:g}" for level, share in found.items())
    return [
        f"Shares found for the goal, the least sum of noise scales weighted {weights}: split = "
        f"{{ {shares} }} gives the same noise."
    ]


def _unused(explanation: Explanation) -> list[str]:
    plan, total = explanation.plan, explanation.guarantee.epsilon
    split = plan.privacy.split or {}
    return [
        f"Not used: the share {split[level]:g} of level {level}, whose counts are the same in all "
        f"neighbouring datasets; the guarantee uses {total:.6g} of the plan's epsilon "
        f"{plan.privacy.epsilon:g}, so give that share to other levels."
        for level in explanation.unused
        if level in split
    ]


def _debited(explanation: Explanation) -> list[str]:
    ledger, guarantee = explanation.plan.privacy.ledger, explanation.guarantee
    if ledger is None:
        return []
    cost = amount_of(guarantee.epsilon, guarantee.delta)
    left = explanation.remaining
    if left is None:
        return [f"A release would be refused: {explanation.ledger_fault}"]
    if not left.covers(cost):
        return [
            f"A release would be refused: it is debited {cost} in {ledger}, where {left} remain; "
            "ask for less, or release no more of these rows."
        ]
    return [
        f"A release is debited {cost} in {ledger}, where {left} remain, {left - cost} after it."
    ]


def _missing(explanation: Explanation) -> list[str]:
    if not explanation.missing:
        return []
    return [
        f"data.source is {show(explanation.plan.data.source)}, and there is no such file; before "
        "you release, give a path that starts from the plan's directory.",
        "",
    ]


def _read(explanation: Explanation) -> str:
    plan = explanation.plan
    if plan.hierarchy.domain == "data":
        return "the rows were read for the names of the nodes, which the plan leaves unprotected"
    if explanation.missing:
        return "no row was read"
    return f"{plan.data.source} was not opened, so its columns are not checked yet"


def _margins(explanation: Explanation) -> list[str]:
    """Say what the intervals of the release will be, and what else it will publish."""
    plan, found = explanation.plan, explanation.margins
    if found is None:
        return []
    share = confidence(plan.accuracy.confidence)
    text = f"Intervals of {share}, in the columns lower and upper. {explanation.intervals}"
    lines = ["", text]
    later = " before it is drawn" if found.source == "inversion" else ""
    unknown = f"no margin is known{later}"
    within = _within(explanation)
    for asked in found.sums:
        text = unknown if asked.margin is None else f"{within} ±{asked.margin:,}"
        twice = " It names a place and a part of it, which it counts twice."
        lines.append(
            f"The sum {on_a_line(asked.name)}: {text}.{twice * (asked.name in explanation.nested)}"
        )
    for level in explanation.accuracy:
        if level.required is not None:
            met = {None: unknown, True: "met", False: "not met"}[level.met]
            lines.append(f"Required at {level.level}: {within} ±{level.required:,g}, {met}.")
    if plan.release.measurements:
        lines.append(
            "Also published, at no further cost: the noisy measurements that the table is made of."
        )
    return lines


def _within(explanation: Explanation) -> str:
    """Say which numbers a margin is of: bounds bend the error of a count, not of a measurement."""
    found = explanation.margins
    return "estimate within" if found and found.source == "measurements" else "within"


def _table(explanation: Explanation) -> list[str]:
    forecasts, within = explanation.forecasts, _within(explanation)
    margin = ["not known" if v.margin is None else f"±{v.margin:,}" for v in explanation.accuracy]
    last = "margin" if within == "within" else within
    head = ("level", "counts", "published", "noise scale", "noise error", "release error", last)
    body = [
        (
            f.level.name,
            str(f.level.nodes),
            _published(f.level),
            "-" if f.level.scale is None else f"{f.level.scale:.4g}",
            "-" if f.noise_error is None else f"{f.noise_error:.4g}",
            "not known" if f.release_error is None else f"{f.release_error:.4g}",
            reach,
        )
        for f, reach in zip(forecasts, margin, strict=True)
    ]
    return aligned((head, *body))


def _published(level: Level) -> str:
    if level.exact == level.nodes:
        return "exactly"
    noise = "with noise" if level.scale is not None else "from other levels"
    return noise if level.exact == 0 else f"{noise}, {level.exact} exactly"
