"""Draws by a cut set have exactly the law, also where windows are far too narrow."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pytest
from scipy.stats import combine_pvalues

import congenial as cg
from congenial.randomness import given
from congenial.sum_network.cutset import cut_draws, outside
from congenial.sum_network.cutset.cut_draws import attempt, mass, prepare, sample, share
from support.cut_cases import log_weights, narrowly_weighed, open_case
from support.goodness_of_fit import FAILS, p_value
from support.seeds import for_each_seed

pytestmark = pytest.mark.kernels


def fits(draws, case, factor=1.0):
    """p-value of draws under the weights of all solutions, at scales multiplied by a factor."""
    log = log_weights(case.scaled(factor), case.solutions)
    p = np.exp(log - np.logaddexp.reduce(log)) * draws.shape[0]
    places = {row.tobytes(): i for i, row in enumerate(case.solutions)}
    at = np.array([places.get(row.tobytes(), -1) for row in draws])
    observed = np.bincount(at[at >= 0], minlength=p.size).astype(float)
    large = p >= 10.0
    rest = observed[~large].sum() + (at < 0).sum()
    kept, expected = np.append(observed[large], rest), np.append(p[large], p[~large].sum())
    if expected[-1] < 10.0:
        kept[-2], expected[-2] = kept[-2] + kept[-1], expected[-2] + expected[-1]
        kept, expected = kept[:-1], expected[:-1]
    return p_value(kept, expected) if expected.size > 1 else 1.0


def shares_of_attempts(of, rows, seed, monkeypatch):
    """Attempt draws, each decided in decimals; return their values and acceptances."""
    seen = []

    def noted(of, values, p):
        found = share(of, values, p)
        seen.append((values.copy(), p, float(found(0)[0])))
        return found

    with monkeypatch.context() as patch:
        patch.setattr(cut_draws, "share", noted)
        every = cut_draws.CutDraws(of.found, of.ends, of.log_top, of.unit, of.raised, doubt=1.0)
        attempt(every, rows, cg.seeded(seed))
    return seen


@pytest.mark.parametrize("tally", [False, True])
def test_each_acceptance_is_a_probability_within_the_stated_doubt(tally, monkeypatch):
    for seed in range(1500):
        case = open_case(seed)
        of = prepare(narrowly_weighed(case, 40.0, tally=tally))
        choices = of.found.branches.choices + 1
        for values, p, found in shares_of_attempts(of, 3, seed, monkeypatch):
            assert not sum_of_rows(case, values).any()
            # no choice has an integer weight below p 2^62
            doubt = of.doubt + choices / (float(p) * 2.0**62)
            assert 1.0 - 2.0 * doubt <= found <= 1.0


def sum_of_rows(case, values):
    return np.array([sum(a * values[v] for v, a in row.items()) for row in case.system.rows])


def test_the_probability_of_an_attempt_is_the_weight_over_the_mass():
    """A draw is chosen and accepted with its weight over one constant, whatever the windows are."""
    for seed in range(30):
        case = open_case(seed)
        of = prepare(narrowly_weighed(case, 3.0 + seed % 3))
        low, high = mass(of)(0)
        total = np.exp(np.logaddexp.reduce(log_weights(case.unary, case.solutions)))
        rows = 400
        accepted, drawn = attempt(of, rows, cg.seeded(seed))
        assert drawn.shape[0] == accepted.sum()
        expected = min(total / float(low), 1.0)
        error = 6.0 * np.sqrt(expected * (1.0 - expected) / rows) + 1e-3
        assert abs(accepted.mean() - expected) < error
        assert low < high < low * Decimal("1.0001")


@pytest.mark.parametrize("tally", [False, True])
def test_draws_follow_the_law_where_much_lies_beyond_windows(tally):
    beyond, found = 0.0, {1.0: [], 0.7: [], 1.3: []}
    for seed in range(8):
        case = open_case(seed)
        of = prepare(narrowly_weighed(case, 3.0 + 0.5 * (seed % 4), tally=tally))
        beyond = max(beyond, of.weight(of.ends.size - 1) / 2**62)
        draws = sample(of, 800, cg.seeded(seed))
        for factor, each in found.items():
            each.append(max(fits(draws, case, factor), 1e-300))
    assert beyond > 0.5
    for factor, each in found.items():
        assert (combine_pvalues(each).pvalue > FAILS) == (factor == 1.0)


@for_each_seed(40)
def test_what_lies_beyond_is_what_windows_do_not_lead_to(seed):
    case = open_case(seed)
    found = narrowly_weighed(case, 2.0, tally=seed % 2 == 1)
    box, branches = found.box, found.branches
    inside = np.array([cut_draws._inside(found, u) for u in case.solutions])
    events = [outside._event(box, *each) for each in outside.excluded(box, branches)]
    for u, is_inside in zip(case.solutions[:400], inside, strict=False):
        assert is_inside or any(event.holds(box, u) for event in events)
    within = np.logaddexp.reduce(log_weights(case.unary, case.solutions[inside]))
    assert found.log_total == pytest.approx(within, rel=1e-9, abs=1e-9)
    every = np.logaddexp.reduce(log_weights(case.unary, case.solutions))
    more = np.exp(every) - np.exp(within)
    assert more <= np.exp(outside.log_bound(box, len(events)))


def test_a_rare_assignment_is_accepted_with_its_own_probability():
    """Its integer weight is rounded up by much, so a word above its share refuses it."""
    tried = 0
    for seed in range(30):
        case = open_case(seed)
        case = replace(case, unary=case.scaled(0.4))
        of = prepare(narrowly_weighed(case, 90.0))
        weights = np.diff(of.ends, prepend=0)[:-1]
        exact = np.exp(of.found.log_weight - of.log_top) * of.unit
        for a in np.flatnonzero((weights > 0) & (exact < 0.2)).tolist():
            words = np.zeros(2 + of.found.branches.choices, dtype=np.uint64)
            words[:2] = 4 * (int(of.ends[a]) - 1), 2**63
            words.setflags(write=False)
            accepted, _ = attempt(of, 1, given(words))
            assert not accepted[0]
            tried += 1
    assert tried > 100


@pytest.mark.parametrize("tally", [False, True])
def test_values_are_reached_as_often_as_their_stated_probability(tally, monkeypatch):
    """Before acceptance: the fraction that a repeated draw finds is that of the words."""
    rows, sizes, missed = 3000, [], []
    for seed in range(6):
        of = prepare(narrowly_weighed(open_case(seed), 30.0, tally=tally))
        stated, counts = {}, Counter()
        for values, p, _ in shares_of_attempts(of, rows, seed, monkeypatch):
            assert stated.setdefault(values.tobytes(), p) == p
            counts[values.tobytes()] += 1
        often = [key for key, p in stated.items() if p * rows >= 10]
        observed = [counts[key] for key in often]
        expected = [float(stated[key] * rows) for key in often]
        sizes.append(len(often))
        observed.append(rows - sum(observed))
        expected.append(rows - sum(expected))
        if expected[-1] < 10.0:
            observed[-2:], expected[-2:] = [sum(observed[-2:])], [sum(expected[-2:])]
        assert p_value(np.array(observed), np.array(expected)) > FAILS
        wrong = np.array(expected) * np.where(np.arange(len(expected)) % 2, 0.7, 1.3)
        wrong *= rows / wrong.sum()
        missed.append(max(p_value(np.array(observed), wrong), 1e-300))
    assert max(sizes) > 10
    assert combine_pvalues(missed).pvalue < FAILS
