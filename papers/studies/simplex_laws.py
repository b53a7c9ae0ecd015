"""Variance and mean absolute error of one cell under one mandated sum, exactly."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from congenial.types import FloatArray

# Nodes over a quarter turn; the integrand is smooth.
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(120)


@dataclass(frozen=True)
class Errors:
    """Error of one cell of n that add up to what is mandated.

    Attributes
    ----------
    variance, absolute : float
        Variance and mean absolute value of the noise that is left in it.
    """

    variance: float
    absolute: float


def laplace_conditioned(n: int, scale: float = 1.0) -> Errors:
    """Laplace noise given that it adds up to 0; proofs/simplex-variance.md, statement 2."""
    variance = scale**2 * (2 * n - 1) * (n - 1) / (n * (n + 1))
    return Errors(variance, scale * (n - 1) / n)


def laplace_imaged(n: int, scale: float = 1.0) -> Errors:
    """Laplace noise less its mean over the cells.

    The mean absolute value is ``2 / pi`` times the integral of ``(1 - psi(t)) / t**2`` over t > 0
    for the characteristic function psi, here taken along ``t = tan(angle)``.
    """
    angle = 0.25 * math.pi * (_NODES + 1.0)
    t = np.tan(angle)
    log_psi = np.log1p(((1 - 1 / n) * t) ** 2) + (n - 1) * np.log1p((t / n) ** 2)
    values = -np.expm1(-log_psi) / np.sin(angle) ** 2
    absolute = 2.0 / math.pi * 0.25 * math.pi * float(_WEIGHTS @ values)
    return Errors(2.0 * scale**2 * (1 - 1 / n), scale * absolute)


def geometric_conditioned(n: int, scale: float) -> Errors:
    """Double geometric noise given that it adds up to 0; as proved, statement 3."""
    a = math.exp(-1.0 / scale)
    x = (1 + a * a) / (1 - a * a)
    before, ratio = math.inf, x  # P_k / P_(k-1) of the Legendre polynomials at x, k = 0 and 1
    for k in range(1, n):
        before, ratio = ratio, ((2 * k + 1) * x - k / ratio) / (k + 1)
    return Errors((n - 1) * (x * ratio - 1) / (n + 1), (n - 1) * (x - 1 / before) / n)


def geometric_imaged(n: int, scale: float) -> Errors:
    """Double geometric noise less its mean over the cells, real numbers."""
    a = math.exp(-1.0 / scale)
    reach = 45.0 * scale
    variance = 2 * a / (1 - a) ** 2
    size = 2 ** math.ceil(math.log2(2 * (10 * math.sqrt(n * variance) + 2 * reach)))
    turn = 2.0 * math.pi * np.arange(size) / size
    one = (1 - a) ** 2 / (1 + a * a - 2 * a * np.cos(turn))
    rest = np.fft.fftshift(np.fft.ifft(one ** (n - 1)).real)  # of the other cells' sum
    values = np.arange(size) - size // 2
    below, moment = np.cumsum(rest), np.cumsum(rest * values)
    u = np.arange(-math.ceil(reach), math.ceil(reach) + 1)
    pmf = (1 - a) / (1 + a) * a ** np.abs(u)
    at = np.clip((n - 1) * u, values[0], values[-1])
    k = at - values[0]
    # E|V - c| = c (2 F(c) - 1) - 2 E[V; V <= c] for V of mean 0
    apart = at * (2 * below[k] - 1) - 2 * moment[k]
    apart = np.where(at == (n - 1) * u, apart, np.abs((n - 1) * u))
    return Errors(variance * (1 - 1 / n), float(pmf @ apart) / n)


def finite_errors(pmf: FloatArray, n: int) -> tuple[Errors, Errors]:
    """Errors of conditioning and of imaging for noise on the integers -m..m.

    Parameters
    ----------
    pmf : ndarray of float64, shape (2 m + 1,)
        Symmetric.
    n : int

    Returns
    -------
    conditioned, imaged : Errors
        By convolution of positive terms.
    """
    m = pmf.size // 2
    rest = np.ones(1)
    for _ in range(n - 1):
        rest = np.convolve(rest, pmf)
    u, v = np.arange(-m, m + 1), np.arange(-m * (n - 1), m * (n - 1) + 1)
    given = pmf * rest[(v.size // 2) - u]
    given = given / given.sum()
    left = np.abs((n - 1) * u[:, None] - v[None, :]) / n
    both = pmf[:, None] * rest[None, :]
    return (
        Errors(float(given @ u**2), float(given @ np.abs(u))),
        Errors(float((both * left**2).sum()), float((both * left).sum())),
    )


def simplex_points(y: FloatArray, total: float) -> FloatArray:
    """Project each row onto the nonnegative vectors with a given sum, shape (k, n), in L2.

    References
    ----------
    Two Views, equation 5 with bounds; Michelot (1986).
    """
    falling = -np.sort(-y, axis=1)
    over = np.cumsum(falling, axis=1) - total
    ranks = np.arange(1, y.shape[1] + 1)
    kept = (falling * ranks > over).sum(axis=1)
    level = over[np.arange(y.shape[0]), kept - 1] / kept
    return np.asarray(np.maximum(y - level[:, None], 0.0))
