"""Revision that may refuse: postulates that hold for every event, and counterexamples to others."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from congenial.belief import (
    Belief,
    credibility_limited,
    likely,
    revise,
    screened,
)
from congenial.errors import ArgumentError
from papers.claims.postulates import POSTULATES, broken

WORLDS = range(4)
THRESHOLDS = (Fraction(1, 10), Fraction(1, 3), Fraction(1, 2), Fraction(3, 4), Fraction(1))


@st.composite
def hierarchies(draw, within=WORLDS):
    """A belief and its reserve; exactly one of them holds each world possible."""
    ranks = {world: draw(st.integers(0, 2)) for world in within}
    tiers = []
    for rank in sorted(set(ranks.values())):
        weights = {w: draw(st.integers(1, 4)) if ranks.get(w) == rank else 0 for w in WORLDS}
        tiers.append(Belief.from_weights(weights))
    return tiers[0], tuple(tiers[1:])


@given(hierarchies())
def test_full_revision_satisfies_every_postulate(hierarchy):
    prior, reserve = hierarchy
    assert broken(prior, lambda event: revise(prior, event, reserve=reserve)) == {}


@given(st.data(), st.sets(st.sampled_from(WORLDS), min_size=1, max_size=3))
def test_screened_revision_violates_success_only(data, core):
    prior, reserve = data.draw(hierarchies(sorted(core)))
    faults = broken(prior, lambda event: screened(prior, event, core=core, reserve=reserve))
    assert set(faults) == {"success"}
    (refused,) = faults["success"]
    assert not refused & core
    for event in ({0, 1}, {2, 3}):
        after = screened(prior, event, core=core, reserve=reserve)
        assert after.support <= core  # the core is immune
        if event & core:
            assert after.support <= event


@given(hierarchies(), st.sampled_from(THRESHOLDS))
def test_revision_by_likely_inputs_satisfies_relative_success_and_success_monotonicity(
    hierarchy, threshold
):
    prior, reserve = hierarchy
    credible = likely(prior, threshold)
    faults = broken(
        prior,
        lambda event: credibility_limited(prior, event, credible=credible, reserve=reserve),
    )
    assert set(faults) <= {"success", "vacuity", "trichotomy"}


def test_revision_by_likely_inputs_violates_success_vacuity_and_trichotomy():
    prior = Belief({0: Fraction(1, 3), 1: Fraction(1, 3), 2: Fraction(1, 3), 3: 0})
    credible = likely(prior, Fraction(1, 2))

    def rule(event):
        return credibility_limited(prior, event, credible=credible)

    assert broken(prior, rule) == {
        "success": (frozenset({0}),),
        "vacuity": (frozenset({0}),),  # unlikely, yet it contradicts nothing
        "trichotomy": (frozenset({0}), frozenset({1})),  # incredible each, credible together
    }
    assert rule(frozenset({0})) == prior
    assert rule(frozenset({0, 1})) == Belief({0: Fraction(1, 2), 1: Fraction(1, 2)})


def test_arbitrary_credibility_violates_success_monotonicity():
    prior = Belief({0: Fraction(1, 2), 1: Fraction(1, 2), 2: 0})
    faults = broken(
        prior, lambda e: credibility_limited(prior, e, credible=lambda event: event == {0})
    )
    assert faults["success monotonicity"] == (frozenset({0}), frozenset({0, 2}))


@given(hierarchies(), st.sets(st.frozensets(st.sampled_from(WORLDS), min_size=1)))
def test_every_input_is_either_believed_or_ignored(hierarchy, credible):
    prior, reserve = hierarchy
    faults = broken(
        prior,
        lambda e: credibility_limited(prior, e, credible=credible.__contains__, reserve=reserve),
    )
    assert "relative success" not in faults


def test_the_postulates_distinguish_update_from_revision():
    """Imaging satisfies success, and violates the postulates that distinguish revision."""
    prior = Belief({0: Fraction(1, 2), 1: 0, 2: 0, 3: Fraction(1, 2)})

    def rule(event):
        return prior.image(event, lambda w: min(event, key=lambda v: (abs(v - w), v)))

    assert broken(prior, rule) == {
        "vacuity": (frozenset({0, 1}),),  # 3 moves to 1, although 0 was held possible
        "trichotomy": (frozenset({0}), frozenset({1, 2})),  # 1 becomes possible by neither
    }


def test_every_postulate_can_fail():
    prior = Belief({0: Fraction(1, 2), 1: Fraction(1, 2), 2: 0})
    away = {frozenset({0}): Belief({0: 1}), frozenset({0, 1}): prior}
    assert set(broken(prior, lambda e: away.get(e, Belief({2: 1})))) == set(POSTULATES) - {
        "success monotonicity"
    }
    credulous = {frozenset({0}): Belief({0: 1})}
    assert "success monotonicity" in broken(prior, lambda e: credulous.get(e, prior))


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (lambda p: revise(p, {2}), "add a belief to the reserve"),
        (lambda p: screened(p, {2}, core={0, 2}), "condition it on the core first"),
        (lambda p: likely(p, 0), "above 0, at most 1"),
    ],
)
def test_invalid_arguments_are_refused(wrong, told):
    with pytest.raises(ArgumentError, match=told):
        wrong(Belief({0: Fraction(1, 2), 1: Fraction(1, 2), 2: 0}))
