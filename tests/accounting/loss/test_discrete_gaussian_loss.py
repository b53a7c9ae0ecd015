"""The delta of discrete Gaussian noise, against sums over all outputs."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from congenial.accounting.loss.discrete_gaussian_loss import discrete_gaussian_delta
from congenial.errors import ArgumentError


def enumerated(epsilon, sigma, change):
    """Return delta as the sum over outputs of max(0, p - e^epsilon q)."""
    reach = math.ceil(9 * sigma) + max(map(abs, change))
    u = np.arange(-reach, reach + 1)
    p = np.exp(-0.5 * (u / sigma) ** 2)
    p /= p.sum()
    total = 0.0
    for at in itertools.product(range(u.size), repeat=len(change)):
        first = math.prod(p[i] for i in at)
        moved = [i - c for i, c in zip(at, change, strict=True)]
        second = math.prod(p[i] if 0 <= i < u.size else 0.0 for i in moved)
        total += max(0.0, first - math.exp(epsilon) * second)
    return total


@pytest.mark.parametrize(
    ("epsilon", "sigma", "change"),
    [(0.0, 1.0, (1,)), (1.0, 0.7, (1,)), (0.5, 2.0, (3,)), (1.0, 1.5, (1, -1)), (2.0, 1.2, (2, 1))],
)
def test_delta_is_that_of_the_enumerated_laws(epsilon, sigma, change):
    found = discrete_gaussian_delta(epsilon=epsilon, sigma=sigma, change=change)
    assert found == pytest.approx(enumerated(epsilon, sigma, change), rel=1e-8)
    narrower = discrete_gaussian_delta(epsilon=epsilon, sigma=0.7 * sigma, change=change)
    assert narrower > 1.1 * found


@pytest.mark.parametrize(
    ("given", "named"),
    [({"epsilon": -1.0}, "epsilon"), ({"sigma": 0.0}, "sigma"), ({"change": 0}, "change")],
)
def test_arguments_out_of_range_are_refused(given, named):
    with pytest.raises(ArgumentError, match=named):
        discrete_gaussian_delta(**({"epsilon": 1.0, "sigma": 1.0} | given))
