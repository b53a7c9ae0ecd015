"""A certificate in words that need no statistics."""

from __future__ import annotations

import math

import numpy as np

from congenial.accounting.neighbours.scope import ALL_RECORDS
from congenial.releases.certificate import Certificate
from congenial.releases.intervals import StatedAccuracy, SumInterval
from congenial.report.page import Fact
from congenial.types import FloatArray
from congenial.wording import joined, many, on_a_line

PAPERS = (
    'Ruobin Gong and Xiao-Li Meng, "Congenial Differential Privacy under Mandated Disclosure", '
    "FODS 2020, doi:10.1145/3412815.3416892.",
    'Likang Liu, Keke Sun, Chunlai Zhou and Yuan Feng, "Two Views of Constrained Differential '
    'Privacy: Belief Revision and Update", 2023, arXiv:2303.00228.',
)
# The odds of the truth grow by this times e^epsilon at most, but for the probability stated.
SLACK = 1.1
_ASIDE = {
    "conditioning": "The noise was drawn so that the rules below hold from the start.",
    "imaging": "Noise was added first; then all counts were moved to the closest ones that obey "
    "the rules below.",
    "topdown": "Noise was added first; then, level by level from the top, the counts were moved to "
    "the closest ones that obey the rules below.",
}

_WHAT = {
    "law": "A margin is exact: it comes from the law of the error, which is the same whatever the "
    "true counts are.",
    "simulation": "A margin comes from simulated releases: the law of the error is the same "
    "whatever the true counts are.",
    "measurements": "An interval is the noisy measurement of the count, in measurements.csv, give "
    "or take the margin of its noise, whatever the true counts are; it is cut at zero, and "
    "stretched to the released count where that lies outside.",
    "inversion": "How far off a count is depends on the true counts, which are confidential. An "
    "interval reaches as far as the worst true counts that this table leaves possible would let "
    "the noise go, so it was worked out from this table alone.",
    "posterior": "How far off a count is depends on the true counts, which are confidential, so "
    "no margin is proved. These were worked out from this table alone: which counts are likely, "
    "if they are like the released ones. Only places without parts have them: under bounds the "
    "noise of many small counts shifts their sum, by an amount that nothing here accounts for. So "
    "counts of places with parts have no margin, nor have sums, but for exact ones.",
}
_WHY_NONE = {
    "conditioning": "The noise was drawn given that no count may break a rule, and how far off "
    "that leaves a count depends on the true counts, which are confidential; likely counts were "
    "not worked out from the table either.",
    "imaging": "How far the rules moved a count depends on the true counts, which are "
    "confidential; its noisy measurement would have a margin, and is not published.",
}
_WHY_NONE["topdown"] = _WHY_NONE["imaging"]


def lead(certificate: Certificate, nodes: int, exact: int) -> tuple[str, ...]:
    """What was released, in a few sentences."""
    levels = certificate.specification.domain.levels
    root = str(certificate.plan["hierarchy"]["root"])
    where = f", by {joined(levels[1:])}" if len(levels) > 1 else ""
    counts = f"This page shows {many(nodes, 'count')} of {root}{where}."
    if exact == nodes:
        noisy = "All of them are the exact counts: nothing here is protected by noise."
    else:
        noisy = (
            "They are not the true counts: to hide any single record, random noise was added to "
            "each of them."
        )
        if exact:
            noisy = (
                f"{many(exact, 'count')} of these {'is' if exact == 1 else 'are'} exact. To the "
                "others random noise was added, to hide any single record."
            )
    out = [counts, noisy, _ASIDE[certificate.drawn.method]]
    if certificate.left_out.rule is not None:
        out.append(
            f"Only records for which {certificate.left_out.rule} holds were counted. How many were "
            "left out is not shown."
        )
    return tuple(out)


