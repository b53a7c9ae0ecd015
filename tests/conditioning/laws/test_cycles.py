"""What both ways to draw sums with cycles share: their law is not that of a forest's tables."""

from __future__ import annotations

import numpy as np
import pytest

import congenial as cg
from congenial.conditioning.laws.closing_sampler import ClosingConditioned
from congenial.conditioning.laws.cutset_sampler import CutConditioned
from congenial.errors import UnsupportedError
from congenial.inference import error_margin_of_sum, error_margins, simultaneous_error_margins
from support.sum_networks import margins, table_case

X = np.array([3, 1, 4, 1, 5, 9, 2, 6, 5])


def conditioned(scale, x=X):
    sums = margins(3, 3)
    return cg.condition(cg.Additive(cg.DiscreteLaplace(scale), 9), cg.linear(sums, sums @ x))


BOTH = {"cut set": (0.6, CutConditioned), "rejection": (2.0, ClosingConditioned)}


@pytest.mark.parametrize("name", BOTH)
def test_intervals_are_those_of_the_law_of_a_released_value(name):
    scale, kind = BOTH[name]
    made = conditioned(scale)
    assert isinstance(made, kind)
    # without the sums that the cut set or the closers settle, intervals would be wider
    every = list(made.marginals(range(9), X))
    for node, (values, probabilities) in enumerate(every):
        np.testing.assert_array_equal(made.marginal(node, X)[1], probabilities)
        by_size = np.bincount(np.abs(values - X[node]), weights=probabilities)
        reach = int(np.searchsorted(np.cumsum(by_size), 0.9))
        assert made.interval(node, 0.1) == (-reach, reach)


def test_an_interval_of_a_cut_set_is_that_of_enumeration():
    case = table_case((3, 3), 0.7, [1, 2, 0, 0, 3, 1, 2, 2, 1])
    made, law = case.condition(), case.law()
    for node in range(9):
        sizes = law.states[:, node] - case.x[node]
        by_size = np.bincount(np.abs(sizes), weights=law.probabilities)
        reach = int(np.searchsorted(np.cumsum(by_size), 0.999))
        assert made.interval(node, 0.001) == (-reach, reach)


@pytest.mark.parametrize("name", BOTH)
def test_tables_of_the_forest_alone_are_never_filled(name):
    made = conditioned(BOTH[name][0])
    for question in (lambda: made.whole_tables, lambda: made.weighed_envelopes(X)):
        with pytest.raises(AssertionError, match="another law"):
            question()


@pytest.mark.parametrize("name", BOTH)
def test_margins_are_simulated_and_cover_as_often_as_stated(name):
    zeros = np.zeros(9, dtype=np.int64)
    made = conditioned(BOTH[name][0], zeros)
    given = {"size": 2_999, "rng": cg.seeded(1)}
    own, together = error_margins(made, 0.1, **given), simultaneous_error_margins(made, **given)
    of_sum = error_margin_of_sum(made, [0, 4], 0.1, **given)
    errors = np.abs(made.sample(zeros, 20_000, cg.seeded(2)))
    five = 5.0 * np.sqrt(0.09 / 2_999)
    assert ((errors <= own).mean(axis=0) > 0.9 - five).all()
    assert (errors <= together).all(axis=1).mean() > 0.9 - five
    assert (
        np.abs(made.sample(zeros, 20_000, cg.seeded(3))[:, [0, 4]].sum(axis=1)) <= of_sum
    ).mean() > 0.9 - five
    # margins that are one less would not do
    wide = own > 0
    assert ((errors <= own - 1).mean(axis=0) < 0.9 + five)[wide].all()


def test_margins_of_other_totals_than_zero_are_refused():
    with pytest.raises(UnsupportedError, match="all counts 0"):
        error_margins(conditioned(2.0))
