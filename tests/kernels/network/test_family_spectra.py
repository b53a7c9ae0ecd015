"""Spectra of the sums of families of leaves, beside those of extended precision."""

from __future__ import annotations

import numpy as np
import pytest

from congenial.kernels.network import family_spectra as kernels

pytestmark = pytest.mark.kernels

LONG = np.longdouble
PI = LONG("3.14159265358979323846264338327950288")


def filled(gaps, inverse, tilt, n):
    """Return the spectrum of one family, the mean of its sizes and the bound on its error."""
    distinct, counts = np.unique(gaps, return_counts=True)
    one, laws = np.zeros(1, dtype=np.int64), (np.array([inverse]), np.array([tilt]))
    families = np.array([0, distinct.size]), distinct, counts, one, *laws
    k = np.arange(n)
    angle, half = 2.0 * np.pi / n * k, np.pi / n * k
    turns = np.stack((np.cos(angle), np.sin(angle), np.sin(half)))
    spectra, means = np.empty((1, n // 2 + 1), dtype=np.complex128), np.empty((1, 2))
    kernels.fill_spectra(one, families, np.array([len(gaps)]), turns, spectra, means)
    return spectra[0], means[0]


def exact(gaps, inverse, tilt, n):
    """Return the same spectrum, from sums of all weights of a leaf, in extended precision."""
    k, out = np.arange(n // 2 + 1), np.ones(n // 2 + 1, dtype=np.clongdouble)
    for gap, count in zip(*np.unique(gaps, return_counts=True), strict=True):
        y = np.arange(gap + int(60.0 / (inverse - tilt)) + 2)
        law = np.exp(-LONG(inverse) * np.abs(y - gap) + LONG(tilt) * y)
        folded = np.zeros(n, dtype=LONG)
        np.add.at(folded, y % n, law / law.sum())
        turn = 2 * PI / n * np.arange(n)
        at = k[:, None] * np.arange(n) % n
        leaf = np.cos(turn)[at] @ folded - 1j * (np.sin(turn)[at] @ folded)
        out[1:] *= leaf[1:] ** count
    return out


def off(gaps, inverse, tilt, n):
    """Return the mean error of a spectrum over a period, and the bound on it."""
    spectrum, (_, most) = filled(gaps, inverse, tilt, n)
    errors = np.abs(spectrum - exact(gaps, inverse, tilt, n))
    return float(2.0 * errors.sum() - errors[-1]) / n, most


@pytest.mark.parametrize("tilt", [-0.3, -0.05])
@pytest.mark.parametrize("gaps", [[0, 0, 0], [3, 0, 12, 3], [40, 1], [5] * 300])
def test_a_spectrum_is_that_of_the_sum_within_its_error(gaps, tilt):
    error, most = off(gaps, 0.2, tilt, 512)
    assert error < most < 1e-11
    spectrum, (size, _) = filled(gaps, 0.2, tilt, 512)
    true = np.abs(exact(gaps, 0.2, tilt, 512))
    assert size == pytest.approx(float(2.0 * true.sum() - 1.0) / 512, rel=0.01)
    assert spectrum[0] == 1.0


def test_errors_of_random_families_stay_below_their_bounds():
    rng, shares = np.random.default_rng(20), []
    for _ in range(3000):
        n, inverse = int(2 ** rng.integers(3, 8)), 10.0 ** rng.uniform(-1.5, 0.7)
        tilt = inverse * rng.uniform(-2.0, 0.95)
        size = int(rng.choice([1, 2, 5, 40, 256, 257]))
        gaps = rng.choice(rng.integers(0, 60, size=3), size=size)
        error, most = off(gaps, inverse, tilt, n)
        # sizes below 1e-154 count as 0, which is far below what all errors are raised by later
        assert error < most + 1e-150, (n, inverse, tilt, gaps)
        shares.append(error / max(most, 1e-150))
    # bounds are no idle ones
    assert max(shares) > 0.02


@pytest.mark.parametrize("size", [255, 256, 257, 258])
def test_powers_and_logarithms_agree_where_one_gives_way_to_the_other(size):
    gaps = np.arange(size) % 3
    error, most = off(gaps, 0.5, 0.1, 64)
    assert error < most < 1e-11
