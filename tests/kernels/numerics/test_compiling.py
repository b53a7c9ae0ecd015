"""Options of compiled kernels: numpy's division, no Python entry for inner kernels, a cache."""

from __future__ import annotations

import numpy as np

from congenial.kernels.numerics.compiling import njit


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
    fused, reordered = njit(fused=True)(lambda x: x), njit(reordered=True)(lambda x: x)
    assert fused.targetoptions["fastmath"] == {"contract"}
    assert reordered.targetoptions["fastmath"] == {"reassoc", "nsz"}
