"""The top with messages: moments of cut variables, and the law that stands for the rest."""

from __future__ import annotations

import numpy as np
import pytest

import congenial as cg
from congenial.sum_network import of_tree, share_noise
from congenial.sum_network.joined.top_network import Top
from congenial.sum_network.weights import PartMessage, Unary

TOP = cg.Tree.from_parents([-1, 0, 0, 0])
CUT = np.array([1, 2, 3])


def message(mean, deviation, theta=0.0):
    """Return a message with the weights of a normal law on the integers."""
    reach = int(12 * deviation)
    y = np.arange(int(mean) - reach, int(mean) + reach + 1)
    table = np.exp(-0.5 * ((y - mean) / deviation) ** 2)
    place = np.array([mean, deviation**2, -np.inf, np.inf, np.inf, np.inf])
    return PartMessage(int(y[0]), table, np.zeros(4), theta, place)


def top_of(messages, scale=10.0, *, pinned=True):
    scales = np.array([np.inf if pinned else scale, scale, scale, scale])
    ends = np.full(4, -np.inf), np.full(4, np.inf)
    fixed = np.array([pinned, False, False, False])
    weights = share_noise(1, scales, ends, fixed, 4)
    return Top.of(of_tree(TOP), weights, CUT, messages)


def laplace(scale, lo=-np.inf, hi=np.inf):
    each = (np.array([value]) for value in (scale, 0.0, lo, hi))
    return Unary(np.array([1]), *each)


@pytest.mark.parametrize("tilt", [-0.19, -0.05, 0.0, 0.12])
def test_moments_of_a_weighed_message_are_those_of_its_law(tilt):
    sent = message(7.0, 20.0)
    mean, variance = sent.weighed(laplace(5.0), tilt)
    y = np.arange(sent.lo, sent.hi + 1)
    law = sent.table * np.exp(tilt * y - np.abs(y) / 5.0)
    law /= law.sum()
    assert mean == pytest.approx(law @ y, abs=1e-9)
    assert variance == pytest.approx(law @ (y - law @ y) ** 2, rel=1e-9)


@pytest.mark.parametrize("tilt", [0.5, 0.6, 1.2, -0.9])
def test_beyond_its_window_a_message_is_taken_as_normal(tilt):
    sent, slope = message(3.0, 20.0), 1e-3
    # the law lies at the end of the window, 12 deviations away, or beyond it
    mean, variance = sent.weighed(laplace(1.0 / slope), tilt)
    assert mean == pytest.approx(3.0 + 400.0 * (tilt - slope * np.sign(tilt)), abs=1e-6)
    assert variance == pytest.approx(400.0, rel=1e-6)


def test_a_law_far_from_the_window_of_a_message_has_no_moments():
    assert message(0.0, 20.0).weighed(laplace(1000.0), 4.0) is None
    assert message(2000.0, 20.0).weighed(laplace(5.0, hi=100.0), 0.0) is None


def test_multipliers_are_balanced_by_exact_moments():
    # the weights of the first and the last are tilted to the end of their range
    top = top_of([message(-400.0, 30.0), message(5.0, 20.0), message(300.0, 25.0)])
    saddle = top.balanced(np.zeros(4))
    tilts = top.tilts_of(saddle.settled.tilt)
    found = [
        one.weighed(laplace(10.0), float(t)) for one, t in zip(top.messages, tilts, strict=True)
    ]
    total, variance = np.sum(found, axis=0)
    assert abs(total) < 0.5 * np.sqrt(variance)
    means = saddle.settled.of_variable[0][CUT]
    np.testing.assert_allclose(means, [mean for mean, _ in found], atol=np.sqrt(variance))


def test_the_rest_of_the_tree_has_the_variance_of_the_others():
    top = top_of([message(0.0, 30.0), message(0.0, 20.0), message(0.0, 25.0)], scale=1e6)
    saddle = top.balanced(np.zeros(4))
    squares = np.array([30.0, 20.0, 25.0]) ** 2
    np.testing.assert_allclose(saddle.beyond()[CUT], squares.sum() - squares, rtol=0.01)
    for outside, other in zip(top.around(saddle, 0.1), squares.sum() - squares, strict=True):
        assert outside.variance == pytest.approx(other, rel=0.01)
        assert abs(outside.mean) < 1.0


def test_nothing_is_outside_a_root():
    tree = cg.Tree.from_parents([-1, -1])
    ends = np.full(2, -np.inf), np.full(2, np.inf)
    weights = share_noise(1, np.full(2, 5.0), ends, np.zeros(2, dtype=bool), 2)
    top = Top.of(of_tree(tree), weights, np.array([0, 1]), [message(0.0, 9.0)] * 2)
    assert top.balanced(np.zeros(2)) is None
    assert all(np.isinf(one.variance) for one in top.around(top.settled(), 0.1))


def test_messages_of_large_parts_are_balanced_wherever_their_multipliers_are():
    # without their tilts, the laws lie a thousand deviations from 0
    variances = 4e6 + 100.0 * np.arange(3)
    sent = [message(30.0 * k, np.sqrt(v), -0.493) for k, v in enumerate(variances)]
    saddle = top_of(sent, scale=6.0).settled()
    mean, variance = saddle.settled.of_variable
    assert abs(mean[CUT].sum()) < 0.7 * np.sqrt(variance[CUT].sum())
    assert (np.abs(saddle.settled.of_sum[0][-3:] - mean[CUT]) < 0.7 * np.sqrt(variances)).all()
