"""Every sentence about a release, rendered from the numbers of its certificate."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from congenial.accounting.guarantee import Guarantee
from congenial.accounting.neighbours.scope import AllRecords, covered, exposed_text
from congenial.releases.accuracy import (
    Basis,
    ByInversion,
    ByLaw,
    ByMeasurements,
    ByPosterior,
    BySimulation,
    NoIntervals,
    Obstacle,
)
from congenial.releases.directory import STAMP
from congenial.releases.intervals import SumInterval
from congenial.releases.specification import (
    SOURCES,
    AsManyAs,
    BoundedAbove,
    BoundedBelow,
    ByBestTable,
    ByConditioning,
    ByImaging,
    ByTopDown,
    Claim,
    LevelNoise,
    Mandate,
    Method,
    NodePath,
    NoneNegative,
    PublishedExactly,
    Pure,
    RecordMoves,
    Statement,
    SumsOfParts,
    WholeNumbers,
    WorstNeighbours,
    whoever_reads,
)
from congenial.types import FloatArray
from congenial.wording import joined, many, on_a_line, rounded_up

# A heading, and the lines below it.
Paragraphs = tuple[str, tuple[str, ...]]

PAPERS = (
    'Ruobin Gong and Xiao-Li Meng, "Congenial Differential Privacy under Mandated Disclosure", '
    "FODS 2020, doi:10.1145/3412815.3416892.",
    'Likang Liu, Keke Sun, Chunlai Zhou and Yuan Feng, "Two Views of Constrained Differential '
    'Privacy: Belief Revision and Update", 2023, arXiv:2303.00228.',
)
# Odds grow by at most this times e^epsilon, except with the probability stated.
SLACK = 1.1
_ASIDE = {
    ByConditioning: "The noise was drawn so that every rule holds, for example that parts add up.",
    ByImaging: "Noise was added first. Then all counts were moved to the closest counts that "
    "satisfy every rule, for example that parts add up.",
    ByTopDown: "Noise was added first. Then, level by level from the top, the counts were moved to "
    "the closest counts that satisfy every rule, for example that parts add up.",
    ByBestTable: "Noise was added first. Each count with noise is an estimate. Of all tables that "
    "satisfy every rule, for example that parts add up, this one has the least expected error.",
}


def lead(certificate: Statement, nodes: int, exact: int) -> tuple[str, ...]:
    """The release in a few sentences."""
    levels = tuple(level.name for level in certificate.domain.levels)
    root = str(certificate.plan["hierarchy"]["root"])
    table = certificate.plan.get("table")
    if table is not None:  # its levels are queries; the page lists them below
        levels = ("root", *certificate.plan["hierarchy"]["levels"], *table["attributes"])
    where = f", by {joined(levels[1:])}" if len(levels) > 1 else ""
    counts = f"This page shows {many(nodes, 'count')} of {root}{where}."
    if exact == nodes:
        noisy = "All of them are the exact counts: nothing here is protected by noise."
    else:
        noisy = "They are not the true counts: random noise was added to hide any single record."
        if exact:
            noisy = (
                f"{many(exact, 'count')} {'is' if exact == 1 else 'are'} exact; the others include "
                "random noise, to hide any single record."
            )
    out = [counts, noisy, _ASIDE[type(_made_by(certificate))]]
    if certificate.domain.row_filter is not None:
        out.append(
            f"Only records for which {certificate.domain.row_filter} holds were counted. This page "
            "does not show how many other records there are."
        )
    return (*out, *filter(None, [records_of_rows(certificate)]))


def protected(certificate: Statement) -> tuple[str, ...]:
    """The facts that a release protects, and how well."""
    claim, distance = certificate.guarantee, certificate.guarantee.neighbours
    if certificate.simulation is not None:
        return (
            "Nothing: this is a simulation. Its noise comes from a seed, so anyone can work out "
            "the true counts.",
        )
    one = distance.records == 1
    what = "One record" if one else f"{distance.records} records together"
    where = "where" if certificate.plan.get("table") is None else "where, and with which values,"
    how = f"{where} {'it was' if one else 'they were'} counted"
    if distance.relation == "add-remove":
        how = "whether it is in the data at all, and where"
    return (
        f"{what}: {how}. {plain(certificate)}",
        whoever_reads(certificate),
        f"A smaller epsilon hides a record better. Here epsilon is {rounded_up(claim.epsilon, 4)}.",
    )


def plain(certificate: Statement) -> str:
    """Say how sure of a record someone can become.

    Notes
    -----
    Let ``P(S) <= e^epsilon P'(S) + delta``, and let p be the probability under P that the ratio of
    likelihoods R exceeds ``c e^epsilon``. Under P' that event has probability at most
    ``p / (c e^epsilon)``, so ``p (1 - 1 / c) <= delta``. At c = 1 nothing follows: delta does not
    bound the probability that R exceeds ``e^epsilon``.
    """
    claim, records = certificate.guarantee, certificate.guarantee.neighbours.records
    slack = SLACK if claim.delta > 0.0 else 1.0
    sure = _percent(1.0 / (1.0 + slack * math.exp(claim.epsilon)))
    of = "this one" if records == 1 else f"these {records}"
    agree = ""
    if any(isinstance(one, PublishedExactly) for one in certificate.invariants):
        agree = " Both values agree with the exact counts."
    text = (
        "Suppose that someone knows every other record, and is undecided between two values of "
        f"{of}.{agree} After this release, that person is at most {sure} sure of the true one"
    )
    if claim.delta > 0.0:
        missed = min(1.0, claim.delta * SLACK / (SLACK - 1.0))
        text += f", except with a probability of at most {_up(missed)}"
    return f"{text}."


def unprotected(certificate: Statement) -> tuple[str, ...]:
    """The facts that a release does not protect: the certificate's list, and general ones."""
    distance, listed = certificate.guarantee.neighbours, certificate.guarantee.unprotected
    # the sentence below says in full that the number of records is not hidden
    texts = [exposed_text(one) for one in listed if not isinstance(one, AllRecords)]
    out = [text[:1].upper() + text[1:] + "." for text in texts]
    if not certificate.guarantee.unprotected and distance.relation != "substitute":
        out.append("Nothing is published outside the guarantee.")
    if distance.relation == "substitute":
        rule = ", counted or left out" if distance.row_filter_may_change else ""
        out.append(
            f"The number of all records{rule}: the guarantee is about replacing a record, not "
            "about adding or removing it."
        )
    out += [
        "Facts about many records at once. The counts are published to show such facts.",
        "A person with more than one record in the data has less protection than a person with "
        "one.",
    ]
    return tuple(out)


