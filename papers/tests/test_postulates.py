"""The postulates of revision: rules that keep them, and rules that break each of them alone."""

from __future__ import annotations

from fractions import Fraction

import pytest

from congenial.belief.worlds import Belief
from papers.claims.postulates import POSTULATES, broken, events

WORLDS = ("a", "b", "c")
PRIOR = Belief({"a": Fraction(1, 2), "b": Fraction(1, 2), "c": Fraction(0)})


def point(*worlds):
    return Belief({w: Fraction(int(w in worlds), len(worlds)) for w in WORLDS})


def conditioned(event):
    """Condition; an event of probability 0 is believed evenly."""
    return point(*(PRIOR.support & event or event))


def test_events_are_all_subsets_but_the_empty_one():
    assert len(set(events(WORLDS))) == 7
    assert [len(e) for e in events(WORLDS)] == sorted(len(e) for e in events(WORLDS))


def test_conditioning_breaks_none():
    assert broken(PRIOR, conditioned) == {}


@pytest.mark.parametrize(
    ("rule", "named"),
    [
        (lambda e: PRIOR, "success"),
        (lambda e: point("a", "b", "c"), "relative success"),
        (lambda e: point(*e), "vacuity"),
        (lambda e: PRIOR if len(e) == 2 else conditioned(e), "success monotonicity"),
        (lambda e: point(*e) if len(e) < 3 else point("a", "c"), "vacuity"),
        (lambda e: point({"ab": "a", "bc": "c"}.get("".join(sorted(e)), "b")), "trichotomy"),
    ],
)
def test_a_rule_that_breaks_a_postulate_is_told(rule, named):
    found = broken(PRIOR, rule)
    assert named in found
    assert set(found) <= set(POSTULATES)
