"""Draws beyond windows, and acceptances in decimals: their law, and equal decisions."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

import congenial as cg
from congenial.kernels.network import descend
from congenial.sum_network import draws, exact
from congenial.sum_network.exact import envelopes, rare_draws
from support.narrow_windows import narrow_windows
from support.random_networks import conditioned_at_random

pytestmark = pytest.mark.kernels

LEAST = 1e-6
ROWS = 1500


@pytest.fixture
def narrow(monkeypatch):
    """Make windows so narrow that many draws leave them."""
    narrow_windows(monkeypatch)


def drawn(released, x, seed, rows=ROWS):
    """Values of all nodes, drawn from envelopes."""
    compiled = released._compiled(None if released.data_free else x)
    found = exact.sample(envelopes.fill_envelopes(compiled), rows, cg.seeded(seed), first=x.size)
    return found * released.forest.orientation[: x.size] + x


def least_p_value(values, released, x):
    """The least p-value of all nodes' values under their laws."""
    found = [1.0]
    for v in range(x.size):
        law, p = released.marginal(v, x)
        at = np.clip(values[:, v] - law[0] + 1, 0, law.size + 1)
        seen = np.bincount(at, minlength=law.size + 2)[1:-1]
        expected = p * len(values)
        kept = expected > 8
        seen, expected = (np.append(each[kept], each[~kept].sum()) for each in (seen, expected))
        seen[-1] += len(values) - seen.sum()
        if expected[-1] < 8:
            seen[-2] += seen[-1]
            expected[-2] += expected[-1]
            seen, expected = seen[:-1], expected[:-1]
        if seen.size > 1:
            statistic = ((seen - expected) ** 2 / expected).sum()
            found.append(stats.chi2.sf(statistic, seen.size - 1))
    return min(found)


@pytest.mark.parametrize("seed", range(24))
def test_draws_beyond_windows_have_their_law(seed, narrow):
    released, x = conditioned_at_random(seed)
    values = drawn(released, x, seed)
    assert least_p_value(values, released, x) > LEAST / x.size
    for row in values[:50]:
        assert released.resolved.satisfied_by(row[None], x).all()


def test_a_quarter_of_these_draws_leave_their_windows(narrow, monkeypatch):
    seen, choose = Counter(), rare_draws.choose

    def counted(*of):
        found = choose(*of)
        seen[found is None] += 1
        return found

    monkeypatch.setattr(rare_draws, "choose", counted)
    for seed in range(24):
        drawn(*conditioned_at_random(seed), seed, 100)
    assert seen[False] > 600


@pytest.mark.parametrize("share", [0.7, 1.3])
def test_the_test_of_the_law_refuses_other_scales(share, narrow):
    released, x = conditioned_at_random(7)
    other, _ = conditioned_at_random(7, scale=share)
    assert least_p_value(drawn(other, x, 1, 6000), released, x) < LEAST


def of_a_sum(scale=1.0, members=4):
    """Envelopes of a pinned total of members that are not composed: their scales differ."""
    tree = cg.Tree.from_parents([-1, *[0] * members])
    scales = scale * np.linspace(1.0, 2.0, members + 1)
    need = cg.consistent(tree) & cg.exactly(0)
    return cg.condition(cg.Additive(cg.DiscreteLaplace(scales), tree), need)


def test_choices_beyond_windows_have_the_weights_of_envelopes(narrow):
    of = envelopes.fill_envelopes(of_a_sum()._compiled(None))
    c = int(np.flatnonzero(of.network.op == descend.SPLIT)[0])
    c, s = int(of.network.cls[c]), 1
    rng, seen, tries = cg.seeded(5), Counter(), 4000
    inside = rare_draws._inside(of, c, s)
    words = np.random.default_rng(2).integers(inside << 2, 1 << 64, tries, dtype=np.uint64)
    for word in words.tolist():
        found = rare_draws.choose(of, descend.SPLIT, c, s, word, rng)
        seen[None if found is None else found.value] += 1
    with localcontext(prec=40):
        for value, count in seen.items():
            if value is None or count < 30:
                continue
            p = rare_draws._envelopes(of, c, s, value) / (1 - Decimal(inside) / (1 << 62))
            assert abs(count - tries * float(p)) < 5.5 * np.sqrt(tries * float(p))
    assert len(seen) > 5


def test_a_word_inside_the_row_is_refused():
    of = envelopes.fill_envelopes(of_a_sum()._compiled(None))
    c = int(of.network.cls[np.flatnonzero(of.network.op == descend.SPLIT)[0]])
    with pytest.raises(AssertionError, match="row ends before the word"):
        rare_draws.choose(of, descend.SPLIT, c, 0, 0, cg.seeded(1))


def test_a_chance_is_that_of_a_geometric_series():
    found = draws.Chosen(7, Fraction(1, 8), Fraction(1, 2), 3)
    assert rare_draws.chance(found) == Decimal(1) / 8 / 2 / 8
    assert rare_draws.chance(replace(found, ratio=Fraction(0))) == Decimal("0.125")


def test_bounds_beyond_all_windows_are_obeyed(narrow):
    # a lower bound so far away that tables leave it out
    tree = cg.Tree.from_parents([-1, 0, 0, 0])
    x = tree.roll_up([400, 3, 5])
    need = cg.consistent(tree) & cg.nonnegative() & cg.exactly(0)
    released = cg.condition(cg.Additive(cg.DiscreteLaplace(1.0), tree), need)
    values = drawn(released, np.asarray(x), 3)
    assert values.min() >= 0
    assert least_p_value(values, released, np.asarray(x)) > LEAST
