"""Two Views, section 2: what sets conditioning and imaging apart."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import combinations

from congenial.belief.worlds import Belief, kullback_leibler, mixture
from papers.claims.claim import (
    Case,
    Claim,
    listed,
    told,
)
from papers.claims.draws import Draws, nearest

WORLDS = (0, 1, 2, 3)
Rule = Callable[[Belief, frozenset[int]], Belief]


def conditioned(belief: Belief, event: frozenset[int]) -> Belief:
    """Conditioning as a rule."""
    return belief.condition(event)


def imaged(belief: Belief, event: frozenset[int]) -> Belief:
    """Imaging onto the nearest world as a rule."""
    return belief.image(event, nearest(WORLDS, event))


def _subsets(event: frozenset[int]) -> Iterator[frozenset[int]]:
    for size in range(1, len(event) + 1):
        yield from map(frozenset, combinations(sorted(event), size))


def _keeps_ratios(prior: Belief, after: Belief, event: frozenset[int]) -> bool:
    """Second condition of Proposition 2.1, multiplied out."""
    return all(
        after.probability(b) * prior.probability(c) == after.probability(c) * prior.probability(b)
        for b in _subsets(event)
        for c in _subsets(event)
        if prior.probability(c)
    )


def _no_relative_change(rule: Rule) -> Case:
    def case(draws: Draws) -> str | None:
        event = draws.event(WORLDS, proper=True)
        prior = draws.possible(WORLDS, event)
        after = rule(prior, event)
        if after.probability(event) == 1 and _keeps_ratios(prior, after, event):
            return None
        return f"P = ({told(prior)}), E = {listed(event)}, P' = ({told(after)})"

    return case


def _characterized(*, first: bool) -> Case:
    """Try that the conditions of Proposition 2.1 leave the conditional law alone."""

    def case(draws: Draws) -> str | None:
        event = draws.event(WORLDS, proper=True)
        prior = draws.possible(WORLDS, event)
        wanted = prior.condition(event)
        share = Fraction(draws.integer(0, 2), 2)
        other = mixture([wanted, draws.choice([prior, draws.belief(WORLDS)])], [1 - share, share])
        meets = _keeps_ratios(prior, other, event)
        if first:
            meets = meets and other.probability(event) == 1
        if meets == (other == wanted):
            return None
        return f"P = ({told(prior)}), E = {listed(event)}, P' = ({told(other)})"

    return case


def _union(*, apart: bool) -> Case:
    def case(draws: Draws) -> str | None:
        first, second = draws.disjoint(WORLDS) if apart else draws.overlapping(WORLDS)
        prior = draws.possible(WORLDS, first, second)
        p, q = prior.probability(first), prior.probability(second)
        share = p / (p + q)
        parts = [prior.condition(first), prior.condition(second)]
        if prior.condition(first | second) == mixture(parts, [share, 1 - share]):
            return None
        return f"P = ({told(prior)}), C = {listed(first)}, C' = {listed(second)}"

    return case


def _least_divergence(rule: Rule) -> Case:
    """Try the minimum: by floats, and exactly by its decomposition world by world."""

    def case(draws: Draws) -> str | None:
        event = draws.event(WORLDS, proper=True)
        prior = draws.possible(WORLDS, event)
        whole = prior.probability(event)
        least = -math.log(whole)
        after = rule(prior, event)
        if abs(kullback_leibler(after, prior) - least) > 1e-12:
            return f"P = ({told(prior)}), C = {listed(event)}, P' = ({told(after)})"
        rival = draws.belief([world for world in WORLDS if world in prior.support & event])
        # so that KL(rival, P) = KL(rival, P(.|C)) - log P(C)
        exact = all(rival[w] / prior[w] == rival[w] / (after[w] * whole) for w in rival.support)
        if exact and kullback_leibler(rival, prior) >= least - 1e-12:
            return None
        return f"P = ({told(prior)}), C = {listed(event)}, rival = ({told(rival)})"

    return case


def _swapped(*, arguments: bool) -> Case:
    """Try that I, with its arguments in that order, is infinite for every law on the event."""

    def case(draws: Draws) -> str | None:
        event = draws.event(WORLDS, proper=True)
        prior = draws.possible(WORLDS, event)
        if prior.probability(event) == 1:
            return None
        for rival in (prior.condition(event), draws.belief(sorted(event))):
            found = (prior, rival) if arguments else (rival, prior)
            if math.isfinite(kullback_leibler(*found)):
                return f"P = ({told(prior)}), C = {listed(event)}, P' = ({told(rival)})"
        return None

    return case


def _homomorphic(rule: Rule) -> Case:
    def case(draws: Draws) -> str | None:
        event = draws.event(WORLDS)
        first, second = (draws.possible(WORLDS, event) for _ in range(2))
        share = draws.fraction()
        weights = [share, 1 - share]
        mixed = mixture([first, second], weights)
        if rule(mixed, event) == mixture([rule(first, event), rule(second, event)], weights):
            return None
        return f"P = ({told(first)}), P' = ({told(second)}), weight {share}, C = {listed(event)}"

    return case


def _spread(belief: Belief, rows: dict[int, Belief]) -> Belief:
    """Move each world's probability by a law of its own."""
    return mixture([rows[w] for w in WORLDS], [belief[w] for w in WORLDS])


def _random_rule(draws: Draws, event: frozenset[int]) -> tuple[str, Callable[[Belief], Belief]]:
    """Draw a rule that leads into an event and fixes its worlds."""
    lead = draws.closest(WORLDS, event)
    rows = {w: Belief({w: 1}) if w in event else draws.belief(sorted(event)) for w in WORLDS}
    kind = draws.integer(0, 2)
    if kind == 0:
        return "one closest world each", lambda law: law.image(event, lead)
    if kind == 1:
        rule = "; ".join(f"{w} moves to ({told(rows[w])})" for w in WORLDS if w not in event)
        return rule, lambda law: _spread(law, rows)
    return (
        "conditioning, or one closest world each where the event is impossible",
        lambda law: law.condition(event) if law.probability(event) else law.image(event, lead),
    )