def details(certificate: Statement) -> tuple[Paragraphs, ...]:
    """The guarantee part by part."""
    domain, claim = certificate.domain, certificate.guarantee
    nodes = ", ".join(f"{level.name}: {many(level.nodes, 'node')}" for level in domain.levels)
    compared = f"{_covered(claim)}."
    places = f"{nodes}. The nodes are {'public' if domain.public else 'taken from the rows'}."
    rule = (
        "" if domain.row_filter is None else f"Counted: rows for which {domain.row_filter} holds."
    )
    allowed = certificate.plan["privacy"]["epsilon"]
    return (
        (
            "Which datasets are compared",
            (compared, places, *filter(None, [rule, records_of_rows(certificate)])),
        ),
        ("Which datasets are neighbours", (neighbours(certificate),)),
        ("The rules of every release", tuple(mandate(one) for one in certificate.invariants)),
        ("How much the releases of neighbours may differ", _compared(claim)),
        (
            "Where epsilon is spent",
            (
                f"Epsilon is {rounded_up(claim.epsilon, 6)}, and the plan allows {allowed:.6g}. "
                f"{noise_and_bounds(claim.base_epsilon, claim.gamma, _gamma_source(claim))}",
                *(_spent(level) for level in certificate.noise.levels),
            ),
        ),
        ("The worst pair of neighbours", (worst_neighbours(claim.worst_neighbours),)),
        ("Proofs, as files of the project congenial", claim.proofs),
        (
            "How it was drawn",
            (*not_by_posterior(certificate), method(_made_by(certificate)), published(certificate)),
        ),
    )


