"""Unary weights of the noise laws, and the difference of two geometric variables."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from congenial.kernels.numerics import laws


@pytest.mark.parametrize("u", [-7.0, 0.0, 3.0])
def test_weights_are_those_of_the_laws(u):
    weight = laws.log_weight.py_func
    assert weight(laws.LAPLACE, 2.5, u) == -abs(u) / 2.5
    assert weight(laws.GAUSSIAN, 2.5, u) == pytest.approx(
        stats.norm.logpdf(u, 0, 2.5) + math.log(2.5 * math.sqrt(2 * math.pi)), abs=1e-14
    )
    assert weight(laws.FLAT, 2.5, u) == 0.0


@pytest.mark.parametrize("u", [-7.0, 0.0, 2.0, 3.0])
def test_ratios_of_weights_are_those_of_the_laws(u):
    weight, ratio = laws.log_weight.py_func, laws.log_ratio.py_func
    for kind, inverse in ((laws.LAPLACE, 1 / 2.5), (laws.GAUSSIAN, 0.5 / 2.5**2), (laws.FLAT, 0.4)):
        wanted = weight(kind, 2.5, u + 1.0 - 3.0) - weight(kind, 2.5, u - 3.0)
        assert ratio(kind, inverse, 3.0, u) == pytest.approx(wanted, abs=1e-14)


def test_each_value_is_the_difference_of_two_words():
    words = np.random.default_rng(5).integers(0, 2**64, (50, 6), dtype=np.uint64)
    out = np.full((50, 3), 77)
    assert laws.two_sided_geometric(words, np.array([0.3, np.inf, 40.0]), 1.0, out) == 0
    assert (out[:, 1] == 77).all()
    for column, scale in ((0, 0.3), (2, 40.0)):
        steps = [
            [math.floor(-scale * math.log((float(w) + 1.0) * 2.0**-64)) for w in pair]
            for pair in words[:, 2 * column : 2 * column + 2]
        ]
        assert out[:, column].tolist() == [g - h for g, h in steps]


def test_words_that_decide_nothing_are_marked_and_counted():
    boundary = int(math.exp(-0.5) * 2**64)  # between 0 and 1 at a scale of 2
    words = np.array([[0, 5], [boundary, 5], [2**63, 2**64 - 1]], dtype=np.uint64)
    out = np.zeros((3, 1), dtype=np.int64)
    assert laws.two_sided_geometric(words, np.array([2.0]), 1.0, out) == 2
    assert (out[:2, 0] == laws.UNDECIDED).all() and out[2, 0] == 1
    # with much more slack no word decides
    assert laws.two_sided_geometric(words, np.array([2.0]), 2.0**60, out) == 3


def test_the_law_is_discrete_laplace_and_no_wider():
    words = np.random.default_rng(6).integers(0, 2**64, (20_000, 2), dtype=np.uint64)
    out = np.zeros((20_000, 1), dtype=np.int64)
    assert laws.two_sided_geometric(words, np.array([2.0]), 1.0, out) == 0
    values = np.clip(out[:, 0], -8, 8)
    seen = np.bincount(values + 8, minlength=17)

    def p_value(scale):
        at = np.arange(-200, 201)
        p = np.exp(-np.abs(at) / scale)
        binned = np.bincount(np.clip(at, -8, 8) + 8, weights=p / p.sum())
        return stats.chisquare(seen, 20_000 * binned).pvalue

    assert p_value(2.0) > 1e-6
    assert max(p_value(1.4), p_value(2.6)) < 1e-6