def protected(certificate: Certificate) -> tuple[str, ...]:
    """What a release hides, and how well."""
    claim, distance = certificate.guarantee, certificate.specification.distance
    if certificate.simulation is not None:
        return (
            "Nothing: this is a simulation. Its noise comes from a seed, so anybody can work the "
            "true counts out.",
        )
    what = "One record" if distance.records == 1 else f"{distance.records} records together"
    how = (
        "which places it was counted in"
        if distance.records == 1
        else "which places they were counted in"
    )
    if distance.relation == "add-remove":
        how = "whether it is in the data at all, and where"
    return (
        f"{what}: {how}. {plain(certificate)}",
        "This holds whatever else somebody knows or will come to know, and however the numbers are "
        "analysed, now or later.",
        f"The smaller epsilon, the better hidden: it is {claim.epsilon:.4g} here.",
    )


def plain(certificate: Certificate) -> str:
    """Return the guarantee as what somebody can become sure of.

    Notes
    -----
    Where ``P(S) <= e^epsilon P'(S) + delta``, the ratio of likelihoods R exceeds ``c e^epsilon``
    with a probability p under P of which P' has at most ``p / (c e^epsilon)``, so that
    ``p (1 - 1 / c) <= delta``. At c = 1 nothing follows: delta is no bound on the probability that
    R exceeds ``e^epsilon``.
    """
    claim, records = certificate.guarantee, certificate.specification.distance.records
    slack = SLACK if claim.delta > 0.0 else 1.0
    sure = 1.0 / (1.0 + math.exp(-claim.epsilon) / slack)
    what = "a record" if records == 1 else f"these {records} records"
    if any(mandate.kind == "exact" for mandate in certificate.specification.invariants):
        what += " that agree with every count published exactly"
    text = (
        f"Somebody who knows everything else, and gives even odds to two possibilities for {what}, "
        f"can be at most {_percent(sure)} sure of the true one after seeing this release"
    )
    if claim.delta > 0.0:
        missed = min(1.0, claim.delta * SLACK / (SLACK - 1.0))
        text += f", except with a probability of at most {_up(missed)}"
    return f"{text}."


def unprotected(certificate: Certificate) -> tuple[str, ...]:
    """What a release does not hide: the certificate's list, and what no such guarantee hides."""
    distance = certificate.specification.distance
    listed = certificate.guarantee.unprotected
    if distance.relation == "substitute":  # which the sentence below says in full
        listed = tuple(text for text in listed if text != ALL_RECORDS)
    out = [text[:1].upper() + text[1:] + "." for text in listed]
    if not certificate.guarantee.unprotected and distance.relation != "substitute":
        out.append("Nothing is published outside the guarantee.")
    if distance.relation == "substitute":
        rule = ", those that were left out included" if distance.rule_may_be_crossed else ""
        out.append(
            f"How many records there are in all{rule}: one record is hidden by replacing it, and "
            "never by leaving it out."
        )
    out += [
        "What is true of many records at once. That is what the counts are published to show.",
        "Somebody who has more than one record in the data has less protection than one record "
        "has.",
    ]
    return tuple(out)


def details(certificate: Certificate) -> tuple[Fact, ...]:
    """The guarantee part by part, as the certificate specifies it."""
    full, claim = certificate.specification, certificate.guarantee
    domain, budget = full.domain, full.budget
    levels = zip(domain.levels, domain.nodes, strict=True)
    nodes = ", ".join(f"{name}: {many(count, 'node')}" for name, count in levels)
    rules = tuple(
        f"{mandate.told} ({many(mandate.nodes, 'count')}"
        f"{': ' + joined(mandate.listed) if mandate.listed else ''})"
        for mandate in full.invariants
    )
    spent = tuple(_spent(v.level, v.scale, v.base_epsilon, v.share) for v in budget.levels)
    return (
        Fact(
            "Which datasets are compared",
            (
                f"{domain.datasets}.",
                f"{nodes}. The nodes are {'public' if domain.public else 'taken from the rows'}.",
                *(
                    ()
                    if domain.rule is None
                    else (f"Counted: rows for which {domain.rule} holds.",)
                ),
            ),
        ),
        Fact("Which datasets are neighbours", (f"{full.distance.told}.",)),
        Fact("What every release satisfies", rules),
        Fact(
            "How two releases are compared",
            (
                f"{full.measure.told}; delta is {claim.delta:.3g}, of which the numerical error of "
                f"the draw, {claim.sampler_error:.3g} at most, is a part.",
                *_concentrated(certificate),
            ),
        ),
        Fact(
            "What the guarantee is made of",
            (
                f"epsilon {budget.epsilon:.6g} of the {budget.allowed:.6g} that the plan allows; "
                f"the noise takes {budget.base_epsilon:.6g}, and bounds multiply that by 1 + "
                f"gamma, with gamma = {budget.gamma:.3g} ({budget.gamma_source}).",
                *spent,
            ),
        ),
        Fact("The worst pair of neighbours", (full.worst_neighbours.sentence,)),
        Fact("Proofs, as files of the project congenial", full.proofs),
        Fact("How it was drawn", (certificate.drawn.route,)),
    )


