"""Unary weights against long arithmetic, and the distances at which windows end."""

from __future__ import annotations

from decimal import Decimal, localcontext

import numpy as np
import pytest

from congenial.kernels.network.spans import spans
from congenial.kernels.numerics import laws
from support.kernel_entries import entry

pytestmark = pytest.mark.kernels

fill_unary = entry("network.weights.fill_unary")
joint_rate = entry("network.spans.joint_rate")
LAWS = {"flat": laws.FLAT, "laplace": laws.LAPLACE, "gaussian": laws.GAUSSIAN}


def inverse_of(law: str, scale: float) -> float:
    return {"flat": 1.0, "laplace": 1.0 / scale, "gaussian": 0.5 / scale**2}[law]


def log_weight(law, inverse, center, tilt, u):
    away = Decimal(u) - Decimal(center)
    own = {"flat": Decimal(0), "laplace": abs(away), "gaussian": away**2}[law]
    return Decimal(tilt) * u - Decimal(inverse) * own


@pytest.mark.parametrize("law", LAWS)
def test_weights_are_within_a_unit_of_long_arithmetic(law):
    rng = np.random.default_rng(5)
    with localcontext(prec=40):
        for _ in range(60):
            scale = float(rng.choice([0.3, 1.0, 7.7, 100.0]))
            inverse = inverse_of(law, scale)
            center = float(rng.integers(-3, 4))
            lo, size = int(rng.integers(-300, 100)), int(rng.integers(1, 400))
            tilt = float(rng.normal() * rng.choice([0.0, 0.01, 0.3, 2.0])) / scale
            out = np.empty(size)
            top = fill_unary(LAWS[law], inverse, center, tilt, lo, out)
            assert out.max() == pytest.approx(1.0, abs=1e-9)
            for i, got in enumerate(out.tolist()):
                exponent = log_weight(law, inverse, center, tilt, lo + i) - Decimal(top)
                if exponent > -600:
                    assert abs(Decimal(got) / exponent.exp() - 1) <= Decimal(2.0**-53)
                else:
                    assert got < 1e-250


def test_a_weight_is_told_from_its_neighbour_in_the_last_places():
    out = np.empty(3)
    fill_unary(laws.LAPLACE, 0.5, 0.0, 0.0, -1, out)
    close = np.empty(3)
    fill_unary(laws.LAPLACE, np.nextafter(np.nextafter(0.5, 1.0), 1.0), 0.0, 0.0, -1, close)
    assert (out != close).any()


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
