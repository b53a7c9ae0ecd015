"""Belief change and the two papers' theorems on finite laws, decided case by case."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, get_args

from congenial.belief.cautious_revision import (
    credibility_limited,
    likely,
    revise,
    screened,
)
from congenial.belief.worlds import Belief
from congenial.exhibits.exhibit import Cell, Exhibit, Figure
from congenial.randomness import seeded
from papers.claims import (
    CLAIMS,
    Source,
    Verdict,
    decide,
)
from papers.claims.congenial_dp import (
    apart,
    cube,
    rounding,
    two_bins,
)
from papers.claims.cost_of_bounds import CostOfBounds, pinned_total
from papers.claims.draws import Draws, nearest
from papers.claims.postulates import POSTULATES, Worlds, broken
from papers.studies.looks import BLUE, ORANGE, epsilon_axis, frame, legend_below, line
from papers.studies.study import Study, replicates

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

EPSILONS = (0.1, 0.5, 1.0, 2.0, 4.0)
CELLS = (2, 3, 4)
TOTALS = tuple(range(1, 9))
# Totals that have a line in the figure; a total of 1 costs nothing.
_DRAWN = (2, 4, 8)
WORLDS = (0, 1, 2, 3)
CORE = frozenset({0, 1, 2})

# What is told of one theorem, by the claims that decide it.
_TOPICS: tuple[tuple[str, ...], ...] = (
    (
        "Two Views, Theorem 3.5, part 2",
        "Two Views, Theorem 3.5, part 2, corrected",
        "Two Views, Theorem 3.5, part 2, parallel equalities",
    ),
    (
        "Two Views, Lemma 3.4, part 2",
        "Two Views, Lemma 3.4, part 2, C as outputs of h after M, privacy",
    ),
    ("Two Views, Lemma 3.8", "Two Views, Lemma 3.8, C as outputs of h after M, privacy"),
    (
        "Two Views, Lemma 3.3",
        "Two Views, Lemma 3.3, f(D') outside C",
        "Two Views, Lemma 3.3, for (epsilon, delta)",
    ),
    (
        "Gong and Meng (2020), Theorem 1.3",
        "Gong and Meng (2020), Theorem 1.3, independent records",
        "Gong and Meng (2020), Theorem 1.3, every prior about the database",
    ),
    (
        "Gong and Meng (2020), section 5.1, Example 4.1 disrupts",
        "Gong and Meng (2020), section 5.1, gamma = -1/2",
        "Gong and Meng (2020), section 5.1, gamma = -1/2 for add-remove neighbours",
        "Gong and Meng (2020), section 5.1, Example 4.1 corrected",
    ),
    (
        "Gong and Meng (2020), Example 5.1",
        "Gong and Meng (2020), Example 5.1, S* by equation 2.1",
    ),
)

# Property, whether the paper ticks it, and the claims that decide it, for both operators.
_TABLE_1: tuple[tuple[str, str, bool, tuple[str, ...]], ...] = (
    ("conditioning", "privacy preserving", False, ("Table 1, conditioning and inequalities",)),
    ("conditioning", "privacy preserving, linear equalities", True, ("Lemma 3.3",)),
    ("conditioning", "postprocessing", True, ("Lemma 3.4, part 1", "Lemma 3.4, part 2")),
    ("conditioning", "basic composition", True, ("Lemma 3.6",)),
    ("conditioning", "disjoint union: the law", True, ("Theorem 3.5, part 1",)),
    ("conditioning", "disjoint union: privacy", True, ("Theorem 3.5, part 2",)),
    ("conditioning", "mixture: the law", False, ("Table 1, conditioning and mixtures",)),
    ("conditioning", "mixture: privacy", False, ("Table 1, privacy of a conditioned mixture",)),
    ("conditioning", "least Kullback-Leibler", True, ("section 2, minimum divergence",)),
    ("imaging", "privacy preserving", True, ("Lemma 3.7",)),
    ("imaging", "privacy preserving, linear equalities", True, ("Lemma 3.7",)),
    ("imaging", "postprocessing", True, ("Lemma 3.8",)),
    ("imaging", "basic composition", True, ("Lemma 3.10",)),
    ("imaging", "disjoint union: the law", False, ("Table 1, imaging and disjoint unions",)),
    ("imaging", "disjoint union: privacy", False, ("Table 1, privacy of the image on a union",)),
    ("imaging", "mixture", True, ("Theorem 3.9",)),
    ("imaging", "least L1 and L2 distance", True, ("Table 1, minimum principle of imaging",)),
)


def run(seed: int, effort: float) -> Study:
    """Try every claim, and enumerate what one pinned total costs.

    Parameters
    ----------
    seed : int
    effort : float
        Share of the random cases to try.

    Returns
    -------
    Study
    """
    cases = replicates(1000, effort, least=100)
    verdicts = {c.item: decide(c.case, cases=cases, seed=seed) for c in CLAIMS}
    controls = {c.item: decide(c.control, cases=cases, seed=seed + 1) for c in CLAIMS if c.control}
    costs = {
        (eps, cells, total): pinned_total(_noise_ratio(eps), cells=cells, total=total)
        for eps in EPSILONS
        for cells in CELLS
        for total in TOTALS
    }
    sources, marks = _sources(verdicts), _table_1(verdicts)
    postulates = _postulates(seed, max(10, cases // 20))
    tables = (
        sources,
        _claims(verdicts, controls),
        _counterexamples(verdicts),
        marks,
        _box(),
        _gamma(costs),
        _examples(),
        postulates,
    )
    return Study(
        "belief",
        "Belief change and the theorems on finite laws",
        (
            *_findings(verdicts, controls, cases),
            _on_marks(marks),
            *_on_others(sources),
            _on_rules(postulates),
            _on_costs(costs),
        ),
        tables,
        (
            Figure(
                "verdicts",
                "Statements that held, and those refuted",
                partial(_bars, sources),
                size=(7.0, 3.0),
            ),
            Figure(
                "gamma",
                "What bounds cost with one exact total",
                lambda canvas: _draw(canvas, costs),
                size=(8.0, 3.6),
                note="The bound on γ is ln(2 exp(ε) - 1)/ε - 1.",
            ),
        ),
        tuple(_topic(verdicts, items) for items in _TOPICS),
    )


def _claims(verdicts: dict[str, Verdict], controls: dict[str, Verdict]) -> Exhibit:
    rows: list[tuple[Cell, ...]] = []
    for claim in CLAIMS:
        verdict = verdicts[claim.item]
        control = controls.get(claim.item)
        rows.append(
            (
                claim.item,
                claim.statement,
                claim.says,
                verdict.cases,
                "holds" if verdict.holds else "fails",
                verdict.failures,
                control.failures if control else None,
            )
        )
    return Exhibit(
        "claims",
        "Every statement, tried on random finite laws in exact arithmetic",
        ("item", "statement", "who says so", "cases", "verdict", "failures", "control"),
        tuple(rows),
        (
            "A statement that holds was true in every case tried, which is no proof. A statement "
            "that fails is refuted by its counterexample, in the next table.",
            "Who says so. The paper: a paper states it. Read otherwise: a second meaning of a "
            "paper's words. Denies it: the paper says that it does not hold in general. Ours: "
            "this study adds it. Corrected: it corrects a statement or a second meaning. Stronger: "
            "it claims more than a paper.",
            "The last column is for a variant that is known to be false, such as the statement "
            "with conditioning in the place of imaging, or without one of its conditions. It "
            "counts the cases in which the same trial refutes this variant.",
        ),
    )


def _counterexamples(verdicts: dict[str, Verdict]) -> Exhibit:
    rows = tuple(
        (claim.item, verdicts[claim.item].counterexample)
        for claim in CLAIMS
        if not verdicts[claim.item].holds
    )
    return Exhibit(
        "counterexamples",
        "The counterexample to every statement that was refuted",
        ("item", "counterexample"),
        rows,
        (
            "Each counterexample is the shortest that was found. Numbers in braces are worlds. A "
            "ratio is that of the probabilities of one release under two neighbours.",
        ),
    )


def _sources(verdicts: dict[str, Verdict]) -> Exhibit:
    rows: list[tuple[Cell, ...]] = []
    for source in get_args(Source):
        held = [verdicts[claim.item].holds for claim in CLAIMS if claim.says == source]
        rows.append((source, len(held), sum(held), len(held) - sum(held)))
    return Exhibit(
        "sources",
        "Statements by origin, and their verdicts",
        ("who says so", "statements", "held", "refuted"),
        tuple(rows),
    )


def _table_1(verdicts: dict[str, Verdict]) -> Exhibit:
    rows = []
    for operator, name, printed, items in _TABLE_1:
        holds = all(verdicts[f"Two Views, {item}"].holds for item in items)
        rows.append(
            (
                operator,
                name,
                "yes" if printed else "not necessarily",
                "yes" if holds else "not necessarily",
                "; ".join(items),
            )
        )
    return Exhibit(
        "table-1",
        "Table 1 of Two Views, mark by mark",
        ("operator", "property", "printed", "found", "claim"),
        tuple(rows),
        (
            "If a mark of the paper means two things, each has a row of its own.",
            "Under linear equalities, privacy is by epsilon alone (delta is 0), and the true "
            "counts of both neighbours satisfy the equalities.",
        ),
    )


def _box() -> Exhibit:
    prior = Belief({"both": 0, "apple": Fraction(7, 10), "banana": Fraction(3, 10), "none": 0})
    event = {"banana", "none"}
    closest = {"both": "banana", "apple": "none", "banana": "banana", "none": "none"}
    found, taken = prior.condition(event), prior.image(event, closest)
    return Exhibit(
        "box",
        "No apple in the box (Two Views, Example 2.3)",
        ("world", "prior", "revised", "updated"),
        tuple((str(w), float(prior[w]), float(found[w]), float(taken[w])) for w in prior.worlds),
        (
            "The revised belief has learnt that there was no apple. The updated belief has learnt "
            "that there is no apple any more.",
        ),
    )


def _noise_ratio(epsilon: float) -> Fraction:
    """Return the fraction that the float exp(-epsilon / 2) is: what follows is exact."""
    return Fraction(math.exp(-epsilon / 2))


def _limit(epsilon: float) -> float:
    """Gamma at which the loss would be log(2 e^epsilon - 1)."""
    return math.log(2 * math.exp(epsilon) - 1) / epsilon - 1


def _gamma(costs: dict[tuple[float, int, int], CostOfBounds]) -> Exhibit:
    rows: list[tuple[Cell, ...]] = []
    for (epsilon, cells, total), cost in costs.items():
        a, b = cost.pair
        rows.append(
            (
                epsilon,
                cells,
                total,
                math.log(cost.ratio),
                math.log(2 * math.exp(epsilon) - 1),
                cost.gamma,
                _limit(epsilon),
                f"{a} and {b}",
            )
        )
    return Exhibit(
        "gamma",
        "Loss with one pinned total and no negative cell, by enumeration of all tables",
        ("epsilon", "cells", "total", "loss", "log(2 e^epsilon - 1)", "gamma", "limit", "at"),
        tuple(rows),
        (
            "Double geometric noise with a = exp(-epsilon / 2) in every cell; neighbours differ by "
            "one substituted record. The limit is the gamma of a loss of log(2 e^epsilon - 1).",
        ),
    )


def _examples() -> Exhibit:
    a = Fraction(1, 2)
    rows: list[tuple[Cell, ...]] = []
    for high, what in ((50, "S* = {5}"), (60, "S* = {5, 6}")):
        mechanism, pairs = rounding(a, 41, high)
        epsilon = -math.log(a)
        loss = mechanism.epsilon(pairs)
        rows.append((f"Example 5.2, 41 to {high} persons, {what}", 1, epsilon, loss))
    for k in (1, 2):
        loss = two_bins(a, 2).epsilon(apart(cube(2), k))
        rows.append(("Example 4.1, two bins", k, -2 * math.log(a), loss))
    return Exhibit(
        "examples",
        "Gamma in the examples of Gong and Meng, section 5.1, at a = 1/2",
        ("example", "k", "epsilon", "loss of M*", "gamma"),
        tuple((*row, _gamma_of(row)) for row in rows),
        (
            "M* is the mechanism given the invariant. Its loss is (1 + gamma) k epsilon, where k "
            "is the number of records that differ.",
        ),
    )


def _gamma_of(row: Sequence[Cell]) -> float:
    _, k, epsilon, loss = row
    return float(loss or 0) / (float(k or 0) * float(epsilon or 0)) - 1


def _hierarchy(draws: Draws, within: frozenset[int]) -> tuple[Belief, tuple[Belief, ...]]:
    ranks = {world: draws.integer(0, 2) for world in sorted(within)}
    tiers = [
        Belief.from_weights({w: draws.integer(1, 4) if ranks.get(w) == rank else 0 for w in WORLDS})
        for rank in sorted(set(ranks.values()))
    ]
    return tiers[0], tuple(tiers[1:])


def _postulates(seed: int, cases: int) -> Exhibit:
    """Go through all events for random beliefs, under four rules."""
    draws = Draws(seeded(seed))
    every = frozenset(WORLDS)
    rules: dict[str, Callable[[Belief, tuple[Belief, ...]], Callable[[Worlds], Belief]]] = {
        "revision": lambda p, more: lambda e: revise(p, e, reserve=more),
        "screened": lambda p, more: lambda e: screened(p, e, core=CORE, reserve=more),
        "credibility-limited, P >= 1/2": lambda p, more: (
            lambda e: credibility_limited(p, e, credible=likely(p, Fraction(1, 2)), reserve=more)
        ),
        "imaging": lambda p, _: (
            lambda e: p.image(e, nearest(WORLDS, frozenset(w for w in WORLDS if w in e)))
        ),
    }
    found: dict[tuple[str, str], str] = {}
    for name, rule in rules.items():
        for _ in range(cases):
            prior, reserve = _hierarchy(draws, CORE if name == "screened" else every)
            for postulate, breach in broken(prior, rule(prior, reserve)).items():
                learnt = " and ".join(map(_set, breach))
                case = f"believed {_set(prior.support)}, learnt {learnt}"
                kept = found.get((name, postulate), case)
                found[name, postulate] = min(kept, case, key=lambda text: (len(text), text))
    return Exhibit(
        "postulates",
        "Postulates of revision, by all events of four worlds",
        ("rule", *POSTULATES),
        tuple((name, *(found.get((name, p), "met") for p in POSTULATES)) for name in rules),
        (
            f"Each rule was tried on {cases} random beliefs. Each belief comes with a second one, "
            "its reserve. If the belief excludes the news, the reserve is used instead. A cell "
            "has the shortest case found that breaks the postulate.",
            f"Screened revision refuses news that excludes every world of its core, {_set(CORE)}.",
        ),
    )


def _set(worlds: Worlds) -> str:
    return "{" + ", ".join(sorted(map(str, worlds))) + "}"


def _topic(verdicts: dict[str, Verdict], items: tuple[str, ...]) -> str:
    """Say what was asked about one theorem and what came of it."""
    statements = {claim.item: claim.statement for claim in CLAIMS}
    lines = [f"**{items[0]}.**", ""]
    for item in items:
        found = verdicts[item]
        outcome = "held in every case" if found.holds else f"is refuted: {found.counterexample}"
        lines.append(f"- {statements[item]} This {outcome}.")
    return "\n".join(lines)


def _findings(
    verdicts: dict[str, Verdict], controls: dict[str, Verdict], cases: int
) -> tuple[str, ...]:
    """State how many statements held, and which of a paper were refuted."""
    failing = [claim for claim in CLAIMS if not verdicts[claim.item].holds]
    own = [claim for claim in failing if claim.says == "the paper"]
    stated = sum(claim.says == "the paper" for claim in CLAIMS)
    caught = sum(not control.holds for control in controls.values())
    lines = []
    for claim in own:
        corrected = [
            f"{other.statement} This held in every case."
            if verdicts[other.item].holds
            else f"{other.statement} This was refuted."
            for items in _TOPICS
            if claim.item in items
            for other in CLAIMS
            if other.item in items and other.says == "ours: corrected"
        ]
        lines.append(
            f"- **{claim.item}.** {claim.statement} Counterexample: "
            f"{verdicts[claim.item].counterexample}."
            + "".join(f" Corrected: {text}" for text in corrected)
        )
    return (
        f"{len(verdicts)} statements were tried on {cases} random laws of few values each, in "
        f"exact arithmetic. {len(verdicts) - len(failing)} statements held in every case, which is "
        f"no proof, and {len(failing)} were refuted. "
        + (
            f"Each of the {len(controls)} statements that held is paired with a variant that is "
            "known to be false. "
            if set(controls) == {item for item, found in verdicts.items() if found.holds}
            else f"{len(controls)} statements are paired with a variant that is known to be false. "
        )
        + f"{caught} of these variants were refuted, so the trials do find errors.",
        f"**What the papers state.** Of {stated} statements, {len(own)} were refuted:",
        "\n".join(lines),
    )


def _on_marks(marks: Exhibit) -> str:
    differ = [f"{row[0]}, {row[1]}" for row in marks.rows if row[2] != row[3]]
    return (
        f"**Table 1 of Two Views.** {len(marks.rows) - len(differ)} of the {len(marks.rows)} rows "
        "of our table agree with the paper's marks"
        + (f". Rows that do not agree: {'; '.join(differ)}." if differ else ".")
    )


def _on_others(sources: Exhibit) -> tuple[str, ...]:
    count = {str(row[0]): [int(str(cell)) for cell in row[1:]] for row in sources.rows}
    denied, other = count["the paper denies it"], count["the paper, read otherwise"]
    corrected, stronger, ours = (
        count[name] for name in ("ours: corrected", "ours: stronger", "ours")
    )
    return (
        f"**What the papers deny.** The papers say of {denied[0]} statements that they do not hold "
        f"in general. {denied[2]} of these statements were refuted.",
        "**Wording.** Some words of the papers have a second meaning, which the paper's own proof "
        f"or use does not need. {other[0]} statements have this second meaning, and {other[2]} of "
        "them were refuted. These are remarks on wording, not errors.",
        f"**What this study adds.** {corrected[0]} statements correct a statement of a paper, or a "
        f"second meaning of one; {corrected[1]} held. {stronger[0]} statements claim more than a "
        f"paper does; {stronger[2]} were refuted, so the paper's statement cannot be made stronger "
        f"in this way. Of {ours[0]} further statements, {ours[1]} held.",
    )


def _on_rules(postulates: Exhibit) -> str:
    """State which postulates each rule of belief change broke."""
    told = []
    for rule, *cells in postulates.rows:
        breaks = [
            name for name, cell in zip(postulates.columns[1:], cells, strict=True) if cell != "met"
        ]
        told.append(f"- {rule}: {', '.join(breaks) if breaks else 'none'}")
    return (
        "**Rules of belief change.** The theory of belief change has postulates, which a rule of "
        "revision should satisfy. *Success*: the news is believed afterwards. *Relative success*: "
        "the news is believed afterwards, or nothing has changed. *Vacuity*: if the news "
        "contradicts nothing, it is added, and nothing else changes. *Success monotonicity*: if a "
        "rule accepts some news, it would also accept all news that follows from it. "
        "*Trichotomy*: to learn that A or B holds changes a belief as learning A does, as "
        "learning B does, or so that both results are possible.\n\n"
        f"These {len(postulates.columns) - 1} postulates were tried on four rules. A list of the "
        "postulates that each rule broke:\n\n" + "\n".join(told)
    )


def _on_costs(costs: dict[tuple[float, int, int], CostOfBounds]) -> str:
    most = max(costs, key=lambda key: costs[key].gamma / _limit(key[0]))
    share = costs[most].gamma / _limit(most[0])
    within = all(c.ratio <= 2 / _noise_ratio(eps) ** 2 - 1 for (eps, _, _), c in costs.items())
    return (
        "**What bounds cost.** The loss for one record is (1 + γ) ε, where ε is the loss of the "
        f"noise. With one exact total and no negative cell, γ was enumerated for {len(costs)} "
        f"combinations of ε, cells and total. The loss {'never' if within else 'somewhere'} "
        f"exceeds ln(2 exp(ε) - 1), so γ {'never' if within else 'somewhere'} exceeds ln(2 exp(ε) "
        f"- 1)/ε - 1. The γ nearest to its bound is {100 * share:.1f}% of this bound, at ε = "
        f"{most[0]:g}, {most[1]} cells and total {most[2]}."
    )


def _bars(sources: Exhibit, canvas: Canvas) -> None:
    """Draw how many statements of each source held and were refuted."""
    axes = canvas.subplots()
    names = [str(name) for name in sources.column("who says so")]
    before = [0] * len(names)
    for column, colour, ink in (("held", BLUE, "white"), ("refuted", ORANGE, "black")):
        counts = [int(str(cell)) for cell in sources.column(column)]
        bars = axes.barh(names, counts, left=before, color=colour, label=column)
        axes.bar_label(bars, [str(c) if c else "" for c in counts], label_type="center", color=ink)
        before = counts
    axes.invert_yaxis()
    axes.set_xlabel("statements")
    axes.legend(frameon=False, loc="lower right")


def _draw(canvas: Canvas, costs: dict[tuple[float, int, int], CostOfBounds]) -> None:
    """Draw gamma by epsilon: a panel for each number of cells, a line for each total."""
    panels = canvas.subplots(1, len(CELLS), sharey=True)
    along = [EPSILONS[0] * (EPSILONS[-1] / EPSILONS[0]) ** (k / 100) for k in range(101)]
    for panel, cells in zip(panels, CELLS, strict=True):
        panel.plot(along, [_limit(epsilon) for epsilon in along], color="0.45", label="bound")
        for place, total in enumerate(_DRAWN):
            values = [costs[epsilon, cells, total].gamma for epsilon in EPSILONS]
            panel.plot(EPSILONS, values, label=f"total {total}", **line(place))
        panel.set_title(f"{cells} cells", fontsize="medium")
        panel.set_ylim(bottom=0)
        epsilon_axis(panel, EPSILONS)
        frame(panel)
    panels[0].set_ylabel("γ: share by which\nthe loss exceeds ε")
    legend_below(canvas, panels[0], len(_DRAWN) + 1)
