"""The distances at which windows end, against laws that are known."""

from __future__ import annotations

import numpy as np
import pytest

from congenial.kernels.network.spans import spans
from support.kernel_entries import entry

pytestmark = pytest.mark.kernels

joint_rate = entry("network.spans.joint_rate")


def span(var, rate, out_var, out_rate, ahead, nats):
    out = np.empty(1)
    spans(*(np.array([v]) for v in (var, rate, out_var, out_rate, ahead, nats)), out)
    return float(out[0])


def test_two_gaussian_messages_end_where_their_product_has_lost_the_nats():
    got = span(4.0, np.inf, 12.0, np.inf, 0.0, 40.0)
    assert got == pytest.approx(np.sqrt(2.0 * 40.0 * 3.0), rel=0.01)


def test_a_shift_of_the_means_is_paid_for():
    # exponents (y + 3)^2 / 8 + (y - 9)^2 / 24 less their values at y = 0: y^2 / 6 again
    got = span(4.0, np.inf, 12.0, np.inf, 3.0, 40.0)
    assert got == pytest.approx(np.sqrt(2.0 * 40.0 * 3.0), rel=0.01)


@pytest.mark.parametrize("count", [1, 2, 20, 400])
def test_a_sum_of_laplace_variables_ends_where_its_tail_has_lost_the_nats(count):
    # against the tail itself, by convolution
    scale, nats = 2.0, 30.0
    u = np.arange(-600, 601)
    one = np.exp(-np.abs(u) / scale)
    one /= one.sum()
    law, power = np.zeros(u.size), count
    law[600], square = 1.0, one
    while power:
        if power & 1:
            law = np.convolve(law, square, mode="same")
        square = np.convolve(square, square, mode="same")
        power >>= 1
    tail = np.cumsum(law[::-1])[::-1]
    var = count * float((one * u**2).sum())
    got = span(var, 1.0 / scale, 1e30, 0.0, 0.0, nats)
    lost = -np.log(tail[600 + int(got)])
    # Chernoff's bound holds; what it gives away is the power in front
    assert nats - 1.5 <= lost <= nats + 6.0


def test_the_decay_of_a_product_lies_between_its_parts_and_their_sum():
    got = joint_rate(8.0, 0.5, 800.0, 0.5, 30.0)
    assert 0.5 < got < 1.0
    assert joint_rate(8.0, 0.5, 1e30, 0.0, 30.0) == pytest.approx(0.5)
    assert joint_rate(8.0, np.inf, 800.0, 0.5, 30.0) == np.inf
