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


def test_a_shift_of_the_means_widens_the_window():
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


def lost(x, var, rate):
    """Return how many nats laws of these cumulants lose at x > 0, and the slope there.

    That is Legendre's transform of log E exp(t X), at the t where its derivative is x, found by
    bisection.
    """
    low, high = np.zeros_like(x), np.minimum(rate, x / var)
    for _ in range(60):
        t = 0.5 * (low + high)
        beyond = var * t > x * (1.0 - (t / rate) ** 2)
        low, high = np.where(beyond, low, t), np.where(beyond, t, high)
    return x * low + 0.5 * var * rate**2 * np.log1p(-((low / rate) ** 2)), low


def both(x, y, first, second, alone):
    """The nats and slopes of two laws together, at x and y above 0; `alone` has the first only."""
    own, slope = lost(np.maximum(x, 1e-9), *first)
    rest, rest_slope = lost(np.maximum(y, 1e-9), *second)
    return own + np.where(alone, 0.0, rest), slope + np.where(alone, 0.0, rest_slope)


def where_lost(nats, at):
    """Return by bisection where the increasing function `at` has lost `nats`."""
    low, high = np.zeros(nats.size), np.full(nats.size, 1e6)
    for _ in range(60):
        x = 0.5 * (low + high)
        beyond = at(x) > nats
        low, high = np.where(beyond, low, x), np.where(beyond, x, high)
    return low


def random_laws(rng, n):
    """Variances and decay rates of two laws each, the second flat in a fifth of the cases."""
    var = np.exp(rng.uniform(-2.0, 12.0, (2, n)))
    # from one Laplace variable to sums of three thousand
    rate = np.sqrt(2.0 * np.exp(rng.uniform(0.0, 8.0, (2, n))) / var)
    return (var[0], rate[0]), (var[1], rate[1]), rng.random(n) < 0.2, rng.uniform(20.0, 80.0, n)


def test_thousands_of_windows_end_where_the_product_has_lost_its_nats():
    rng = np.random.default_rng(95)
    first, second, alone, nats = random_laws(rng, 5000)
    ahead = rng.uniform(-3.0, 3.0, nats.size) * (rng.random(nats.size) < 0.7)
    ahead *= np.sqrt(1.0 / (1.0 / first[0] + 1.0 / second[0]))
    out, flat = (
        np.empty(nats.size),
        (np.where(alone, 1e30, second[0]), np.where(alone, 0, second[1])),
    )
    spans(*first, *flat, ahead, nats, out)
    apart = -ahead * second[0] / first[0]
    base, _ = both(np.abs(ahead), np.abs(apart), first, second, alone)
    end = where_lost(nats + base, lambda x: both(x + ahead, x + apart, first, second, alone)[0])
    # the nats are convex in x, so that steps come from above, and end when they are this small
    assert (out >= end * (1.0 - 1e-9)).all()
    assert (out <= end + 0.5 + 1e-2 * end).all()


def test_a_value_that_is_known_has_no_window():
    assert span(0.0, np.inf, 5.0, 1.0, 0.0, 40.0) == span(5.0, 1.0, 0.0, np.inf, 0.0, 40.0) == 0.0


def test_thousands_of_products_decay_as_a_law_of_their_variance_and_slope():
    first, second, alone, nats = random_laws(np.random.default_rng(96), 3000)
    flat = np.where(alone, 1e30, second[0]), np.where(alone, 0.0, second[1])
    got = np.array([joint_rate(*case) for case in zip(*first, *flat, nats, strict=True)])
    x = where_lost(nats, lambda x: both(x, x, first, second, alone)[0])
    _, slope = both(x, x, first, second, alone)
    v = 1.0 / (1.0 / first[0] + 1.0 / second[0])
    # a law of variance v and rate r has r^2 = slope^2 x / (x - v slope), as its cumulants say
    wanted = np.where(alone, first[1], slope * np.sqrt(x / np.abs(x - v * slope)))
    assert np.isfinite(got).all()
    # four steps double their digits, from a start that is off by a few parts
    np.testing.assert_allclose(got, wanted, rtol=1e-4)


def test_the_decay_of_a_product_lies_between_its_parts_and_their_sum():
    got = joint_rate(8.0, 0.5, 800.0, 0.5, 30.0)
    assert 0.5 < got < 1.0
    assert joint_rate(8.0, 0.5, 1e30, 0.0, 30.0) == pytest.approx(0.5)
    assert joint_rate(8.0, np.inf, 800.0, 0.5, 30.0) == np.inf
