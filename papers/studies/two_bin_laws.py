"""Gong and Meng, Example 4.1 and Appendix A: laws of two bins with one total, and their loss."""

from __future__ import annotations

import math

import numpy as np

from congenial.types import FloatArray


def conditioned_density(u: FloatArray, epsilon: float) -> FloatArray:
    """Noise of the first bin after conditioning, Laplace of scale 1 / epsilon (equation 4.6)."""
    return np.asarray(0.5 * epsilon * np.exp(-epsilon * np.abs(u)))


def log_imaged_density(u: FloatArray, epsilon: float, beta: float) -> FloatArray:
    """Log density of ``beta u_1 + (1 - beta) u_2``, Laplace noise of scale 2 / epsilon.

    Parameters
    ----------
    u : ndarray of float64
    epsilon : float
    beta : float
        Between 0 and 1.

    Returns
    -------
    ndarray of float64

    Notes
    -----
    Equation A.1 with the wider of its two terms taken out, which leaves no difference of like
    numbers; its limit at 1/2 is A.2, and at 0 and 1 it is one Laplace law.
    """
    wide = max(beta, 1.0 - beta)
    gap = 2.0 * wide - 1.0
    size = np.abs(u)
    if wide == 1.0:
        bracket = np.ones_like(size)
    elif gap == 0.0:
        bracket = 1.0 + epsilon * size
    else:
        tau = epsilon * gap / (2.0 * wide * (1.0 - wide))
        bracket = 1.0 - (1.0 - wide) * np.expm1(-tau * size) / gap
    return np.asarray(math.log(0.25 * epsilon) - epsilon * size / (2.0 * wide) + np.log(bracket))


def mixture_density(u: FloatArray, epsilon: float) -> FloatArray:
    """Half Laplace, half signed Gamma of shape 2, both of scale 1 / epsilon (equation 4.7)."""
    gamma = 0.5 * epsilon**2 * np.abs(u) * np.exp(-epsilon * np.abs(u))
    return np.asarray(0.5 * conditioned_density(u, epsilon) + 0.5 * gamma)


def imaged_variance(epsilon: float, beta: float) -> float:
    """Variance of an image's first bin, ``8 (beta**2 + (1 - beta)**2) / epsilon**2`` (Table 2)."""
    return 8.0 * (beta**2 + (1.0 - beta) ** 2) / epsilon**2


def promised_loss(epsilon: float, beta: float) -> float:
    """Privacy loss of an L1 image (Appendix A)."""
    return epsilon / (2.0 * max(beta, 1.0 - beta))


def attained_loss(epsilon: float, beta: float) -> float:
    """Largest log ratio of an image's density at u and at u + 1, over a wide fine grid."""
    u = np.concatenate(
        (np.linspace(-20.0, 20.0, 4001) / epsilon, -np.geomspace(20.0, 1e6, 2000) / epsilon)
    )
    here, moved = (log_imaged_density(v, epsilon, beta) for v in (u, u + 1.0))
    return float(np.abs(here - moved).max())


def integer_law(epsilon: float, eighths: int) -> tuple[FloatArray, int]:
    """Law of an image's first bin under double geometric noise, on multiples of 1/8.

    Parameters
    ----------
    epsilon : float
        Noise of scale 2 / epsilon in each bin.
    eighths : int
        8 times beta.

    Returns
    -------
    law : ndarray of float64
        Of ``eighths * u_1 - (8 - eighths) * u_2``, from its least value on; sums of positive terms,
        relative to the largest.
    middle : int
        Index of the value 0.
    """
    reach = math.ceil(64.0 / epsilon)
    u = np.arange(-reach, reach + 1)
    with np.errstate(under="ignore"):
        weight = np.exp(-0.5 * epsilon * np.abs(u))
        both = np.outer(weight, weight).ravel()
    value = (eighths * u[:, None] - (8 - eighths) * u[None, :]).ravel()
    law = np.bincount(value + 8 * reach, weights=both).astype(np.float64)
    return law, 8 * reach


def integer_loss(epsilon: float, eighths: int) -> float:
    """Largest log ratio of `integer_law` one unit apart, well inside what is summed."""
    law, middle = integer_law(epsilon, eighths)
    return _largest_ratio(law, middle, math.ceil(24.0 / epsilon) * 8, 8)


def integer_variance(epsilon: float, eighths: int) -> float:
    """Variance of `integer_law`."""
    law, middle = integer_law(epsilon, eighths)
    value = (np.arange(law.size) - middle) / 8.0
    return float(law @ value**2 / law.sum())


def rounded_law(epsilon: float) -> tuple[FloatArray, int]:
    """Law of the L2 image rounded to integers, halves by a fair coin, and the index of 0."""
    law, middle = integer_law(epsilon, 4)
    centre = middle // 8
    at = middle + 8 * np.arange(-centre + 1, centre)  # whole numbers, in eighths
    return np.asarray(law[at] + 0.5 * (law[at - 4] + law[at + 4])), centre - 1


def rounded_loss(epsilon: float) -> float:
    """Largest log ratio of `rounded_law` one unit apart."""
    law, middle = rounded_law(epsilon)
    return _largest_ratio(law, middle, math.ceil(24.0 / epsilon), 1)


def rounded_moments(epsilon: float) -> tuple[float, float]:
    """Mean and variance of `rounded_law`."""
    law, middle = rounded_law(epsilon)
    value = (np.arange(law.size) - middle).astype(np.float64)
    mean = float(law @ value / law.sum())
    return mean, float(law @ (value - mean) ** 2 / law.sum())


def _largest_ratio(law: FloatArray, middle: int, reach: int, step: int) -> float:
    here = law[middle - reach : middle + reach + 1]
    moved = law[middle - reach + step : middle + reach + 1 + step]
    kept = here > 0
    return float(np.abs(np.log(here[kept] / moved[kept])).max())


def log_radial(size: FloatArray, slopes: FloatArray) -> FloatArray:
    """Log of a function of the norm: 0 at 0, then falling by `slopes` a unit.

    Parameters
    ----------
    size : ndarray of float64
        Norms.
    slopes : ndarray of float64, shape (k,)
        The j-th holds from j to j + 1, the last from there on.
    """
    knots = np.arange(slopes.size)
    down = np.concatenate(([0.0], np.cumsum(slopes)[:-1]))
    piece = np.minimum(size.astype(np.int64), slopes.size - 1)
    return np.asarray(-(down[piece] + slopes[piece] * (size - knots[piece])))


def theorem_excess(slopes: FloatArray, alpha: float, points: FloatArray) -> float:
    """How far a function of the norm exceeds the bound of Theorem A.1; at most 0 where it holds.

    Parameters
    ----------
    slopes : ndarray of float64, shape (k,)
        See `log_radial`; all between 0 and alpha under the theorem's conditions.
    alpha : float
    points : ndarray of float64, shape (m, 3, d)
        The theorem's x, a and b, in the sum norm.

    Returns
    -------
    float
        Largest ``ln f(x - a) - ln f(x - b) - alpha |a - b|``.
    """
    x, a, b = points[:, 0], points[:, 1], points[:, 2]
    near, far, apart = (np.abs(v).sum(axis=1) for v in (x - a, x - b, a - b))
    return float((log_radial(near, slopes) - log_radial(far, slopes) - alpha * apart).max())
