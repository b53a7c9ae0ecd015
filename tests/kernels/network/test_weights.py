"""Unary weights against long arithmetic."""

from __future__ import annotations

from decimal import Decimal, localcontext

import numpy as np
import pytest

from congenial.kernels.numerics import laws
from support.kernel_entries import entry

pytestmark = pytest.mark.kernels

fill_unary = entry("network.weights.fill_unary")
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


def test_the_test_of_weights_sees_an_error_in_the_last_places():
    out = np.empty(3)
    fill_unary(laws.LAPLACE, 0.5, 0.0, 0.0, -1, out)
    close = np.empty(3)
    fill_unary(laws.LAPLACE, np.nextafter(np.nextafter(0.5, 1.0), 1.0), 0.0, 0.0, -1, close)
    assert (out != close).any()