def guarantee(claim: Claim, *, simulated: bool = False) -> str:
    """Return a guarantee as a sentence; for a simulation it says that nothing is protected."""
    text = Guarantee(
        epsilon=claim.epsilon,
        delta=claim.delta,
        neighbours=claim.neighbours.relation,
        gamma=claim.gamma,
        gamma_source=_gamma_source(claim),
        base_epsilon=claim.base_epsilon,
        rho=None if isinstance(claim.measure, Pure) else claim.measure.rho,
        unprotected=unprotected_texts(claim),
        covered=_covered(claim),
        sampler_error=claim.numerical_error,
        records=claim.neighbours.records,
    ).sentence
    if simulated:
        return f"{STAMP}. With the operating system's randomness, a release would be {text}"
    return text


def unprotected_texts(claim: Claim) -> tuple[str, ...]:
    """The facts that a guarantee does not protect, each as a part of a sentence."""
    return tuple(exposed_text(one) for one in claim.unprotected)


def neighbours(certificate: Statement) -> str:
    """Say which datasets are neighbours."""
    relation, domain = certificate.guarantee.neighbours, certificate.domain
    text, either = "one record is replaced by another", "; the row filter may leave out either"
    if relation.relation == "add-remove":
        text = "one record is added or removed"
    # all counts of one level, or of one margin of attributes, add up to the total
    elif not domain.tables and any(of.nodes == of.published_exactly for of in domain.levels):
        either = "; both are counted, or neither, because the total is exact"
    return f"{text}{either * relation.row_filter_may_change}."


def mandate(one: Mandate) -> str:
    """Say what an invariant demands."""
    match one:
        case WholeNumbers():
            return "every released count is an integer"
        case SumsOfParts(nodes):
            return f"every count with parts is the sum of its parts ({many(nodes, 'count')})"
        case PublishedExactly(nodes, listed):
            names = f"{many(nodes, 'count')}: {joined(listed)}"
            return f"these counts are released exactly, without noise ({names})"
        case NoneNegative():
            return "no released count is below zero"
        case BoundedBelow(nodes, listed) | BoundedAbove(nodes, listed):
            side, limit = ("lower", "at least"), ("upper", "at most")
            name, words = side if isinstance(one, BoundedBelow) else limit
            return f"{name} bounds hold ({many(nodes, 'count')}: {_limits(words, listed)})"
        case AsManyAs(listed):
            return f"at every place, one count is at least as large as another ({joined(listed)})"


def _limits(side: str, listed: Mapping[str, int]) -> str:
    if not listed:
        return f"each {side} its own public number; the plan in the certificate lists them"
    return joined([f"{name} {side} {number:,}" for name, number in listed.items()])


def worst_neighbours(pair: WorstNeighbours) -> str:
    """Say which pair of neighbours costs the most, and how much."""
    hidden = "(no leaf is named: nodes come from the rows, or the table was drawn in parts)"
    if isinstance(pair, RecordMoves):
        who = f"one record moves {hidden}"
        if pair.origin is not None and pair.destination is not None:
            who = f"one record moves between {_node(pair.origin)} and {_node(pair.destination)}"
    else:
        who = f"one record enters or leaves {hidden if pair.node is None else _node(pair.node)}"
    n, cost = pair.changed_counts, rounded_up(pair.loss, 6)
    text = f"{who}; {many(n, 'count')} change{'s' * (n == 1)}, at a cost of epsilon {cost}"
    if pair.loss > pair.noise_loss * (1.0 + 1e-6):
        text += f": {rounded_up(pair.noise_loss, 6)} through the noise, the rest through the bounds"
    return f"{text}."


def _made_by(certificate: Statement) -> Method:
    """Return how the table was made: a best table without a fitted prior is the closest one."""
    used = certificate.method
    if isinstance(used, ByBestTable) and certificate.prior is None:
        return ByImaging("l2")
    return used


def not_by_posterior(certificate: Statement) -> tuple[str, ...]:
    """Say that a table is the closest one where its posterior could not be worked out."""
    if _made_by(certificate) is certificate.method:
        return ()
    return (
        "The plan asks for the posterior. The posterior of these measurements could not be "
        "computed, so the table is the closest one, as with imaging.",
    )


