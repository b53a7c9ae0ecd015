"""Vacuous probabilities: lower and upper ones, conditioning, and dilation, by extreme laws."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

from congenial.belief.vacuous import Vacuous, dilation
from congenial.belief.worlds import Belief

PRIOR = Belief({"x": Fraction(1, 3), "y": Fraction(2, 3)})
OUTPUTS = ("a", "b", "c")


def test_only_certain_and_impossible_events_have_sharp_probabilities():
    nothing = Vacuous(OUTPUTS)
    for event in ({"a"}, {"a", "b"}):
        assert (nothing.lower(event), nothing.upper(event)) == (0, 1)
    assert (nothing.lower(set(OUTPUTS)), nothing.upper(set())) == (1, 0)
    assert nothing.condition({"a", "b"}).worlds == ("a", "b")
    assert nothing.posterior(PRIOR, {"a"}) == PRIOR


def test_extreme_laws_reach_the_bounds_of_the_posterior():
    for same in (True, False):
        found = dilation(PRIOR, OUTPUTS, {"a"}, same=same)
        wanted = {"x": set(), "y": set()}
        for of_x, of_y in product(OUTPUTS, repeat=2):
            if same and of_x != of_y:
                continue
            weight = {
                "x": PRIOR.probability({"x"}) * (of_x == "a"),
                "y": PRIOR.probability({"y"}) * (of_y == "a"),
            }
            total = sum(weight.values())
            if total:
                for world, seen in wanted.items():
                    seen.add(weight[world] / total)
        assert found == {w: (min(seen), max(seen)) for w, seen in wanted.items()}