def _only_imaging(*, linear: bool, points: bool, general: bool) -> Case:
    """Look for a rule that is no imaging, although it leads into C and fixes its worlds.

    Rules are known by what they do to beliefs. With `linear`, those found not to be homomorphic
    are left aside; with `points`, those that do not send point masses to point masses. With
    `general`, imaging may send a world to several.
    """

    def case(draws: Draws) -> str | None:
        event = draws.event(WORLDS, proper=True)
        name, rule = _random_rule(draws, event)
        pairs = [(draws.belief(WORLDS), draws.belief(WORLDS)) for _ in range(12)]
        half = [Fraction(1, 2)] * 2
        if linear and any(
            rule(mixture(pair, half)) != mixture([rule(law) for law in pair], half)
            for pair in pairs
        ):
            return None
        rows = {w: rule(Belief({v: int(v == w) for v in WORLDS})) for w in WORLDS}
        single = all(len(row.support) == 1 for row in rows.values())
        if points and not single:
            return None
        as_imaging = all(rule(law) == _spread(law, rows) for pair in pairs for law in pair)
        if as_imaging and (general or single):
            return None
        return f"C = {listed(event)}, {name}"

    return case


def _monotone(rule: Rule) -> Case:
    def case(draws: Draws) -> str | None:
        event = draws.event(WORLDS)
        prior = draws.possible(WORLDS, event)
        after = rule(prior, event)
        if after.support <= prior.support:
            return None
        return f"P = ({told(prior)}), C = {listed(event)}, after: ({told(after)})"

    return case


def _apple(rule: str) -> Case:
    """Example 2.3 under one of the two rules."""

    def case(draws: Draws) -> str | None:
        del draws
        box = Belief({1: 0, 2: Fraction(7, 10), 3: Fraction(3, 10), 4: 0})
        none = frozenset({3, 4})
        found = box.condition(none)
        gone = {1: 3, 2: 4, 3: 3, 4: 4}
        taken = box.image(none, gone) if rule == "update" else found
        wanted = Belief({3: Fraction(3, 10), 4: Fraction(7, 10)})
        if found == Belief({3: 1}) and taken == wanted:
            return None
        return f"revised: ({told(found)}), updated: ({told(taken)})"

    return case


CLAIMS = (
    Claim(
        "Two Views, Proposition 2.1",
        "Conditioning gives probability 0 outside E and keeps the ratios of all events inside.",
        "the paper",
        True,
        _no_relative_change(conditioned),
        _no_relative_change(imaged),
    ),
    Claim(
        "Two Views, Proposition 2.1, converse",
        "A law meets both conditions if and only if it is the conditional law.",
        "the paper",
        True,
        _characterized(first=True),
        _characterized(first=False),
    ),
    Claim(
        "Two Views, Proposition 2.2",
        "Given a union of disjoint events, the law is their conditional laws mixed with weights "
        "P(C) and P(C').",
        "the paper",
        True,
        _union(apart=True),
        _union(apart=False),
    ),
    Claim(
        "Two Views, section 2, minimum divergence",
        "Of all laws on C, the conditional one has the least divergence sum P' log(P'/P) from the "
        "prior, -log P(C).",
        "the paper",
        True,
        _least_divergence(conditioned),
        _least_divergence(imaged),
    ),
    Claim(
        "Two Views, after Lemma 3.6, I(P', P) by section 2",
        "With the arguments in the order I(P', P), the divergence of section 2 is infinite for "
        "every law on C if P(C) < 1. So it selects no law.",
        "ours",
        True,
        _swapped(arguments=True),
        _swapped(arguments=False),
    ),
    Claim(
        "Two Views, equation 2",
        "Imaging a mixture is mixing the images.",
        "the paper",
        True,
        _homomorphic(imaged),
        _homomorphic(conditioned),
    ),
    Claim(
        "Two Views, after equation 1, general imaging",
        "Take a rule that maps mixtures to mixtures, gives only worlds in C, and does not change "
        "worlds of C. It is imaging, if imaging may divide a world's probability among several "
        "worlds.",
        "the paper",
        True,
        _only_imaging(linear=True, points=False, general=True),
        _only_imaging(linear=False, points=False, general=True),
    ),
    Claim(
        "Two Views, after equation 1, one closest world each",
        "Take a rule that maps mixtures to mixtures, gives only worlds in C, and does not change "
        "worlds of C. It is imaging by equation 1, with one closest world each.",
        "the paper, read otherwise",
        False,
        _only_imaging(linear=True, points=False, general=False),
    ),
    Claim(
        "Two Views, after equation 1, point masses",
        "Take a rule that maps mixtures to mixtures and single worlds to single worlds, gives only "
        "worlds in C, and does not change worlds of C. It is imaging by equation 1.",
        "ours: corrected",
        True,
        _only_imaging(linear=True, points=True, general=False),
        _only_imaging(linear=False, points=True, general=False),
    ),
    Claim(
        "Two Views, after equation 2",
        "Conditioning makes no impossible world possible, and no sure world doubtful.",
        "the paper",
        True,
        _monotone(conditioned),
        _monotone(imaged),
    ),
    Claim(
        "Two Views, Example 2.3",
        "No apple: revision ends with a banana for sure, update with an empty box at 7/10.",
        "the paper",
        True,
        _apple("update"),
        _apple("revision"),
    ),
)