def method(used: Method) -> str:
    """Say how a release was made to satisfy its invariants."""
    post = (
        "This uses only the noisy counts and the counts published exactly, so it costs no "
        "privacy, but it adds bias to counts near a bound."
    )
    match used:
        case ByConditioning(sampler):
            return (
                f"conditioning: the {sampler} sampler drew from the distribution of the noise "
                "given the invariants; each draw is independent."
            )
        case ByImaging(norm):
            return (
                f"imaging: noisy counts were moved to the closest integers, in {norm.upper()}, "
                f"that satisfy the invariants. {post}"
            )
        case ByTopDown():
            return (
                "topdown: noisy counts were moved from the root down. The children of each node "
                "were moved to the closest counts (in L2) that add up to it, and rounded with ties "
                "at random. If parts are counted in two ways, such as by sex and by age, bounds "
                "can make this impossible. The table is then the closest of all, as with "
                f"imaging. {post}"
            )
        case ByBestTable(loss):
            error, alike = ("absolute", " Every level has the same weight in this error.")
            if loss == "l2":
                error, alike = "squared", ""
            return (
                "posterior: of all tables of integers that satisfy the invariants, the one with "
                f"the least expected {error} error given the noisy counts. The prior says how a "
                f"count is split among its parts; it was fitted to the noisy counts.{alike} Only "
                "noisy counts and counts published exactly are used, so this costs no privacy. "
                "Small counts are moved towards values typical of other parts of the same place."
            )


def published(certificate: Statement) -> str:
    """Say how the table and the measurements relate."""
    if "measurements" not in certificate.published:
        return "The guarantee covers the table."
    return (
        "The guarantee holds for the measurements and the table together: the table was made from "
        "the measurements and the counts published exactly, and nothing else. Epsilon is spent "
        "once for both."
    )


def rows_left_out(certificate: Statement) -> str:
    """Say which rows were left out; empty without a row filter."""
    rule = certificate.domain.row_filter
    if rule is None:
        return ""
    return f"Rows for which {rule} does not hold were left out. Their number is confidential."


def records_of_rows(certificate: Statement) -> str:
    """Say how many records a row stands for; empty if each row is one record."""
    weight, tables = certificate.domain.weight, certificate.domain.tables
    if tables:
        each = [
            on_a_line(one.table)
            + (f" (a row's column {one.weight!r} says how many it has)" if one.weight else "")
            for one in tables
        ]
        return (
            f"Each table counts records of its own: {joined(each)}. The guarantee is for one "
            "record of one table. For a person with a record in two tables, epsilon is doubled."
        )
    if weight is None:
        return ""
    return (
        f"Each row stands for as many records as its column {weight!r} says. The guarantee is for "
        "one of these records."
    )


_OBSTACLES: Mapping[Obstacle, str] = MappingProxyType(
    {
        "bounds-bind": "near bounds, errors depend on the confidential counts",
        "errors-depend-on-counts": "errors depend on counts whose measurements are unpublished",
        "margins-cross": "where margins cross, errors are simulated only without bounds, and if "
        "draws take little work",
        "too-many-counts": "there are too many counts to simulate releases",
        "drawn-in-parts": "the table was drawn in parts, and intervals need all of it",
        "inversion-does-not-cover-bounds": "proofs (by inversion) cover lower bounds of the lowest "
        "level alone",
        "inversion-takes-too-much": "a proof (by inversion) would take too much memory or time",
        "inversion-needs-wider-tables": "a proof (by inversion) needs wider tables than are tried",
        "posterior-takes-too-much-work": "the posterior would take too much work, with so many "
        "leaves or so much noise",
        "posterior-takes-too-much-memory-or-time": "the posterior would take too much memory or "
        "time",
        "posterior-error-not-bounded": "the numerical error of the posterior exceeds its limit",
        "posterior-has-no-prior": "no prior can be fitted to the table",
    }
)
# Keys of a plan under which every count has an interval, with bounds or without.
_PUBLISHED = 'release.publish = ["table", "measurements"]'
_MEASURED = f'method.name = "imaging" and {_PUBLISHED}'
# With fewer simulated releases than this, margins are wider by a tenth or more.
_MANY = 2_000


