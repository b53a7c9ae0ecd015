"""Uniform numbers are compared with probabilities bit by bit, until they are decided."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

import congenial as cg
from congenial.sum_network.exact import decisions as exact

RATIOS = ((1, 3), (2, 7), (1, 2), (1, 1), (0, 1), (3, 2**70))


@pytest.mark.parametrize("p", [Fraction(*ratio) for ratio in RATIOS])
def test_a_word_is_below_a_probability_exactly_where_it_is(p):
    def probability(level):
        low = Decimal(p.numerator) / Decimal(p.denominator)
        off = Decimal(10) ** -(18 + 20 * level)
        return max(low - off, Decimal(0)), low + off

    source, boundary = cg.seeded(3), math.floor(p * 2**64)
    for word in {0, 1, boundary - 1, boundary + 1, 2**63, 2**64 - 1}:
        if 0 <= word < 2**64 and word != boundary:
            assert exact.is_below(word, probability, source) == (word < p * 2**64)


def test_a_word_at_the_boundary_takes_further_bits():
    # the first 64 bits of 1/3 are 0101...; the next word decides
    levels = []

    def third(level):
        levels.append(level)
        off = Decimal(10) ** -(25 + 20 * level)
        return Decimal(1) / 3 - off, Decimal(1) / 3 + off

    at = 2**64 // 3
    low, high = (np.array([word], dtype=np.uint64) for word in (2**62, 2**63))
    assert exact.is_below(at, third, cg.randomness.given(low))
    assert not exact.is_below(at, third, cg.randomness.given(high))
    assert levels == [0, 1, 0, 1]


def test_products_enclose_products():
    def third(level):
        with exact.precision(level):
            return exact.around(Decimal(1) / 3, level)

    for level in range(3):
        low, high = exact.product([third, third])(level)
        with exact.precision(level + 2):
            ninth = Decimal(1) / 9
            assert low <= ninth <= high
            assert high - low < Decimal(10) ** -(38 + 20 * level)
