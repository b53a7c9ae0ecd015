"""Beliefs on finite worlds: arithmetic, revision and update, distances, refusals."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from congenial.belief import (
    Belief,
    Vacuous,
    kullback_leibler,
    mixture,
    total_variation,
)
from congenial.belief.vacuous import dilation
from congenial.errors import ArgumentError

BOX = Belief({"both": 0, "apple": Fraction(7, 10), "banana": Fraction(3, 10), "none": 0})
NO_APPLE = {"banana", "none"}
APPLE_GONE = {"both": "banana", "apple": "none", "banana": "banana", "none": "none"}


@st.composite
def beliefs(draw, size=4):
    weights = draw(st.lists(st.integers(0, 5), min_size=size, max_size=size).filter(any))
    return Belief.from_weights(dict(enumerate(weights)))


def test_the_apple_example_gives_the_printed_revision_and_update():
    """Two Views, Example 2.3."""
    found = BOX.condition(NO_APPLE)
    assert [found[w] for w in BOX.worlds] == [0, 0, 1, 0]
    taken = BOX.image(NO_APPLE, APPLE_GONE)
    assert [taken[w] for w in BOX.worlds] == [0, 0, Fraction(3, 10), Fraction(7, 10)]


def test_update_can_change_probabilities_zero_and_one():
    taken = BOX.image(NO_APPLE, APPLE_GONE)
    assert BOX["none"] == 0 < taken["none"]
    sure = {"apple", "banana"}
    assert BOX.probability(sure) == 1 > taken.probability(sure)


@given(beliefs(), st.sets(st.integers(0, 3), min_size=1))
def test_revision_keeps_probabilities_zero_and_one(belief, event):
    if belief.probability(event):
        after = belief.condition(event)
        assert after.support <= belief.support
        assert after.probability(belief.support) == 1


def test_fractions_stay_fractions_and_one_float_makes_floats():
    assert BOX.exact
    assert all(isinstance(p, Fraction) for p in BOX.condition(NO_APPLE).probabilities)
    assert Belief({"a": 1}).probabilities == (Fraction(1),)
    assert isinstance(Belief({"a": np.int64(1)}).probabilities[0].numerator, int)
    loose = Belief({"a": 0.5, "b": Fraction(1, 2)})
    assert not loose.exact
    assert all(isinstance(p, float) for p in loose.condition({"a"}).probabilities)
    thirds = Belief({"a": 1 / 3, "b": 1 / 3, "c": 1 / 3})
    assert thirds.probability({"a", "b"}) == pytest.approx(2 / 3)


def test_equality_is_of_laws():
    assert Belief({"a": 1, "b": 0}) == Belief({"a": Fraction(1)})
    assert hash(Belief({"a": 1, "b": 0})) == hash(Belief({"a": Fraction(1)}))
    assert Belief({"a": Fraction(1, 2), "b": Fraction(1, 2)}) == Belief({"b": 0.5, "a": 0.5})
    assert Belief({"a": Fraction(1, 2), "b": Fraction(1, 2)}) != Belief({"a": 1})
    assert BOX != "box"
    assert BOX["no such world"] == 0


def test_events_are_sets_or_tests():
    die = Belief.from_weights(dict.fromkeys(range(1, 7), 1))
    assert die.probability(lambda x: x % 2 == 0) == die.probability({2, 4, 6}) == Fraction(1, 2)
    assert die.condition(lambda x: x > 4)[5] == Fraction(1, 2)
    assert die.then(lambda x: x % 3).probabilities == (Fraction(1, 3),) * 3
    assert die.image(lambda x: x <= 2, lambda x: min(x, 2))[2] == Fraction(5, 6)


def test_an_update_may_lead_to_worlds_that_the_belief_does_not_name():
    coin = Belief({"heads": Fraction(1, 2), "tails": Fraction(1, 2)})
    edge = coin.image({"edge"}, {"heads": "edge", "tails": "edge"})
    assert edge == Belief({"edge": 1})
    assert edge.worlds == ("heads", "tails", "edge")


def test_distances():
    p, q = (
        Belief({"a": Fraction(1, 2), "b": Fraction(1, 2)}),
        Belief({"a": Fraction(1, 4), "b": Fraction(3, 4)}),
    )
    assert total_variation(p, q) == Fraction(1, 4)
    assert kullback_leibler(p, q) == pytest.approx(0.5 * math.log(2) + 0.5 * math.log(2 / 3))
    assert kullback_leibler(p, p) == 0
    assert kullback_leibler(p, Belief({"a": 1})) == math.inf
    assert kullback_leibler(Belief({"a": 1}), p) == pytest.approx(math.log(2))
    assert mixture([p, q], [Fraction(1, 2), Fraction(1, 2)])["a"] == Fraction(3, 8)


@given(beliefs(), beliefs())
def test_total_variation_is_the_largest_difference_of_an_event(p, q):
    worst = max(
        p.probability({w for w in range(4) if mask >> w & 1})
        - q.probability({w for w in range(4) if mask >> w & 1})
        for mask in range(16)
    )
    assert total_variation(p, q) == worst


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (lambda: Belief({}), "name at least one"),
        (lambda: Belief({"a": Fraction(1, 2)}), "add up to 1/2"),
        (lambda: Belief({"a": 0.5, "b": 0.51}), "add up to 1.01"),
        (lambda: Belief({"a": 2, "b": -1}), "of 'b' is -1"),
        (lambda: Belief({"a": math.nan}), "of 'a' is nan"),
        (lambda: Belief({"a": "1"}), "of 'a' is '1'"),
        (lambda: Belief.from_weights({"a": 0}), "all weights are 0"),
        (lambda: BOX.condition({"none"}), "use image, or revise with a reserve"),
        (lambda: BOX.probability({"pear"}), "'pear', which is not one of the 4 worlds"),
        (lambda: BOX.image({"none"}, APPLE_GONE), "'banana', which is not in the event"),
        (lambda: BOX.image(NO_APPLE, lambda _: "none"), "closest moves it to 'none'"),
        (lambda: mixture([BOX], [Fraction(1, 2), Fraction(1, 2)]), "1 beliefs and 2 weights"),
        (lambda: mixture([BOX, BOX], [1, 1]), "add up to 2"),
        (lambda: Vacuous(()), "0 worlds are 0 different ones"),
        (lambda: Vacuous(("a", "a")), "2 worlds are 1 different ones"),
        (lambda: Vacuous(("a",)).condition(()), "the event is empty"),
        (lambda: Vacuous(("a",)).lower({"b"}), "'b', which is not one of the 1 worlds"),
    ],
)
def test_invalid_arguments_are_refused(wrong, told):
    with pytest.raises(ArgumentError, match=told):
        wrong()


def test_the_vacuous_belief_has_trivial_bounds():
    """Gong and Meng (2020), Definition 1.4 and equation 5.2."""
    nothing = Vacuous(("a", "b", "c"))
    for event in ((), ("a",), ("a", "b"), ("a", "b", "c")):
        other = set(nothing.worlds) - set(event)
        assert nothing.upper(event) == 1 - nothing.lower(other)
        assert nothing.lower(event) == (len(event) == 3)
        assert nothing.upper(event) == (len(event) > 0)
    assert nothing.upper(lambda world: world == "a") == 1
    kept = nothing.condition({"a", "b"})
    assert kept == Vacuous(("a", "b"))
    assert (kept.lower({"a"}), kept.upper({"a"})) == (0, 1)


@given(beliefs(size=3), st.sets(st.sampled_from("ab"), min_size=1))
def test_a_suppressed_release_leaves_the_prior(prior, event):
    """Gong and Meng (2020), equation 1.7: by Dempster's rule, and under every constant law."""
    assert Vacuous(("a", "b")).posterior(prior, event) == prior
    for world, bounds in dilation(prior, ("a", "b"), event, same=True).items():
        assert bounds == (prior[world], prior[world])


def test_laws_that_may_depend_on_the_data_dilate_the_prior():
    """Not all rules agree with equation 1.7: generalised Bayes gives the vacuous posterior."""
    prior = Belief({0: Fraction(9, 10), 1: Fraction(1, 10)})
    assert dilation(prior, ("a", "b"), {"a"}, same=False) == {0: (0, 1), 1: (0, 1)}
