"""Elementary functions beside 50 decimals, and their bits as Python computes them one by one."""

from __future__ import annotations

import hashlib
import math
import os
import subprocess
import sys
from collections.abc import Callable
from decimal import Decimal, localcontext
from pathlib import Path

import numpy as np
import pytest

from congenial.kernels.numerics import elementary
from congenial.kernels.numerics.compiling import njit

Exact = Callable[[Decimal], Decimal]
_TIMES = 4_000


def _vectors(seed: int) -> dict[str, np.ndarray]:
    """Arguments at random, from products of integers and powers of two, alike everywhere."""
    rng = np.random.default_rng(seed)
    unit = rng.integers(1, 1 << 53, _TIMES) * 2.0**-53
    sign = rng.choice([-1.0, 1.0], _TIMES)
    wide = np.ldexp(unit, rng.integers(-60, 60, _TIMES))
    return {"unit": unit, "signed": sign * unit, "wide": wide, "signed wide": sign * wide}


@njit()
def _all(x, out):
    """Fill `out`, float64 (9, n), with every function of x."""
    for i in range(x.size):
        t = x[i]
        out[0, i], out[1, i] = elementary.exp(t), elementary.expm1(t)
        out[2, i], out[3, i] = elementary.log(abs(t)), elementary.log1p(t)
        out[4, i], out[5, i] = elementary.cos_sin(t)
        out[6, i] = elementary.atan(t)
        out[7, i] = elementary.log_gamma(abs(t))
        out[8, i] = elementary.power(abs(t), 0.3)


NAMES = ("exp", "expm1", "log", "log1p", "cos", "sin", "atan", "log_gamma", "power")


def _values(name: str, x: np.ndarray) -> np.ndarray:
    out = np.empty((len(NAMES), x.size))
    _all(x, out)
    return out[NAMES.index(name)]


def _units_off(name: str, exact: Exact, x: np.ndarray, *, absolute: bool = False) -> float:
    """Return the largest error, in units of the last place of the exact value, or of 1."""
    with localcontext(prec=50):
        worst = 0.0
        for t, value in zip(x.tolist(), _values(name, x).tolist(), strict=True):
            of = exact(Decimal(t))
            unit = Decimal(2) ** -52 if absolute else Decimal(math.ulp(float(of)))
            worst = max(worst, float(abs(of - Decimal(value)) / unit))
    return worst


def _sine(x: Decimal) -> Decimal:
    """Return sin(x) by its series, for x of a few units."""
    term, out, k = x, x, 1
    while abs(term) > Decimal("1e-48"):
        term *= -x * x / ((2 * k) * (2 * k + 1))
        out, k = out + term, k + 1
    return out


def _angle(x: Decimal) -> Decimal:
    for _ in range(6):
        x /= 1 + (1 + x * x).sqrt()
    return 64 * sum(((-1) ** j * x ** (2 * j + 1) / (2 * j + 1) for j in range(20)), Decimal(0))


def test_exponentials_are_within_one_unit():
    of = _vectors(1)
    for x in (700.0 * of["signed"], 3.0 * of["signed"], 0.02 * of["signed"]):
        assert _units_off("exp", Decimal.exp, x) < 0.6
    assert _units_off("exp", Decimal.exp, -700.0 - 45.0 * of["unit"]) < 1.1
    for x in (
        50.0 * of["signed"],
        of["signed"],
        0.3 + 0.02 * of["signed"],
        2.0**-40 * of["signed"],
    ):
        assert _units_off("expm1", lambda t: t.exp() - 1, x) < 1.1


def test_logarithms_are_within_one_unit():
    of = _vectors(2)
    near = 1.0 + np.ldexp(of["signed"], np.arange(_TIMES) % 50 - 50)
    for x in (of["unit"], of["wide"], near, 1.0 + of["unit"], of["unit"] * 2.0**-1040):
        assert _units_off("log", Decimal.ln, x) < 1.1
    far = of["signed wide"]
    for x in (of["signed"], 1.0 + of["unit"], far[far > -1.0], 2.0**-30 * of["signed"]):
        assert _units_off("log1p", lambda t: (1 + t).ln(), x) < 1.1


def test_angles_and_their_sines_are_within_a_unit_of_one():
    of = _vectors(3)
    x = 8.0 * of["signed"]
    assert _units_off("sin", _sine, x, absolute=True) < 0.8
    assert _units_off("sin", _sine, 2.0**-20 * x) < 1.0
    half = _angle(Decimal(1)) * 2
    assert _units_off("cos", lambda t: _sine(t + half), x, absolute=True) < 0.8
    for t in (x, 2.0**-20 * x, of["signed wide"]):
        assert _units_off("atan", _angle, t) < 1.7


def test_logarithms_of_the_gamma_function_are_those_of_factorials():
    n = np.arange(1.0, 160.0)
    with localcontext(prec=50):
        exact = [float(Decimal(math.factorial(int(i) - 1)).ln()) for i in n]
    # Stirling's terms have the size of n log(n), and below 16 that of 16 log(16)
    size = np.maximum(n, 16.0) * np.log(np.maximum(n, 16.0))
    assert np.all(np.abs(_values("log_gamma", n) - exact) <= 4.0 * 2.0**-53 * size)
    half = _values("log_gamma", np.array([0.5, 1.5, 1e-300]))
    assert half == pytest.approx(
        [0.5 * math.log(math.pi), math.log(0.5 * math.pi**0.5), 690.775527898], abs=1e-9
    )


def test_ends_of_the_range_are_numpys():
    x = np.array([0.0, -0.0, 1.0, -1.0, -2.0, 5e-324, 2.0**-1022, -745.13, -745.14, 709.78])
    x = np.append(x, [709.79, 1e308, -1e308, np.inf, -np.inf, np.nan])
    with np.errstate(all="ignore"):
        for name, function in (("exp", np.exp), ("expm1", np.expm1), ("log1p", np.log1p)):
            np.testing.assert_allclose(_values(name, x), function(x), rtol=2.0**-50, err_msg=name)
        np.testing.assert_allclose(_values("log", x), np.log(np.abs(x)), rtol=2.0**-50)


def _digest() -> str:
    """Return a hash of the bits of all functions at many arguments."""
    out = hashlib.sha256()
    for x in _vectors(5).values():
        # few, because they are computed without compilation too
        for t in (x[:500], 30.0 * x[:500]):
            values = np.empty((len(NAMES), t.size))
            _all(t, values)
            out.update(np.where(np.isnan(values), 0.0, values).tobytes())
    return out.hexdigest()


_INTERPRETED = (
    "import sys; sys.path[:0] = sys.argv[1:]; import test_elementary as of; print(of._digest())"
)
BITS = "5ad02b8b1e372806aedf00d9a31e768d9caab1383da2ac7a58a73c64e0d0991a"


def test_bits_are_the_same_on_every_processor_and_without_compilation():
    assert _digest() == BITS
    here = Path(__file__)
    paths = [str(here.parent), str(here.parents[2].parent / "src")]
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", _INTERPRETED, *paths],
        env=os.environ | {"NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout.strip() == BITS
