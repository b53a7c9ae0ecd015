"""Finite noise laws, in exact fractions."""

from __future__ import annotations

from fractions import Fraction

import pytest

from congenial.belief.finite_noise import cyclic_geometric, cyclic_mechanism, double_geometric
from congenial.errors import ArgumentError

HALF = Fraction(1, 2)


def test_the_double_geometric_law_falls_by_the_ratio():
    law = double_geometric(HALF, range(-3, 4), centre=1)
    assert sum(law.probability({w}) for w in law.worlds) == 1
    for value in range(1, 3):
        assert law.probability({value + 1}) == HALF * law.probability({value})
    for value in range(-3, 1):
        assert law.probability({value}) == HALF * law.probability({value + 1})


@pytest.mark.parametrize("size", [1, 2, 5, 6])
def test_distances_on_a_circle_are_the_shorter_way_round(size):
    law = cyclic_geometric(HALF, size)
    weights = [HALF ** min(k, size - k) for k in range(size)]
    assert [law.probability({k}) for k in range(size)] == [w / sum(weights) for w in weights]


def test_a_shift_by_one_costs_exactly_one_ratio():
    noise = cyclic_geometric(HALF, 5)
    mechanism = cyclic_mechanism(noise, {"x": (0, 4), "y": (1, 4)}, size=5)
    first, second = mechanism.laws
    ratios = [first.probability({w}) / second.probability({w}) for w in first.worlds]
    assert len(ratios) == 25
    assert (max(ratios), min(ratios)) == (2, HALF)


@pytest.mark.parametrize("ratio", [0, 1, Fraction(3, 2), -1])
def test_a_ratio_out_of_range_is_refused(ratio):
    with pytest.raises(ArgumentError, match="between 0 and 1"):
        double_geometric(ratio, [0])
