"""Two Views, section 3, privacy as belief update: Lemmas 3.7, 3.8 and 3.10, Theorem 3.9."""

from __future__ import annotations

from fractions import Fraction

from congenial.belief.finite_mechanism import FiniteMechanism
from congenial.belief.worlds import Belief, Probability, total
from papers.claims.claim import (
    Case,
    Claim,
    listed,
    told,
    told_laws,
)
from papers.claims.draws import PAIR, Draws, nearest

OUTPUTS = (0, 1, 2, 3)


def _imaged(*, by_data: bool) -> Case:
    """Lemma 3.7; the control moves the invariant with the data."""

    def case(draws: Draws) -> str | None:
        mechanism = draws.mechanism(OUTPUTS, zeros=True)
        kept = {d: draws.event(OUTPUTS) for d in mechanism.datasets}
        if not by_data:
            kept["y"] = kept["x"]
        leads = {d: draws.closest(OUTPUTS, kept[d]) for d in kept}
        if not by_data:
            leads["y"] = leads["x"]
        after = FiniteMechanism(
            {d: mechanism[d].image(kept[d], leads[d]) for d in mechanism.datasets}
        )
        factor = draws.factor()
        if after.excess(factor, PAIR) <= mechanism.excess(factor, PAIR):
            return None
        return f"{told_laws(mechanism)}; C(x) = {listed(kept['x'])}, C(y) = {listed(kept['y'])}"

    return case


def _setting(
    draws: Draws,
) -> tuple[FiniteMechanism, frozenset[int], dict[int, int], dict[int, int]]:
    mechanism = draws.mechanism(OUTPUTS, zeros=True)
    event = draws.event(OUTPUTS)
    return mechanism, event, nearest(OUTPUTS, event), draws.function(OUTPUTS, OUTPUTS)


def _words(mechanism: FiniteMechanism, event: frozenset[int], h: dict[int, int]) -> str:
    maps = ", ".join(f"{w}->{v}" for w, v in h.items())
    return f"{told_laws(mechanism)}; h: {maps}; C = {listed(event)}"


def _function_then_image(draws: Draws) -> str | None:
    """Lemma 3.8 with the outputs of h after M moved into C."""
    mechanism, event, closest, h = _setting(draws)
    factor = draws.factor()
    before = mechanism.image(event, closest).excess(factor, PAIR)
    after = mechanism.then(h.__getitem__).image(event, closest).excess(factor, PAIR)
    if after <= before:
        return None
    words = _words(mechanism, event, h)
    return f"{words}; at e^epsilon = {factor}, delta {before} becomes {after}"


def _image_then_function(draws: Draws) -> str | None:
    """Lemma 3.8 with the function after the image."""
    mechanism, event, closest, h = _setting(draws)
    factor = draws.factor()
    image = mechanism.image(event, closest)
    after = image.then(h.__getitem__).excess(factor, PAIR)
    return None if after <= image.excess(factor, PAIR) else _words(mechanism, event, h)


def _function_then_image_bound(draws: Draws) -> str | None:
    """Try that h after M, moved into C, is as private as M itself."""
    mechanism, event, closest, h = _setting(draws)
    factor = draws.factor()
    after = mechanism.then(h.__getitem__).image(event, closest).excess(factor, PAIR)
    return None if after <= mechanism.excess(factor, PAIR) else _words(mechanism, event, h)


def _law_of_proof(*, commuting: bool) -> Case:
    """Try (h after M)_C = h after M_C where h commutes with finding the closest world."""

    def case(draws: Draws) -> str | None:
        while True:
            mechanism, event, closest, h = _setting(draws)
            if not commuting or all(closest[h[w]] == h[closest[w]] for w in OUTPUTS):
                break
        left = mechanism.then(h.__getitem__).image(event, closest)
        if left == mechanism.image(event, closest).then(h.__getitem__):
            return None
        return _words(mechanism, event, h)

    return case


