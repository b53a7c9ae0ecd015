"""Pairs that an audit leaves out because their tables are too large."""

from __future__ import annotations

import numpy as np
import pytest

import congenial as cg
from congenial.auditing.budget import MOST_WORK, to_compute, to_draw
from congenial.auditing.pairs import chosen_pairs
from congenial.auditing.space import space_of

TREE = cg.Tree.from_parents([-1, 0, 0, 1, 1, 1, 2, 2])
TOTAL = cg.consistent(TREE) & cg.exactly(0)


def conditioned(scale=2.0, invariant=None):
    noise = cg.Additive(cg.DiscreteLaplace(scale), TREE)
    return cg.condition(noise, TOTAL & cg.nonnegative() if invariant is None else invariant)


def pairs_of(mechanism):
    return chosen_pairs(space_of(mechanism), "substitute", cg.seeded(0))


def same(found, wanted):
    return len(found) == len(wanted) and all(a is b for a, b in zip(found, wanted, strict=True))


def test_all_pairs_are_compared_where_that_takes_little():
    made = conditioned()
    pairs = pairs_of(made)
    computed = to_compute(made, pairs)
    assert same(computed.pairs, pairs)
    assert computed.left_out == 0
    assert computed.text == ""
    assert 0.0 < MOST_WORK - computed.work < 1e-3 * MOST_WORK
    assert same(to_draw(made, pairs, 1000, computed.work).pairs, pairs)


def test_pairs_are_taken_in_turn_while_work_is_left():
    made = conditioned()
    pairs = pairs_of(made)
    prices = [made.work_at(pair[0])[0] for pair in pairs]
    assert len(set(prices)) > 1
    most = 0.4 * sum(prices)
    chosen = to_compute(made, pairs, most)
    left, wanted = most, []
    for pair, price in zip(pairs, prices, strict=True):
        if price <= left:
            left -= price
            wanted.append(pair)
    assert same(chosen.pairs, wanted)
    assert 0 < len(wanted) < len(pairs)
    assert chosen.work == pytest.approx(left)
    assert chosen.left_out == len(pairs) - len(wanted)
    assert f"{chosen.left_out} further pairs of datasets were not compared" in chosen.text


def test_one_pair_is_compared_however_little_work_is_left():
    made = conditioned()
    pairs = pairs_of(made)
    chosen = to_compute(made, pairs, 0.0)
    prices = [made.work_at(pair[0])[0] for pair in pairs]
    assert same(chosen.pairs, [pairs[int(np.argmin(prices))]])
    assert len(to_draw(made, pairs, 100, 0.0).pairs) == 1
    two = to_compute(made, pairs[:2], 0.0)
    assert "1 further pair of datasets was not compared" in two.text


def test_more_draws_take_more_work():
    made = conditioned()
    pairs = pairs_of(made)
    few, many = (to_draw(made, pairs, draws, MOST_WORK).work for draws in (100, 1000))
    drawing = sum(made.work_at(pair[0])[1] for pair in pairs)
    assert few - many == pytest.approx(2 * 900 * 4.0 * drawing)


def test_laws_without_bounds_share_one_table_so_no_pair_is_left_out():
    free = conditioned(invariant=TOTAL)
    pairs = pairs_of(free)
    assert same(to_compute(free, pairs, 0.0).pairs, pairs)
    noise = free.mechanism  # which has no tables at all
    assert same(to_draw(noise, pairs, 1000, 0.0).pairs, pairs)


def test_an_audit_says_how_many_pairs_it_leaves_out(monkeypatch):
    made = conditioned()

    def audit(**more):
        return cg.audit(made, neighbours="substitute", draws=400, confidence=1.0 - 1e-6, **more)

    whole = {finding.check: finding for finding in audit().findings}
    assert not any("not compared" in finding.text for finding in whole.values())
    monkeypatch.setattr("congenial.auditing.trial.MOST_WORK", 0.0)
    found = audit()
    assert found.passed
    for finding in found.findings:
        if finding.check in ("loss, computed", "loss, from draws"):
            assert finding.pairs == 1
        if finding.check == "loss, computed":
            left_out = whole[finding.check].pairs - 1
            assert f"{left_out} further pairs of datasets were not compared" in finding.text
            assert finding.found <= whole[finding.check].found
    given = [([4, 2, 2, 1, 1, 0, 1, 1], [4, 3, 1, 2, 1, 0, 1, 0])] * 2
    for finding in audit(pairs=given).findings:  # asked for, so none is left out
        assert "not compared" not in finding.text
