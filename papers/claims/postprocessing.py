"""Two Views, Lemma 3.4: functions of a conditioned release, by every reading of its condition."""

from __future__ import annotations

from typing import Literal

from congenial.belief.finite_mechanism import FiniteMechanism
from papers.claims.claim import (
    Case,
    Claim,
    listed,
    told_laws,
)
from papers.claims.draws import PAIR, Draws

OUTPUTS = (0, 1, 2, 3)


def _maps(h: dict[int, int]) -> str:
    return ", ".join(f"{w}->{v}" for w, v in h.items())


def _postprocessed(*, by_data: bool) -> Case:
    """Lemma 3.4, first part; with `by_data` the function may depend on the dataset."""

    def case(draws: Draws) -> str | None:
        event = draws.event(OUTPUTS)
        mechanism = draws.mechanism(OUTPUTS, event, zeros=True).condition(event)
        h = {d: draws.function(OUTPUTS, OUTPUTS) for d in mechanism.datasets}
        if not by_data:
            h["y"] = h["x"]
        after = FiniteMechanism(
            {d: mechanism[d].then(h[d].__getitem__) for d in mechanism.datasets}
        )
        factor = draws.factor()
        if after.excess(factor, PAIR) <= mechanism.excess(factor, PAIR):
            return None
        return f"{told_laws(mechanism)}; h: {_maps(h['x'])} for x, {_maps(h['y'])} for y"

    return case


def _event_about_m(*, about: bool) -> Case:
    """Second part of Lemma 3.4, with C an event about M; the control asks it of h after M."""

    def case(draws: Draws) -> str | None:
        h, event = draws.function(OUTPUTS, OUTPUTS), draws.event(OUTPUTS)
        mechanism = draws.mechanism(OUTPUTS, event, zeros=True)
        both = mechanism.then(lambda z: (z, h[z]))
        kept = [z for z in OUTPUTS if (z if about else h[z]) in event]
        if not all(law.probability(kept) for law in mechanism.laws):
            return None
        left = both.condition(lambda pair: pair[0] in kept).then(lambda pair: pair[1])
        given = mechanism.condition(event)
        factor = draws.factor()
        same = left == given.then(h.__getitem__)
        if same and left.excess(factor, PAIR) <= given.excess(factor, PAIR):
            return None
        return f"{told_laws(mechanism)}; h: {_maps(h)}; C = {listed(event)}"

    return case


Reading = Literal["outputs", "image", "preimage", "one-to-one"]


def _same_law(reading: Reading) -> Case:
    def case(draws: Draws) -> str | None:
        h = _function(reading, draws)
        inner, outer = _events(reading, h, draws)
        mechanism = draws.mechanism(OUTPUTS)
        left = mechanism.condition(inner).then(h.__getitem__)
        right = mechanism.then(h.__getitem__).condition(lambda z: z in outer)
        if left == right:
            return None
        return f"{told_laws(mechanism)}; h: {_maps(h)}; C = {listed(inner)}, {listed(outer)}"

    return case


def _as_private(reading: Reading) -> Case:
    """Try that (h after M), given outputs of its own, is as private as M given C."""

    def case(draws: Draws) -> str | None:
        h = _function(reading, draws)
        inner, outer = _events(reading, h, draws)
        mechanism = draws.mechanism(OUTPUTS)
        before = mechanism.condition(inner).ratio(PAIR)
        after = mechanism.then(h.__getitem__).condition(lambda z: z in outer).ratio(PAIR)
        if after <= before:
            return None
        return (
            f"{told_laws(mechanism)}; h: {_maps(h)}; C = {listed(inner)}, {listed(outer)}; "
            f"ratio {before} becomes {after}"
        )

    return case


def _function(reading: Reading, draws: Draws) -> dict[int, int]:
    if reading == "one-to-one":
        return draws.permutation(OUTPUTS)
    return draws.function(OUTPUTS, OUTPUTS)


def _events(
    reading: Reading, h: dict[int, int], draws: Draws
) -> tuple[frozenset[int], frozenset[int]]:
    """Return the event that M is conditioned on, and the one for h after M."""
    while True:
        event = draws.event(OUTPUTS)
        before = frozenset(w for w in OUTPUTS if h[w] in event)
        if not before:
            continue  # h after M never meets it
        if reading == "outputs":
            return event, event
        if reading == "preimage":
            return before, event
        return event, frozenset(h[w] for w in event)


CLAIMS = (
    Claim(
        "Two Views, Lemma 3.4, part 1",
        "A function of the output of M(.|C) is as private as M(.|C).",
        "the paper",
        True,
        _postprocessed(by_data=False),
        _postprocessed(by_data=True),
    ),
    Claim(
        "Two Views, Lemma 3.4, part 2",
        "h after M, given that M is in C, has the law of h after (M given C) and is as private as "
        "M given C.",
        "the paper",
        True,
        _event_about_m(about=True),
        _event_about_m(about=False),
    ),
    Claim(
        "Two Views, Lemma 3.4, part 2, C as outputs of h after M, equality",
        "h after M, given that h(M) is in C, has the law of h after (M given C).",
        "the paper, read otherwise",
        False,
        _same_law("outputs"),
    ),
    Claim(
        "Two Views, Lemma 3.4, part 2, C as outputs of h after M, privacy",
        "h after M, given that h(M) is in C, is as private as M given C.",
        "the paper, read otherwise",
        False,
        _as_private("outputs"),
    ),
    Claim(
        "Two Views, Lemma 3.4, part 2, with h(C) for C",
        "h after M, given that h(M) is in h(C), is as private as M given C.",
        "the paper, read otherwise",
        False,
        _as_private("image"),
    ),
    Claim(
        "Two Views, Lemma 3.4, part 2, preimage",
        "h after M, given that h(M) is in C', has the law of h after (M given that h(M) is in C').",
        "ours",
        True,
        _same_law("preimage"),
        _same_law("outputs"),
    ),
    Claim(
        "Two Views, Lemma 3.4, part 2, one-to-one h",
        "For one-to-one h, h after M, given that h(M) is in h(C), has the law of h after (M given "
        "C).",
        "ours",
        True,
        _same_law("one-to-one"),
        _same_law("image"),
    ),
)
