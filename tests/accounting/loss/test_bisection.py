"""Bisection ends at adjacent doubles on both sides of the change."""

from __future__ import annotations

import math

import pytest

from congenial.accounting.loss.bisection import bisected


@pytest.mark.parametrize("edge", [1e-300, 0.1, 1.0, math.pi, 1e12])
def test_the_two_ends_are_adjacent_and_enclose_the_edge(edge):
    low, high = bisected(lambda x: x <= edge, 0.0, 4.0 * edge)
    assert (low, high) == (edge, math.nextafter(edge, math.inf))


def test_ends_stay_where_the_predicate_never_changes():
    assert bisected(lambda _: False, 1.0, 2.0) == (1.0, math.nextafter(1.0, 2.0))
    assert bisected(lambda _: True, 1.0, 2.0) == (math.nextafter(2.0, 1.0), 2.0)