def about_intervals(basis: Basis, probability: float, *, drawn: bool = True) -> str:
    """Say how the intervals of a release were worked out and how often they hold, or why none."""
    share, rest = confidence(probability), f"{100.0 * (1.0 - probability):.3g}"
    each = (
        f"For each single count, the true count is inside with a probability of at least {share}, "
        f"whatever the true counts are. So about {rest} in 100 true counts, at most, are outside."
    )
    match basis:
        case ByLaw():
            text = "A margin is exact: errors have one distribution, whatever the true counts are."
        case BySimulation(releases, _):
            text = (
                f"A margin comes from {releases:,} simulated releases: errors have one "
                "distribution, whatever the true counts are."
                f"{' More simulated releases would make it narrower.' * (releases < _MANY)}"
            )
        case ByMeasurements():
            text = (
                "An interval is the noisy count (in measurements.csv) plus or minus the error "
                "margin of its noise. If there is no noisy count, the sum of the noisy counts "
                "below it is used. An interval is widened to include the released "
                "count, and cut at zero if the plan allows no negative count."
            )
        case ByInversion():
            text = (
                "Because of the bounds, errors depend on the confidential counts. An interval "
                "therefore allows for the worst true counts that this table leaves possible. It is "
                "computed from the released table alone."
            )
            if not drawn:
                each += (
                    " If that takes too much work, only the lowest level gets intervals. Their "
                    "probability then holds on average over counts, not for each count."
                )
        case ByPosterior(obstacle):
            text = (
                "Because of the bounds, errors depend on the confidential counts. No interval here "
                f"is proved, because {_OBSTACLES[obstacle]}. An interval has the counts that are "
                "likely under a prior fitted to the released table. Only the lowest level and "
                "exact counts have intervals: the noise of many small counts shifts their sum, and "
                "these intervals do not correct for that."
            )
            each = (
                f"On average over the lowest level of tables like this one, about {share} of the "
                "true counts are in their interval. A single count, such as a large one beside "
                "many near zero, can be in its interval far less often. The interval may miss the "
                "released count. docs/studies/coverage.md of congenial has measured frequencies."
            )
            if not drawn:
                each += " If the prior takes too much work, only exact counts have intervals."
        case NoIntervals(obstacles):
            why = "; ".join(_OBSTACLES[one] for one in obstacles)
            text = f"No error margin is known for a count that is not exact: {why}."
            each = (
                "A plan with imaging, topdown or the posterior that publishes its measurements has "
                "margins, at no further cost in privacy."
            )
            if "margins-cross" in obstacles:
                each = each.replace("imaging, topdown or the posterior", "imaging or topdown")
            elif "too-many-counts" in obstacles:
                each = "A plan with conditioning has margins, unless margins of its table cross."
            elif "drawn-in-parts" not in obstacles:
                each += " A plan without bounds has margins too, unless it asks for the posterior."
    return f"{text} {each}"


def missing_intervals(certificate: Statement) -> str:
    """Say which counts have intervals, and how to get the others; empty if all have one."""
    match certificate.accuracy.basis:
        case NoIntervals(obstacles) if "too-many-counts" in obstacles:
            which, remedy = "Only exact counts have", 'method.name = "conditioning"'
        case NoIntervals():
            which, remedy = "Only exact counts have", _MEASURED
            if not isinstance(certificate.method, ByConditioning):
                remedy = _PUBLISHED
        case ByPosterior():
            which, remedy = "Only the lowest level and exact counts have", _MEASURED
        case _:
            return ""
    return f"{which} an interval in this release; a plan with {remedy} has one for every count."


def cost_of_bounds(certificate: Statement) -> str:
    """Say what conditioning on bounds costs; empty for a release by another method."""
    if not isinstance(certificate.method, ByConditioning) or not _bounded(certificate):
        return ""
    nonnegative = certificate.plan["invariants"]["nonnegative"]
    return conditioning_on_bounds(certificate.guarantee.gamma, nonnegative=nonnegative)


def conditioning_on_bounds(
    gamma: float, shown: str = "congenial explain shows", *, nonnegative: bool = True
) -> str:
    """Say what conditioning on bounds costs compared with the default method, at a given gamma."""
    factor = rounded_up(1.0 + gamma, 3)
    wider = f" Bounds multiply the cost of its noise by {factor}, so the noise must be wider."
    near = "near zero come out too large" if nonnegative else "near a bound come out too far away"
    return (
        f"Conditioning on bounds costs accuracy.{wider * (gamma >= 0.005)} Sums of many "
        f"counts {near}. The default method (posterior, or topdown if margins cross) pays nothing "
        f"for bounds; {shown} the errors of both."
    )


def _covered(claim: Claim) -> str:
    compared = claim.datasets
    return covered(agree=compared.agree_on_exact_counts, bounded=compared.satisfy_bounds)