def _mixed(*, by_data: bool) -> Case:
    """Theorem 3.9; the control weighs the parts by the data."""

    def case(draws: Draws) -> str | None:
        event = draws.event(OUTPUTS)
        closest = draws.closest(OUTPUTS, event)
        parts = [draws.mechanism(OUTPUTS, zeros=True) for _ in range(2)]
        weights = {d: draws.belief(range(2)).probabilities for d in PAIR[0]}
        if not by_data:
            weights["y"] = weights["x"]
        images = [part.image(event, closest) for part in parts]
        laws = {d: FiniteMechanism.mixture(parts, weights[d])[d] for d in weights}
        after = FiniteMechanism(laws).image(event, closest)
        wanted = FiniteMechanism.mixture(images, weights["x"])
        if not by_data and after != wanted:
            return "the image of the mixture is not the mixture of the images"
        factor = draws.factor()
        if after.excess(factor, PAIR) <= max(image.excess(factor, PAIR) for image in images):
            return None
        return "; ".join(told_laws(part) for part in parts) + f"; C = {listed(event)}"

    return case


def _joint(*, apart: bool) -> Case:
    """Lemma 3.10; the control draws the two outputs together, with the same two marginals."""

    def case(draws: Draws) -> str | None:
        small = OUTPUTS[:3]
        one, two = draws.mechanism(small), draws.mechanism(small)
        events = draws.event(small), draws.event(small)
        leads = [nearest(small, event) for event in events]
        joint = one.product(two)
        if not apart:
            joint = FiniteMechanism(
                {d: _together(one[d], two[d], way) for d, way in (("x", 1), ("y", -1))}
            )
        after = joint.image(
            lambda z: z[0] in events[0] and z[1] in events[1],
            lambda z: (leads[0][z[0]], leads[1][z[1]]),
        )
        most = one.ratio(PAIR) * two.ratio(PAIR)
        if after.ratio(PAIR) <= most:
            return None
        return f"{told_laws(one)}; {told_laws(two)}"

    return case


def _together(first: Belief, second: Belief, way: int) -> Belief:
    """Joint law of given marginals: quantiles matched in one order or in opposite ones."""
    left = dict(zip(first.worlds, first.probabilities, strict=True))
    right = dict(zip(second.worlds, second.probabilities, strict=True))
    out: dict[object, Probability] = {}
    for a in first.worlds:
        for b in second.worlds[::way]:
            mass = min(left[a], right[b])
            out[a, b] = mass
            left[a], right[b] = left[a] - mass, right[b] - mass
    return Belief(out)


def _some_share(whole: Belief, first: Belief, second: Belief) -> bool:
    """Whether a law is a convex combination of two others."""
    shares = {
        (whole[w] - second[w]) / (first[w] - second[w]) for w in OUTPUTS if first[w] != second[w]
    }
    same = all(whole[w] == second[w] for w in OUTPUTS if first[w] == second[w])
    return same and len(shares) <= 1 and all(0 <= share <= 1 for share in shares)


def _union_law(draws: Draws) -> str | None:
    """Cross of Table 1: the image on a disjoint union is no mixture of the images."""
    first, second = draws.disjoint(OUTPUTS)
    prior = draws.belief(OUTPUTS)
    images = [prior.image(e, nearest(OUTPUTS, e)) for e in (first | second, first, second)]
    if _some_share(*images):
        return None
    return f"P = ({told(prior)}), C = {listed(first)}, C' = {listed(second)}"


def _union_private(draws: Draws) -> str | None:
    """Cross of Table 1: the image on a union may lose more than the images on its parts."""
    first, second = draws.disjoint(OUTPUTS)
    mechanism = draws.mechanism(OUTPUTS)
    ratios = [
        mechanism.image(e, nearest(OUTPUTS, e)).ratio(PAIR) for e in (first, second, first | second)
    ]
    if ratios[2] <= max(ratios[:2]):
        return None
    return (
        f"{told_laws(mechanism)}; C = {listed(first)}, C' = {listed(second)}; ratios {ratios[0]} "
        f"and {ratios[1]} become {ratios[2]}"
    )


