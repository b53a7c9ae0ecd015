"""Proposals beyond windows: their probabilities are what is stated, and high enough."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import congenial as cg
from congenial.sum_network.cutset import outside
from support.cut_cases import log_weights, narrowly_weighed, open_case
from support.goodness_of_fit import FAILS, p_value
from support.seeds import for_each_seed

pytestmark = pytest.mark.kernels


@for_each_seed(60)
def test_a_proposal_is_at_least_as_likely_as_its_weight_over_the_bound(seed):
    case = open_case(seed)
    found = narrowly_weighed(case, 4.0)
    box, branches = found.box, found.branches
    log_bound = outside.log_bound(box, len(outside.excluded(box, branches)))
    for trial in range(40):
        made = outside.propose(box, branches, found.rows, cg.seeded(1000 * seed + trial))
        if made is None:
            continue
        values, p = made
        (log,) = log_weights(case.unary, values[None, :])
        assert log - log_bound <= np.log(float(p)) + 1e-9
        assert not any(sum(a * values[v] for v, a in row.items()) for row in found.rows)
        assert ((case.unary.lo <= values) & (values <= case.unary.hi)).all()


@pytest.mark.parametrize("losses", [False, True])
def test_values_are_drawn_with_the_stated_probabilities(losses):
    """Also beyond the ends of the table, which are near here."""
    u = np.arange(-3.0, 4.0)
    log = -np.abs(u) / 1.5
    law = outside.BoundedLaw(u, log - np.log(np.exp(log).sum()), (True, True), 0.0)
    event = outside._Event({0: 1}, losses, 2.0, 0.4 if losses else 0.2)
    made = outside._integers(law, event.tilted(law, 1))
    drawn = list(made.draw(20_000, cg.seeded(5)))
    chance = dict(drawn)
    assert all(isinstance(p, Fraction) for p in chance.values())
    values, counts = np.unique([value for value, _ in drawn], return_counts=True)
    expected = np.array([float(chance[v]) * len(drawn) for v in values.tolist()])
    large = expected >= 10.0
    observed = np.append(counts[large], counts[~large].sum()).astype(float)
    rest = len(drawn) - expected[large].sum()
    assert p_value(observed, np.append(expected[large], rest)) > FAILS
    assert values.min() < -3
    assert values.max() > 3
    # above the tilted weights, in one unit for all
    tilt = event.tilted(law, 1)
    unit = float(chance[0]) / np.exp(tilt[3])
    for v in range(-3, 4):
        assert float(chance[v]) == pytest.approx(unit * np.exp(tilt[v + 3]), rel=1e-9)
    for v, p in chance.items():
        if abs(v) > 3:
            own = -abs(v) / 1.5 * (0.6 if losses else 1.0) + (0.0 if losses else 0.2 * v)
            at_three = -2.0 * (0.6 if losses else 1.0) + (0.0 if losses else 0.6 * np.sign(v))
            edge = unit * np.exp(tilt[6 if v > 0 else 0])
            assert float(p) >= edge * np.exp(own - at_three) * (1.0 - 1e-9)


def test_more_events_make_a_larger_bound():
    box = narrowly_weighed(open_case(1), 4.0).box
    assert outside.log_bound(box, 20) == pytest.approx(outside.log_bound(box, 10) + np.log(2.0))
    assert outside.log_bound(box, 0) == -np.inf


@for_each_seed(40)
def test_values_within_all_windows_are_recognised(seed):
    case = open_case(seed)
    found = narrowly_weighed(case, 60.0)
    near = case.solutions[np.abs(case.solutions).max(axis=1) <= 2]
    assert all(outside.within_windows(found.branches, u) for u in near)
    narrow = narrowly_weighed(case, 1.0).branches
    kept = [u for u in case.solutions[:300] if outside.within_windows(narrow, u)]
    assert all(outside.within_windows(found.branches, u) for u in kept)