def noise_and_bounds(base: float, gamma: float, source: str) -> str:
    """Say how much of epsilon the noise takes, and how much the bounds."""
    if gamma == 0.0:
        return f"The noise costs {rounded_up(base, 6)}, and bounds add nothing ({source})."
    return (
        f"The noise costs {rounded_up(base, 6)}; bounds multiply that by 1 + gamma, gamma = "
        f"{rounded_up(gamma, 3)} ({source})."
    )


def _gamma_source(claim: Claim) -> str:
    return next(text for text, kind in SOURCES.items() if kind == claim.gamma_source)


def _compared(claim: Claim) -> tuple[str, ...]:
    """Say how two releases are compared; zCDP as in Bun and Steinke (2016), Definition 1.1."""
    measure, delta, error = claim.measure, rounded_up(claim.delta, 3), claim.numerical_error
    drawn = f"includes the numerical error of the draw (at most {rounded_up(error, 3)})"
    exact = "the draw has no numerical error"
    parts = f"delta is {delta} and {drawn if error else exact}."
    if isinstance(measure, Pure):
        plus = ", plus delta" if claim.delta else ""
        return (f"no probability grows by more than a factor exp(epsilon){plus}; {parts}",)
    orders = "for the orders a = 2, 3, 4, …" if measure.whole_orders else "for each order a above 1"
    return (
        "the noise has zero-concentrated differential privacy (zCDP), converted to epsilon at a "
        f"delta of {measure.at_delta:.3g}; {parts}",
        "zCDP: the Rényi divergence of order a between the laws of the two releases is at most rho "
        f"times a, here {rounded_up(measure.rho, 6)} times a, {orders}.",
    )


def confidence(probability: float) -> str:
    """Return the probability with which a margin holds, as a percentage."""
    return f"{100.0 * probability:.6g}%"


def margin_label(certificate: Statement) -> str:
    """Return the heading of the margins."""
    average = " on average" if certificate.accuracy.source == "posterior" else ""
    kind = "Interval" if bent(certificate) else "Error margin"
    return f"{kind}, {confidence(certificate.accuracy.confidence)}{average}"


def bent(certificate: Statement) -> bool:
    """Whether errors depend on the counts: the noise's margin is not the released count's."""
    return _bounded(certificate) or isinstance(certificate.method, ByBestTable)


def _bounded(certificate: Statement) -> bool:
    given = certificate.plan["invariants"]
    return any(map(given.get, ("nonnegative", "at_least", "at_most", "as_many")))


def level_margin(certificate: Statement, stated: int | None, widths: FloatArray) -> str:
    """Say how far the counts of a level that are not exact may be off, by their `widths`."""
    if not widths.size:
        return "exact"
    if not np.isfinite(widths).all():
        return "not known"
    if certificate.accuracy.source == "measurements" and stated is not None:
        return f"±{stated:,} around the measurement"
    least, most = int(widths.min()), int(widths.max())
    if bent(certificate):
        return f"up to {most:,} away" + (f" (for some, up to {least:,})" if least < most else "")
    return f"±{least:,}" if least == most else f"±{least:,} to ±{most:,}"


def accuracy(certificate: Statement, expected: str) -> tuple[str, ...]:
    """Meaning and limits of error margins and expected errors; `expected` describes the latter."""
    stated, share = certificate.accuracy, confidence(certificate.accuracy.confidence)
    out = [about_intervals(stated.basis, stated.confidence)]
    if stated.source == "none" and not bent(certificate):
        out.append(f"The table has margins of the noise alone, which hold in {share} of releases.")
    if isinstance(_made_by(certificate), ByBestTable):
        out.append(
            "The counts are estimates, moved towards values typical of other parts of the same "
            "place. Zeros tend to come out too large, other counts too large or too small."
        )
    elif _bounded(certificate):
        near = "Counts near a bound tend to come out too far from it."
        if certificate.plan["invariants"]["nonnegative"]:
            near = "No count may be below zero, so counts near zero tend to be too large."
            if stated.source == "posterior":
                near += " Large counts beside many such counts tend to be too small; margins allow "
                near += "for part of that."
        out += filter(None, [near, cost_of_bounds(certificate)])
    out += [_sum(total, share) for total in stated.sums]
    if certificate.plan["accuracy"]["simultaneous"] and stated.source not in ("none", "posterior"):
        out.append(
            "Margins for all counts of a level at once are wider: level_lower and "
            "level_upper in release.csv."
        )
    out += [
        "Do not add margins to get the margin of a sum or a difference. The errors of counts also "
        "depend on each other.",
        expected,
        _required(certificate),
    ]
    return tuple(out)


