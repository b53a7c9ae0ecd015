"""The kernel of draws stops where words end, and goes on with others."""

from __future__ import annotations

import numpy as np
import pytest

import congenial as cg
from congenial.kernels.network import family_draws
from support.bounded_trees import conditioned, filled

pytestmark = pytest.mark.kernels


def drawn(sums, words, length):
    """Draw once, with words in pieces of one length; return values, doubts and words read."""
    values, doubts = np.zeros((sums.n + sums.order.size, 1), dtype=np.int64), np.zeros(1)
    state, at = np.zeros(4, dtype=np.int64), 0
    tilts = sums.base_tilt, sums.retilt
    of_all = sums.families, sums.tables, sums.leaves, sums.binomials, tilts, sums.doubt
    for _ in range(10_000):
        piece = words[at : at + length]
        at += family_draws.draw(sums.order, *of_all, state, piece, values, doubts)
        if state[0] == sums.order.size:
            return values, doubts, at
        state[2] = 2 if state[2] == 1 else state[2]
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


def test_a_doubt_far_from_zero_does_not_vanish():
    """Weights by a tilt are exponentials of thousands, of which the largest is divided out."""
    x, slope, decay = -250_000, -0.05, 0.02
    exponent = slope * x - decay * abs(x)
    doubt = tuple(np.array([column]) for column in (0.5, slope, decay, exponent + 2.0, 1.0))
    tables = np.array([0]), np.array([x]), np.array([1]), np.array([4])
    found = family_draws.doubt_of(0, x, doubt, tables)
    assert found == pytest.approx(0.5 * np.exp(-2.0) / 4.0, rel=1e-9)
