"""Error margins of independent noise, against its laws and their convolutions."""

from __future__ import annotations

import numpy as np
import pytest

import congenial as cg
from congenial.errors import ArgumentError
from congenial.inference.noise_intervals import error_margin_of_noise_sum, noise_margin


def law_of(kind, scale, reach=600):
    u = np.arange(-reach, reach + 1)
    away = np.abs(u) / scale
    p = np.exp(-away if kind == "laplace" else -0.5 * away**2)
    return p / p.sum()


def noise_of(kind, scale):
    return cg.DiscreteLaplace(scale) if kind == "laplace" else cg.DiscreteGaussian(scale)


def beyond(law, m):
    middle = law.size // 2
    return law[: middle - m].sum() + law[middle + m + 1 :].sum()


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
@pytest.mark.parametrize("scale", [0.2, 1.0, 3.7, 20.0])
@pytest.mark.parametrize("alpha", [0.5, 0.1, 1e-3, 1e-8])
def test_one_draw_exceeds_its_margin_with_at_most_alpha(kind, scale, alpha):
    m = noise_margin(noise_of(kind, scale), scale, alpha)
    law = law_of(kind, scale)
    assert beyond(law, m) <= alpha * (1.0 + 1e-9)
    assert m == 0 or beyond(law, m - 1) > alpha


@pytest.mark.parametrize("seed", range(60))
def test_a_sum_exceeds_its_margin_with_at_most_alpha(seed):
    rng = np.random.default_rng(seed)
    kind = ("laplace", "gaussian")[seed % 2]
    scales = rng.choice([0.0, 0.5, 1.0, 4.0], int(rng.integers(1, 6)))
    times = rng.integers(0, 4, scales.size)
    alpha = float(rng.choice([0.3, 0.05, 1e-4]))
    law = np.zeros(1201)
    law[600] = 1.0
    for scale, count in zip(scales, times, strict=True):
        if scale > 0.0 and count > 0:
            one = np.zeros(1201)  # a draw that counts several times
            reach = 600 // count
            one[600 - reach * count : 601 + reach * count : count] = law_of(kind, scale, reach)
            law = np.convolve(law, one, mode="same")
    m = error_margin_of_noise_sum(noise_of(kind, 1.0), scales, alpha, times=times)
    # alpha is lowered by 1e-9
    assert beyond(law, m) <= alpha
    assert m == 0 or beyond(law, m - 1) > alpha - 2e-9


def test_scales_below_zero_are_refused():
    with pytest.raises(ArgumentError, match="negative or not finite"):
        error_margin_of_noise_sum(cg.DiscreteLaplace(1.0), [-1.0], 0.1)
