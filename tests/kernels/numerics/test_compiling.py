"""Options of compiled kernels: numpy's division, no Python entry for inner kernels, a cache."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from congenial.kernels.numerics.compiling import fused, njit


@njit(inner=True)
def _over(x, y):
    return x / y


@njit()
def _outer(x, y):
    return _over(x, y)


def test_a_division_by_zero_is_numpys():
    assert _outer(1.0, 0.0) == np.inf
    assert np.isnan(_outer(0.0, 0.0))


def test_only_outer_kernels_are_kept_and_reached_from_python():
    _outer(1.0, 2.0)
    assert _outer.stats.cache_path is not None
    assert getattr(_over.stats, "cache_path", None) is None
    assert _over.targetoptions["no_cpython_wrapper"]
    assert not _outer.targetoptions["no_cpython_wrapper"]


def test_a_liberty_with_sums_is_taken_only_where_it_is_asked_for():
    assert njit()(lambda x: x).targetoptions["fastmath"] is False
    assert njit(reordered=True)(lambda x: x).targetoptions["fastmath"] == {"reassoc", "nsz"}


def test_a_product_and_a_sum_are_rounded_once_where_the_kernel_says_so():
    @njit()
    def both(x, y, z):
        return fused(x, y, z), x * y + z

    rng = np.random.default_rng(3)
    apart = 0
    for _ in range(2_000):
        x, y = rng.normal(size=2)
        z = -x * y * (1.0 + rng.normal() * 2.0**-40)
        once, twice = both(x, y, z)
        assert once == float(Fraction(x) * Fraction(y) + Fraction(z))
        assert twice == x * y + z
        apart += once != twice
    assert apart > 1_000
