"""The kernel of draws stops where words end, and goes on with others."""

from __future__ import annotations

from decimal import Decimal, localcontext

import numpy as np
import pytest

import congenial as cg
from congenial.kernels.network import family_draws
from support.bounded_trees import conditioned, filled
from support.kernel_entries import entry

pytestmark = pytest.mark.kernels


def drawn(sums, words, length):
    """Draw once, with words in pieces of one length; return values, doubts and words read."""
    values, doubts = np.zeros((sums.n + sums.order.size, 1), dtype=np.int64), np.zeros(1)
    state, turned, at = np.zeros(5, dtype=np.int64), np.zeros(1), 0
    tilts = sums.base_tilt, sums.retilt
    tables = sums.families, sums.tables, sums.leaves, sums.binomials, tilts, sums.doubt
    for _ in range(10_000):
        piece = words[at : at + length]
        at += family_draws.draw(sums.order, *tables, state, turned, piece, values, doubts)
        if state[0] == sums.order.size:
            return values, doubts, at
        assert state[2] in (family_draws.CLEAR, family_draws.COUNTED)
    raise AssertionError("the draw does not end")


def test_pieces_of_words_give_the_same_draw():
    tree = cg.Tree.from_parents([-1, 0, 0, 1, 1, 2, 2, *np.repeat([3, 4, 5, 6], 5)])
    x = tree.roll_up(np.random.default_rng(1).poisson(2.0, 20))
    sums = filled(conditioned(tree, 3.0), x)
    words = cg.seeded(5).bits(1 << 14)
    whole = drawn(sums, words, words.size)
    # an attempt takes at most one word for each of five leaves, and one more
    for length in (6, 7, 50):
        again = drawn(sums, words, length)
        assert (again[0] == whole[0]).all()
        assert again[1] == pytest.approx(whole[1])
        assert again[2] == whole[2]


@pytest.mark.parametrize(
    ("probability", "word", "decision"),
    [
        (0.5, 1 << 62, 1),
        (0.5, 3 << 62, 0),
        (0.5, 1 << 63, -1),
        (0.5, (1 << 63) + (1 << 10), -1),
        (0.5, (1 << 63) - (1 << 45), 1),
        (1e-30, 1, -1),
        (1e-30, 1 << 40, 0),
        (family_draws.BELOW_ONE, (1 << 64) - 1, 0),
    ],
)
def test_only_words_that_are_clear_of_a_probability_decide(probability, word, decision):
    decided = entry("network.family_draws._decided")
    assert decided(probability, 2.0**-30 * 1e-9, np.uint64(word)) == decision


def test_integer_weights_of_lifts_are_those_of_the_law_rounded_up():
    source = np.random.default_rng(9)
    with localcontext(prec=50):
        for _ in range(1000):
            inverse = float(10.0 ** source.uniform(-2.0, 0.5))
            tilt = float(np.floor(source.uniform(-2.0, 0.9) * inverse * 2**40) / 2**40)
            widest = int(source.integers(1, 60) if source.random() < 0.97 else 3000)
            powers, shares = np.empty((2, widest + 2))
            sums = np.empty(widest + 2, dtype=np.int64)
            args = inverse, tilt, widest, powers, sums, shares
            unit, top, off = family_draws.cumulate_lifts(*args)
            rate = abs(Decimal(inverse) + Decimal(tilt))
            most = 1 - (-2 * Decimal(inverse)).exp()
            assert top == (inverse + tilt >= 0.0)
            assert sums[widest] < 2**40
            assert off < widest * 2.0**-48
            for h in range(widest + 1):
                assert float((-rate * h).exp()) == pytest.approx(powers[h], rel=off, abs=1e-300)
            weights = np.diff(sums[: widest + 1]).tolist()
            for h, weight in enumerate(weights):
                true = most * (-rate * (h if top else h + 1)).exp() * Decimal(unit)
                assert true <= weight <= true * (1 + Decimal(2.0 * off)) + 1
                assert float(true / weight) == pytest.approx(shares[h], rel=off, abs=1e-300)


def test_a_doubt_far_from_zero_does_not_vanish():
    """Weights by a tilt are exponentials of thousands, of which the largest is divided out."""
    x, slope, decay, center = -250_000, -0.05, 0.02, 700.0
    exponent = slope * x - decay * abs(x - center)
    columns = 0.5, 1e-300, slope, decay, center, exponent + 2.0, 1.0
    doubt = tuple(np.array([column]) for column in columns)
    zero, four = np.zeros(1, dtype=np.int64), np.array([4])
    table = zero, np.array([x]), np.array([1]), four, np.zeros((4, 1))
    guide = np.zeros((1, family_draws.PARTS), dtype=np.int32)
    tables = np.zeros(1, dtype=np.int32), *table, four, four, np.zeros((2, 1)), guide
    found = family_draws.doubt_of(0, x, doubt, tables)
    assert found == pytest.approx((0.5 * np.exp(-2.0) + 1.0) / 4.0, rel=1e-9)


def test_a_guide_finds_the_same_entry_as_a_search_of_the_whole_table():
    found, source = entry("network.family_draws._found"), np.random.default_rng(6)
    for _ in range(300):
        weights = source.dirichlet(np.full(int(source.integers(1, 60)), source.choice([0.05, 1.0])))
        table = (weights * source.choice([2.0**40, 2.0**61])).astype(np.int64) + 1
        place, size = np.zeros(1, dtype=np.int64), np.array([table.size])
        largest, total = np.empty((2, 1), dtype=np.int64)
        guide = np.empty((1, family_draws.PARTS), dtype=np.int32)
        family_draws.cumulate(place, size, table, largest, total, guide)
        near = np.concatenate((table - 1, table, np.arange(family_draws.PARTS) << 58))
        for target in (*near.tolist(), *(cg.seeded(1).bits(50) >> np.uint64(2)).tolist()):
            wanted = int(np.searchsorted(table, target, side="right"))
            assert found(table, 0, table.size, guide, 0, target) == wanted
