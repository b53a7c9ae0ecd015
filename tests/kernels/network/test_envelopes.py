"""Tails of envelopes of weights; `tests/sum_network/exact/test_envelopes.py` has all the others."""

from __future__ import annotations

import math

import numpy as np
import pytest

from congenial.kernels.numerics import laws
from support.kernel_entries import entry

pytestmark = pytest.mark.kernels

weight_ratio = entry("network.envelopes._weight_ratio")
end_ratio = entry("network.envelopes._end_ratio")
bound_product = entry("network.envelopes._bound_product")


@pytest.mark.parametrize("tilt", [-0.2, 0.0, 0.3])
@pytest.mark.parametrize("end", [-4.0, 0.0, 1.0, 7.0])
@pytest.mark.parametrize("step", [-1.0, 1.0])
def test_no_step_beyond_an_end_changes_a_weight_by_more(tilt, end, step):
    logs = {
        laws.LAPLACE: lambda x: -0.5 * abs(x - 2.0) + tilt * x,
        laws.GAUSSIAN: lambda x: -0.1 * (x - 2.0) ** 2 + tilt * x,
        laws.FLAT: lambda x: tilt * x,
    }
    for kind, log in logs.items():
        inverse = 0.1 if kind == laws.GAUSSIAN else 0.5
        ratio = weight_ratio(kind, inverse, 2.0, tilt, end, step)
        steps = [log(end + step * (k + 1)) - log(end + step * k) for k in range(60)]
        assert math.exp(max(steps)) <= ratio <= math.exp(steps[0]) * (1.0 + 1e-9)


@pytest.mark.parametrize("sign", [-1.0, 1.0])
@pytest.mark.parametrize("n", [1, 4, 50])
def test_a_sum_of_geometric_variables_has_its_own_ratio(n, sign):
    def log(k):
        return math.lgamma(k + n) - math.lgamma(k + 1) - 0.3 * k + 0.1 * sign * sign * k

    for k in (0, 3, 40):
        ratio = weight_ratio(laws.GEOMETRIC_SUM, 0.3, float(n), 0.1 * sign, sign * k, sign)
        assert ratio == pytest.approx(math.exp(log(k + 1) - log(k)), rel=1e-9)
        if k:
            ratio = weight_ratio(laws.GEOMETRIC_SUM, 0.3, float(n), 0.1 * sign, sign * k, -sign)
            assert ratio == pytest.approx(math.exp(log(k - 1) - log(k)), rel=1e-9)


def test_the_ratio_at_an_end_stays_on_its_side_of_a_narrow_table():
    table = np.array([1e-9, 1e-3, 1.0, 1e-3, 1e-9])
    assert end_ratio(table, 0, 5, 1) == pytest.approx(1e-6)
    assert end_ratio(table, 0, 5, -1) == pytest.approx(1e-6)
    assert end_ratio(table, 2, 1, 1) == 1.0


@pytest.mark.parametrize("side", [0, 1])
def test_a_product_with_a_long_flat_weight_falls_as_its_other_part_does(side):
    # the weight is flat for thousands of values, and falls fast beyond 0
    x = np.arange(-200, 8000)
    weight = np.exp(0.2 * np.minimum(x, 0.0))
    y = np.arange(5500, 7900)
    message = np.exp(-0.5 * ((y - 6700.0) / 170.0) ** 2)
    ratio = 0.98  # less steep than the table at its ends
    body = weight[y[50:-50] + 200] * message[50:-50]
    tables = [weight, message, body]
    if side:
        tables = [table[::-1] for table in tables]
    ends = [(-200, 7999), (5500, 7899), (5550, 7849)]
    lo, hi = np.array([(-b, -a) if side else (a, b) for a, b in ends]).T
    tails = np.zeros((3, 4))
    tails[0, 2 * side : 2 * side + 2] = weight[0], np.exp(-0.2)
    tails[1] = message[0], ratio, message[-1], ratio
    size = np.array([table.size for table in tables])
    parts = (np.array([-1, -1, k], dtype=np.int32) for k in (0, 1))
    classes = np.zeros(3, dtype=np.int8), *parts, np.ones(3, dtype=np.int8)
    windows = lo, hi, np.cumsum(size) - size
    bound_product(2, classes, windows, np.concatenate(tables), np.ones(3), tails)
    edge, slope = tails[2, 2 * side : 2 * side + 2]
    k = np.arange(1, 6000)
    at = 5550 - k
    far = np.where(at >= 5500, np.exp(-0.5 * ((at - 6700.0) / 170.0) ** 2), 0.0)
    far = np.where(at < 5500, message[0] * ratio ** (5500.0 - at), far)
    true = far * np.exp(0.2 * np.minimum(at, 0.0))
    assert (edge * slope**k >= true).all()
    assert edge < 10.0 * body[0]
