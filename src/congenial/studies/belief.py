"""Belief change and the two papers' theorems on finite laws, decided case by case."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from congenial.belief.belief import Belief
from congenial.belief.checks import CLAIMS, Verdict, decide
from congenial.belief.checks.congenial_dp import apart, cube, rounding, two_bins
from congenial.belief.checks.draws import Draws, nearest
from congenial.belief.gamma import Cost, pinned_total
from congenial.belief.postulates import POSTULATES, Worlds, broken
from congenial.belief.revision import credibility_limited, likely, revise, screened
from congenial.randomness import seeded
from congenial.studies.record import Cell, Figure, Study, Table, replicates

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

EPSILONS = (0.1, 0.5, 1.0, 2.0, 4.0)
CELLS = (2, 3, 4)
TOTALS = tuple(range(1, 9))
WORLDS = (0, 1, 2, 3)
CORE = frozenset({0, 1, 2})

# Property, whether the paper ticks it, and the claims that decide it, for both operators.
_TABLE_1: tuple[tuple[str, str, bool, tuple[str, ...]], ...] = (
    ("conditioning", "privacy preserving", False, ("Table 1, conditioning and inequalities",)),
    ("conditioning", "privacy preserving, linear equalities", True, ("Lemma 3.3",)),
    ("conditioning", "postprocessing", True, ("Lemma 3.4, part 1",)),
    ("conditioning", "basic composition", True, ("Lemma 3.6",)),
    ("conditioning", "disjoint union: the law", True, ("Theorem 3.5, part 1",)),
    ("conditioning", "disjoint union: privacy", True, ("Theorem 3.5, part 2, as printed",)),
    ("conditioning", "mixture: the law", False, ("Table 1, conditioning and mixtures",)),
    ("conditioning", "mixture: privacy", False, ("Table 1, privacy of a conditioned mixture",)),
    ("conditioning", "least Kullback-Leibler", True, ("section 2, minimum divergence",)),
    ("imaging", "privacy preserving", True, ("Lemma 3.7",)),
    ("imaging", "privacy preserving, linear equalities", True, ("Lemma 3.7",)),
    ("imaging", "postprocessing: h after the image", True, ("Lemma 3.8, corrected",)),
    ("imaging", "postprocessing: image after h", True, ("Lemma 3.8, as printed",)),
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
    tables = (
        _claims(verdicts, controls),
        _table_1(verdicts),
        _box(),
        _gamma(costs),
        _examples(),
        _postulates(seed, max(10, cases // 20)),
    )
    return Study(
        "belief",
        "Belief change and the theorems on finite laws",
        _findings(verdicts, controls, costs, cases),
        tables,
        (Figure("gamma", "What one pinned total costs", lambda canvas: _draw(canvas, costs)),),
    )


def _claims(verdicts: dict[str, Verdict], controls: dict[str, Verdict]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for claim in CLAIMS:
        verdict = verdicts[claim.item]
        control = controls.get(claim.item)
        rows.append(
            (
                claim.item,
                claim.statement,
                verdict.cases,
                "holds" if verdict.holds else "fails",
                verdict.failures,
                verdict.counterexample,
                control.failures if control else None,
            )
        )
    return Table(
        "claims",
        "Every statement, tried on random finite laws in exact arithmetic",
        ("item", "statement", "cases", "verdict", "failures", "counterexample", "control"),
        tuple(rows),
        (
            "A statement that holds was true in every case tried, which is no proof. One that "
            "fails is refuted by its counterexample, the shortest that was found.",
            "The last column counts the cases in which the same trial refutes a statement known "
            "to be false: conditioning put for imaging, a condition left out.",
        ),
    )


def _table_1(verdicts: dict[str, Verdict]) -> Table:
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
    return Table(
        "table-1",
        "Table 1 of Two Views, mark by mark",
        ("operator", "property", "printed", "found", "claim"),
        tuple(rows),
        (
            "A mark of the paper that means two things has a row for each.",
            "Privacy under linear equalities is pure epsilon-privacy with f(D) and f(D') in C.",
        ),
    )


def _box() -> Table:
    prior = Belief({"both": 0, "apple": Fraction(7, 10), "banana": Fraction(3, 10), "none": 0})
    event = {"banana", "none"}
    closest = {"both": "banana", "apple": "none", "banana": "banana", "none": "none"}
    found, taken = prior.condition(event), prior.image(event, closest)
    return Table(
        "box",
        "No apple in the box (Two Views, Example 2.3)",
        ("world", "prior", "revised", "updated"),
        tuple((str(w), float(prior[w]), float(found[w]), float(taken[w])) for w in prior.worlds),
        ("Revised: there was no apple. Updated: there is no apple any more.",),
    )


def _noise_ratio(epsilon: float) -> Fraction:
    """Return the fraction that the float exp(-epsilon / 2) is: what follows is exact."""
    return Fraction(math.exp(-epsilon / 2))


def _limit(epsilon: float) -> float:
    """Gamma at which the loss would be log(2 e^epsilon - 1)."""
    return math.log(2 * math.exp(epsilon) - 1) / epsilon - 1


def _gamma(costs: dict[tuple[float, int, int], Cost]) -> Table:
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
    return Table(
        "gamma",
        "Loss with one pinned total and no negative cell, by enumeration of all tables",
        ("epsilon", "cells", "total", "loss", "log(2 e^epsilon - 1)", "gamma", "limit", "at"),
        tuple(rows),
        (
            "Double geometric noise with a = exp(-epsilon / 2) in every cell; neighbours differ by "
            "one substituted record. Limit is the gamma of the loss log(2 e^epsilon - 1).",
        ),
    )


def _examples() -> Table:
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
    return Table(
        "examples",
        "Gamma in the examples of Gong and Meng, section 5.1, at a = 1/2",
        ("example", "k", "epsilon", "loss of M*", "gamma"),
        tuple((*row, _gamma_of(row)) for row in rows),
        ("Loss of M* is (1 + gamma) k epsilon; k is the number of records that differ.",),
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


def _postulates(seed: int, cases: int) -> Table:
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
                told = f"believed {_set(prior.support)}, told " + " and ".join(map(_set, breach))
                kept = found.get((name, postulate), told)
                found[name, postulate] = min(kept, told, key=lambda text: (len(text), text))
    return Table(
        "postulates",
        "Postulates of revision, by all events of four worlds",
        ("rule", *POSTULATES),
        tuple((name, *(found.get((name, p), "met") for p in POSTULATES)) for name in rules),
        (
            f"Each rule was tried on {cases} random beliefs with a reserve; a cell names the "
            "shortest breach found.",
            f"Screened revision keeps the core {_set(CORE)}.",
        ),
    )


def _set(worlds: Worlds) -> str:
    return "{" + ", ".join(sorted(map(str, worlds))) + "}"


def _findings(
    verdicts: dict[str, Verdict],
    controls: dict[str, Verdict],
    costs: dict[tuple[float, int, int], Cost],
    cases: int,
) -> tuple[str, ...]:
    failing = [item for item, verdict in verdicts.items() if not verdict.holds]
    printed = [item for item in failing if "as printed" in item]
    caught = sum(not control.holds for control in controls.values())
    most = max(costs, key=lambda key: costs[key].gamma / _limit(key[0]))
    share = costs[most].gamma / _limit(most[0])
    within = all(c.ratio <= 2 / _noise_ratio(eps) ** 2 - 1 for (eps, _, _), c in costs.items())
    return (
        f"{len(verdicts)} statements were tried on {cases} random finite laws each, in exact "
        f"arithmetic: {len(verdicts) - len(failing)} held in every case and {len(failing)} were "
        f"refuted. Of the {len(controls)} trials of statements that hold, {caught} refute the "
        "false statement that controls them.",
        f"{len(printed)} of those refuted are statements of the papers as they are printed: "
        + "; ".join(printed)
        + ". What holds instead stands beside each, as corrected.",
        "Theorem 3.5, part 2: a union of two invariants is not as private as its parts, since the "
        "release tells which part it is in, and the odds of that depend on the data. "
        "Counterexample: "
        + verdicts["Two Views, Theorem 3.5, part 2, additive noise, single values"].counterexample
        + ". It holds where neighbours give the parts the same odds, as additive noise does for "
        "sums on which neighbours agree.",
        "Lemma 3.3 holds for pure epsilon-privacy and neighbours that both meet the equality. "
        "Where one does not: "
        + verdicts["Two Views, Lemma 3.3, f(D') outside C"].counterexample
        + ". For approximate privacy: "
        + verdicts["Two Views, Lemma 3.3, for (epsilon, delta)"].counterexample
        + ".",
        "In Example 4.1 of Gong and Meng a fixed total of both bins leaves every dataset its "
        "neighbours at distance 1, and gamma is 0 at every distance, not -1/2. Example 5.1 needs "
        "an invariant that every output meets: with the range of the query for S*, as equation 2.1 "
        "has it, "
        + verdicts["Gong and Meng (2020), Example 5.1, S* by equation 2.1"].counterexample
        + ".",
        "Theorem 1.3 holds where the analyst takes the records to be independent, or knows the "
        "others. For records that tell of one another it fails: "
        + verdicts["Gong and Meng (2020), Theorem 1.3, every prior"].counterexample
        + ".",
        f"One pinned total and no negative cell: gamma was enumerated for {len(costs)} "
        f"combinations, and the loss {'never' if within else 'somewhere'} exceeds "
        f"log(2 e^epsilon - 1). It comes nearest at epsilon = {most[0]:g}, {most[1]} cells and "
        f"total {most[2]}, with {100 * share:.1f}% of that bound's gamma.",
    )


def _draw(canvas: Canvas, costs: dict[tuple[float, int, int], Cost]) -> None:
    axes = canvas.subplots()
    for i, cells in enumerate(CELLS):
        # a total of 1 costs nothing
        for total, style in ((TOTALS[1], ":"), (TOTALS[-1], "-")):
            values = [costs[eps, cells, total].gamma for eps in EPSILONS]
            label = f"{cells} cells, total {total}"
            axes.plot(EPSILONS, values, style, color=f"C{i}", marker="o", label=label)
    axes.plot(EPSILONS, [_limit(eps) for eps in EPSILONS], "k--", label="log(2 e^epsilon - 1)")
    axes.set_xscale("log")
    axes.set_xlabel("epsilon")
    axes.set_ylabel("gamma")
    axes.legend(fontsize="small")