def _sum(total: SumInterval, share: str) -> str:
    nodes = tuple(map(on_a_line, total.nodes))
    of = f"{on_a_line(total.name)}, the sum of {joined(nodes)}: {total.value:,}"
    if total.lower is None or total.upper is None:
        return f"{of}; no error margin is known."
    ends = f"from {total.lower:,} to {total.upper:,}"
    return f"{of}. Interval: {ends}. In at least {share} of releases, it contains the true sum."


def _required(certificate: Statement) -> str:
    asked = [v for v in certificate.accuracy.levels if v.required is not None]
    remark = "Enter below the accuracy that you need, and see which counts have it."
    if certificate.accuracy.source == "none":
        remark = "Without error margins, nobody can say which counts are accurate enough."
    if certificate.accuracy.source == "posterior":
        remark = "Enter below the accuracy that you need, and see which counts probably have it."
    if not asked:
        return f"The plan sets no limit on the errors. {remark}"
    words = {None: "not known", True: "met", False: "not met"}
    each = "; ".join(f"{v.level} ±{v.required:,g}: {words[v.met]}" for v in asked)
    return f"Margins that the plan requires: {each}. {remark}"


def cite(certificate: Statement, title: str) -> tuple[str, ...]:
    """How to cite a release, and the method behind it."""
    version = on_a_line(certificate.versions.get("congenial", "unknown"))
    made = certificate.made[:10]
    stamp = f" {STAMP}." if certificate.simulation else ""
    claim = certificate.guarantee
    cost = f"epsilon {rounded_up(claim.epsilon, 6)}, delta {rounded_up(claim.delta, 2)}"
    own = f"{title} ({cost}). Released {made} with congenial {version}; "
    return (f"{own}plan {certificate.plan_sha256[:16]}.{stamp}", *PAPERS)


def reuse(certificate: Statement) -> tuple[str, ...]:
    """Valid and invalid uses of the numbers."""
    out = [
        "This is a simulation. It protects nobody: do not publish it."
        if certificate.simulation is not None
        else "Anything may be computed from these numbers without weakening the protection.",
        "Wherever you use the numbers, say that they are noisy, and give their margins and the "
        "guarantee.",
        "Do not interpret small counts, or differences that are smaller than the margins.",
        "Another release of the same records weakens their protection: the epsilons add up.",
        "The same numbers are in release.csv and release.parquet, and the guarantee is in "
        "certificate.json. congenial verify checks those files, but not this page.",
    ]
    if "measurements" in certificate.published:
        out.append(
            "To read a count, use the table: it satisfies the rules. To analyse counts, such as "
            "to fit a model or to average many of them, use measurements.csv. It has unbiased "
            "noisy counts, before the rules were applied, and the distribution of their noise. "
            "One guarantee covers the measurements and the table."
        )
    return tuple(out)


def _spent(level: LevelNoise) -> str:
    if level.scale is None:
        return f"{level.level}: no noisy counts, so this level costs no epsilon."
    return (
        f"{level.level}: noise of scale {level.scale:.4g}. This level costs epsilon "
        f"{rounded_up(level.epsilon, 4)}. Its part of the split budget is "
        f"{level.share_of_budget:.1%}."
    )


def _node(path: NodePath) -> str:
    return repr("/".join(path))


def _up(probability: float) -> str:
    """Write a positive probability in two digits, rounded up so that it is a bound."""
    digits = 1 - math.floor(math.log10(probability))
    return f"{math.ceil(probability * 10.0**digits * (1.0 - 1e-9)) / 10.0**digits:.2g}"


def _percent(rest: float) -> str:
    # 1 minus the rest, rounded up, so that it is true; 100% would say that nothing is hidden
    digits = 0 if rest >= 0.01 else max(4, math.ceil(-math.log10(rest)) - 2)
    shown = str(10 ** (digits + 2) - math.floor(rest * 10.0 ** (digits + 2)))
    return f"{shown[:2]}.{shown[2:]}%" if digits else f"{shown}%"