def _concentrated(certificate: Certificate) -> tuple[str, ...]:
    """Say what zCDP is (Bun and Steinke 2016, Definition 1.1), where it measures the noise."""
    measure = certificate.specification.measure
    if measure.noise != "zcdp" or measure.rho is None:
        return ()
    return (
        "zCDP is zero-concentrated differential privacy: the Rényi divergence of order a between "
        f"the laws of the two releases is at most rho times a, here {measure.rho:.6g} times a, for "
        "each order a above 1, or for the orders 2, 3, 4 and so on where it says whole orders.",
    )


def confidence(certificate: Certificate) -> str:
    """Return the probability with which a margin holds, as a percentage."""
    return f"{100.0 * certificate.accuracy.confidence:.6g}%"


def margin_label(certificate: Certificate) -> str:
    """Return the heading of the margins."""
    average = " on average" if certificate.accuracy.source == "posterior" else ""
    kind = "Interval" if bent(certificate) else "Margin of error"
    return f"{kind}, {confidence(certificate)}{average}"


def bent(certificate: Certificate) -> bool:
    """Whether bounds bend the error, so that no margin of the noise is one of a released count."""
    return bool(certificate.plan["invariants"]["nonnegative"])


def level_margin(certificate: Certificate, stated: int | None, reach: FloatArray) -> str:
    """Say how far the counts of a level that are not exact may be off."""
    if not reach.size:
        return "exact"
    if not np.isfinite(reach).all():
        return "not known"
    if certificate.accuracy.source == "measurements" and stated is not None:
        return f"±{stated:,} around the measurement"
    least, most = int(reach.min()), int(reach.max())
    if bent(certificate):
        return f"up to {most:,} away" if least == most else f"up to {least:,} to {most:,} away"
    return f"±{least:,}" if least == most else f"±{least:,} to ±{most:,}"


def accuracy(certificate: Certificate, expected: str) -> tuple[str, ...]:
    """What margins and expected errors are, and are not; `expected` says what the latter are."""
    stated, share = certificate.accuracy, confidence(certificate)
    if stated.source == "none":
        out = [
            "No margin of error is known for a count that is not exact. "
            + _WHY_NONE[certificate.drawn.method]
        ]
        if not bent(certificate):
            out.append(f"The table tells how far the noise alone reaches in {share} of the cases.")
    else:
        out = [f"{_WHAT[stated.source]} {_how_often(stated, share)}"]
    if bent(certificate):
        near = "Since no count may be below zero, those near zero tend to be too large"
        beside = ", and large ones beside many such too small, for which margins allow in part"
        out.append(f"{near}{beside * (stated.source == 'posterior')}.")
    out += [_sum(total, share) for total in stated.sums]
    if certificate.plan["accuracy"]["simultaneous"] and stated.source not in ("none", "posterior"):
        out.append(
            "Margins for all counts of a level at once are wider: level_lower and "
            "level_upper in release.csv."
        )
    out += [
        "The margin of a sum or a difference is not the sum of the margins: the counts of a place "
        "and of its parts share their noise.",
        expected,
        _required(certificate),
    ]
    return tuple(out)


