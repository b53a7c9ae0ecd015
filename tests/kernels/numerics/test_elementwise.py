"""Elementary functions of arrays: shapes, and the ways to add numbers by their logarithms."""

from __future__ import annotations

import numpy as np

from congenial.kernels.numerics import elementwise


def test_shapes_are_those_of_the_arguments():
    x = np.arange(1.0, 25.0).reshape(2, 3, 4)
    for name in ("exp", "expm1", "log", "log1p"):
        ours, numpys = getattr(elementwise, name), getattr(np, name)
        for of in (x, x[:, ::2], x.T, x[0, 0], np.empty((0, 3)), 2, np.int64(3)):
            found = ours(of)
            assert found.shape == np.shape(of), name
            np.testing.assert_allclose(found, numpys(of), rtol=2.0**-51)
        assert isinstance(ours(2.0), np.float64)


def test_numbers_are_added_by_their_logarithms():
    x = np.log(np.arange(1.0, 13.0)).reshape(3, 4)
    assert elementwise.log_sum(x) == np.log(78.0)
    np.testing.assert_allclose(elementwise.log_sum(x, axis=0), np.log([15.0, 18.0, 21.0, 24.0]))
    assert elementwise.log_sum([-np.inf, -np.inf]) == -np.inf
    assert elementwise.log_sum([np.inf, 1.0]) == np.inf
    assert elementwise.log_sum([1000.0, 1000.0]) == 1000.0 + np.log(2.0)
    a, b = (
        np.array([0.0, -np.inf, 5.0, np.inf, -800.0]),
        np.array([0.0, -np.inf, -np.inf, 3.0, 0.0]),
    )
    assert elementwise.log_add(a, b).tolist() == [np.log(2.0), -np.inf, 5.0, np.inf, 0.0]


def test_powers_and_logarithms_to_other_bases():
    assert elementwise.power([0.0, 0.0, 2.0, 0.25], [0.0, 3.0, 10.0, 0.5]).tolist() == [
        1,
        0,
        1024,
        0.5,
    ]
    np.testing.assert_allclose(
        elementwise.log10([1e-5, 1.0, 1e300]), [-5.0, 0.0, 300.0], rtol=1e-15
    )
    np.testing.assert_allclose(elementwise.log2([2.0**-9, 8.0]), [-9.0, 3.0], rtol=1e-15)
    np.testing.assert_allclose(elementwise.cos_sin([0.0, np.pi]), [[1, -1], [0, 0]], atol=2e-16)


def test_the_least_power_of_two_above_a_number():
    x = [0.3, 0.5, 0.50001, 1.0, 3.0, 4.0, 4.5, 2.0**40 + 1]
    assert elementwise.power_of_two_above(np.inf) == np.inf
    assert elementwise.power_of_two_above(x).tolist() == [0.5, 0.5, 1, 1, 4, 4, 8, 2.0**41]