def _least_move(*, close: bool) -> Case:
    """Try that no way of moving a law into C moves it less far on average."""

    def case(draws: Draws) -> str | None:
        event = draws.event(OUTPUTS, proper=True)
        prior = draws.belief(OUTPUTS)
        lead = nearest(OUTPUTS, event) if close else draws.closest(OUTPUTS, event)
        rival = {w: draws.belief(sorted(event)) for w in OUTPUTS}
        for power in (1, 2):
            ours = total(prior[w] * abs(w - lead[w]) ** power for w in OUTPUTS)
            theirs = total(
                prior[w] * rival[w][v] * abs(w - v) ** power for w in OUTPUTS for v in event
            )
            if ours > theirs:
                return f"P = ({told(prior)}), C = {listed(event)}: {ours} against {theirs}"
        return None

    return case


def _spread_out(draws: Draws) -> str | None:
    """Try that imaging and conditioning of one law agree."""
    event = draws.event(OUTPUTS, proper=True)
    prior = draws.possible(OUTPUTS, event)
    if prior.probability(event) == Fraction(1):
        return None
    if prior.condition(event) == prior.image(event, nearest(OUTPUTS, event)):
        return None
    return f"P = ({told(prior)}), C = {listed(event)}"


CLAIMS = (
    Claim(
        "Two Views, Lemma 3.7",
        "Imaging onto an invariant that ignores the data is as private as M.",
        "the paper",
        True,
        _imaged(by_data=False),
        _imaged(by_data=True),
    ),
    Claim(
        "Gong and Meng (2020), section 4 and equation 4.4",
        "Imaging onto an invariant that depends on the data is as private as M.",
        "the paper denies it",
        False,
        _imaged(by_data=True),
    ),
    Claim(
        "Two Views, Lemma 3.8",
        "h after M_C, which the lemma's proof compares, is as private as M_C.",
        "the paper",
        True,
        _image_then_function,
        _function_then_image,
    ),
    Claim(
        "Two Views, Lemma 3.8, C as outputs of h after M, privacy",
        "h after M, moved into C, is as private as M_C.",
        "the paper, read otherwise",
        False,
        _function_then_image,
    ),
    Claim(
        "Two Views, Lemma 3.8, C as outputs of h after M, equality",
        "h after M, moved into C, has the law of h after M_C.",
        "the paper, read otherwise",
        False,
        _law_of_proof(commuting=False),
    ),
    Claim(
        "Two Views, Lemma 3.8, C as outputs of h after M, bound",
        "h after M, moved into C, is as private as M.",
        "ours: corrected",
        True,
        _function_then_image_bound,
        _function_then_image,
    ),
    Claim(
        "Two Views, Lemma 3.8, commuting h",
        "If h commutes with finding the closest point, h after M, moved into C, has the law of h "
        "after M_C.",
        "ours",
        True,
        _law_of_proof(commuting=True),
        _law_of_proof(commuting=False),
    ),
    Claim(
        "Two Views, Theorem 3.9",
        "The image of a mixture is the mixture of the images, and as private as the worst of them.",
        "the paper",
        True,
        _mixed(by_data=False),
        _mixed(by_data=True),
    ),
    Claim(
        "Two Views, Lemma 3.10",
        "Images of independent mechanisms: the epsilons of the mechanisms add up.",
        "the paper",
        True,
        _joint(apart=True),
        _joint(apart=False),
    ),
    Claim(
        "Two Views, Table 1, imaging and disjoint unions",
        "The image on a disjoint union is a convex combination of the images on its parts.",
        "the paper denies it",
        False,
        _union_law,
    ),
    Claim(
        "Two Views, Table 1, privacy of the image on a union",
        "The image on a disjoint union is as private as the worse of the images on its parts.",
        "the paper denies it",
        False,
        _union_private,
    ),
    Claim(
        "Two Views, Table 1, minimum principle of imaging",
        "No way of moving a law into C moves it less far on average, in L1 or in squared L2.",
        "the paper",
        True,
        _least_move(close=True),
        _least_move(close=False),
    ),
    Claim(
        "Two Views, section 3, conditioning and imaging",
        "Conditioning and imaging give one law.",
        "the paper denies it",
        False,
        _spread_out,
    ),
)