def _how_often(stated: StatedAccuracy, share: str) -> str:
    """Say what the probability of the margins is: of each, or on average."""
    rest = f"{100.0 * (1.0 - stated.confidence):.3g}"
    if stated.source == "posterior":
        return (
            f"On average over the places without parts of tables like this one, about {share} of "
            "the true counts are in such an interval. Single ones can be far less often, such as a "
            "large count beside many near zero, so that it promises nothing about any one of them. "
            "It need not hold the released count itself."
        )
    return (
        f"It holds with a probability of at least {share}, for each count by itself: at most about "
        f"{rest} counts in a hundred are farther off."
    )


def _sum(total: SumInterval, share: str) -> str:
    nodes = tuple(map(on_a_line, total.nodes))
    of = f"{on_a_line(total.name)}, the sum of {joined(nodes)}: {total.value:,}"
    if total.lower is None or total.upper is None:
        return f"{of}; no margin of error is known."
    ends = f"from {total.lower:,} to {total.upper:,}"
    return f"{of}; the true one is {ends}, with a probability of {share}."


def _required(certificate: Certificate) -> str:
    asked = [v for v in certificate.accuracy.levels if v.required is not None]
    remark = "Say below what you need, and see which counts have it."
    if certificate.accuracy.source == "none":
        remark = "Without margins of error nothing tells which counts have it."
    if certificate.accuracy.source == "posterior":
        remark = "Say below what you need, and see which counts are likely to have it."
    if not asked:
        return f"The plan states no accuracy that a release must reach. {remark}"
    told = {None: "not known", True: "yes", False: "no"}
    each = "; ".join(f"{v.level} ±{v.required:,g}: {told[v.met]}" for v in asked)
    return f"Whether the margins are as small as the plan requires: {each}. {remark}"


def cite(certificate: Certificate, title: str) -> tuple[str, ...]:
    """How to cite a release, and the method behind it."""
    made, version = (
        certificate.made[:10],
        on_a_line(certificate.versions.get("congenial", "unknown")),
    )
    stamp = f" {certificate.stamp}." if certificate.stamp else ""
    claim = certificate.guarantee
    own = (
        f"{title} (epsilon {claim.epsilon:.6g}, delta {claim.delta:.2g}). Released {made} with "
        f"congenial {version}; plan {certificate.plan_sha256[:16]}.{stamp}"
    )
    return (own, *PAPERS)


def reuse(certificate: Certificate) -> tuple[str, ...]:
    """What may be done with the numbers, and what should not."""
    out = [
        "This is a simulation. It protects nobody: do not publish it."
        if certificate.simulation is not None
        else "Anything may be computed from these numbers without weakening the protection.",
        "Say wherever they are used that they are noisy, with their margins and the guarantee.",
        "Do not read meaning into differences that are smaller than the margins, nor into small "
        "counts.",
        "Another release of the same records weakens the protection of both; their epsilons add "
        "up.",
        "The same numbers for machines are in release.csv and release.parquet, and what they "
        "claim in certificate.json. This page is not certified: congenial verify checks those "
        "files, and not this one.",
    ]
    if certificate.plan["release"]["publish"] != ["table"]:
        out.append(
            "To analyse the counts, take measurements.csv: noisy counts before the rules, each "
            "right on average, with the law of its noise. They and the table share one guarantee."
        )
    return tuple(out)


def _spent(level: str, scale: float | None, loss: float, share: float) -> str:
    if scale is None:
        return f"{level}: no noise of its own."
    return (
        f"{level}: noise of scale {scale:.4g}; a record that changes it costs epsilon {loss:.4g}, "
        f"{share:.1%} of what the noise takes."
    )


def _up(probability: float) -> str:
    """Write a positive probability in two digits, rounded up so that it is a bound."""
    digits = 1 - math.floor(math.log10(probability))
    return f"{math.ceil(probability * 10.0**digits * (1.0 - 1e-9)) / 10.0**digits:.2g}"


def _percent(share: float) -> str:
    # rounded up, so that it is true; 100% would say that nothing is hidden
    up = math.ceil(share * 100.0)
    return f"{up}%" if up < 100 else f"{math.ceil(share * 1e6) / 1e4:.4f}%"
