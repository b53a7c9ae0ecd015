"""Gaussian noise and (epsilon, delta): the exact trade-off, and two calibrations."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal, SupportsFloat

import numpy as np

from congenial.accounting.loss.bisection import bisected
from congenial.errors import ArgumentError

Calibration = Literal["analytic", "published"]
CALIBRATIONS: tuple[Calibration, ...] = ("analytic", "published")

# Relative error of `gaussian_delta` for a delta of at least 1e-300, and safety margin of roots.
ACCURACY = 1e-11
# Shift, in standard deviations, below which the difference of two Mills ratios would cancel, and an
# integral replaces it.
_CLOSE = 0.25
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(12)
# Ranges of epsilon, delta and shift without overflow or underflow of an intermediate result.
_LARGEST_EPSILON, _LEAST_DELTA = 1e9, 1e-280
_LEAST_SHIFT, _LARGEST_SHIFT = 1e-100, 1e6
_ROOT_TWO_PI = math.sqrt(2.0 * math.pi)


def gaussian_sigma(
    *, epsilon: float, delta: float, sensitivity: SupportsFloat, method: Calibration = "analytic"
) -> float:
    """Return the standard deviation of Gaussian noise that gives (epsilon, delta).

    Parameters
    ----------
    epsilon : float
        Nonnegative; positive for "published".
    delta : float
        Between 0 and 1, neither included.
    sensitivity : float or Sensitivity
        Largest L2 change of the queries between neighbouring datasets, as of `sensitivity`.
    method : {"analytic", "published"}
        "analytic" is the least sufficient sigma. "published" is the closed form of Two Views,
        ``sensitivity * (1 + sqrt(1 + ln(1 / delta))) / epsilon``.

    Returns
    -------
    float

    Raises
    ------
    ArgumentError
        If an argument is out of range, or the published sigma does not give (epsilon, delta).

    Notes
    -----
    The published sigma is too small if epsilon is large or delta is small: as delta falls, it
    grows like ``sqrt(ln(1 / delta))``, but ``sqrt(2 ln(1 / delta))`` is needed. If it is too small,
    this function raises ArgumentError.

    References
    ----------
    Balle and Wang (2018), Theorem 8 and Algorithm 1; Two Views, Proposition 2.7, which prints
    delta on the left where sigma is meant.

    Examples
    --------
    >>> round(gaussian_sigma(epsilon=1.0, delta=1e-6, sensitivity=1.0), 4)
    4.2247
    >>> round(gaussian_sigma(epsilon=1.0, delta=1e-6, sensitivity=1.0, method="published"), 4)
    4.8491
    """
    size = checked_positive("sensitivity", sensitivity)
    _check_epsilon(epsilon)
    _check_delta(delta)
    if method not in CALIBRATIONS:
        raise ArgumentError(f"method is {method!r}; give 'analytic' or 'published'.")
    if method == "published":
        sigma = published_sigma(epsilon=epsilon, delta=delta, sensitivity=size)
        reached = gaussian_delta(epsilon=epsilon, sigma=sigma, sensitivity=size)
        if reached > delta:
            raise ArgumentError(
                f"the published sigma {sigma:.6g} gives delta {reached:.3g} at epsilon "
                f"{epsilon:g}, more than the {delta:.3g} asked for; use method='analytic'."
            )
        return sigma
    target = math.log(delta)

    def enough(log_sigma: float) -> bool:
        return _log_delta(epsilon, max(math.exp(-log_sigma), 1e-300)) <= target

    return size * math.exp(_first(enough)) * (1.0 + ACCURACY)


def published_sigma(*, epsilon: float, delta: float, sensitivity: SupportsFloat) -> float:
    """Return sigma as Two Views prints it (Proposition 2.7), which may be too small."""
    checked_positive("epsilon", epsilon)
    _check_delta(delta)
    size = checked_positive("sensitivity", sensitivity)
    return size * (1.0 + math.sqrt(1.0 + math.log(1.0 / delta))) / epsilon


def gaussian_delta(*, epsilon: float, sigma: float, sensitivity: SupportsFloat) -> float:
    """Return the least delta of Gaussian noise at a given epsilon.

    Parameters
    ----------
    epsilon : float
        Nonnegative.
    sigma : float
    sensitivity : float or Sensitivity
        Largest L2 change between neighbouring datasets.

    Returns
    -------
    float
        Relative error below 1e-11 for epsilon up to 1e3; 0 where it is below the smallest double.

    Raises
    ------
    ArgumentError
        If an argument is out of range.

    Notes
    -----
    With m = sensitivity / sigma, ``Phi(m/2 - epsilon/m) - exp(epsilon) Phi(-m/2 - epsilon/m)``.
    The two terms have the ratio exp(epsilon) of normal densities, so their difference is one
    density times a difference of Mills ratios, which does not cancel.

    References
    ----------
    Balle and Wang (2018), Theorem 8.
    """
    _check_epsilon(epsilon)
    shift = _shift(sensitivity, sigma)
    return math.exp(_log_delta(epsilon, shift))


def gaussian_epsilon(*, sigma: float, delta: float, sensitivity: SupportsFloat) -> float:
    """Return the least epsilon of Gaussian noise at a given delta; 0 if delta suffices alone.

    Parameters
    ----------
    sigma : float
    delta : float
        Between 0 and 1, neither included.
    sensitivity : float or Sensitivity
        Largest L2 change between neighbouring datasets.

    Returns
    -------
    float

    Raises
    ------
    ArgumentError
        If an argument is out of range.

    References
    ----------
    Balle and Wang (2018), Theorem 8.
    """
    _check_delta(delta)
    shift = _shift(sensitivity, sigma)
    target = math.log(delta)
    if _log_delta(0.0, shift) <= target:
        return 0.0

    def enough(log_epsilon: float) -> bool:
        return _log_delta(math.exp(log_epsilon), shift) <= target

    return math.exp(_first(enough)) * (1.0 + ACCURACY)


def _log_delta(epsilon: float, shift: float) -> float:
    """Log of the least delta for a change of `shift` standard deviations."""
    near, far = epsilon / shift - 0.5 * shift, epsilon / shift + 0.5 * shift
    if near < 0.0 and shift > _CLOSE:
        # exp(epsilon) Phi(-far) as a density times a Mills ratio: neither factor overflows
        density = math.exp(-0.5 * near * near) / _ROOT_TWO_PI
        return math.log(0.5 * math.erfc(near / math.sqrt(2.0)) - density * _mills(far))
    if shift > _CLOSE:
        gap = _mills(near) - _mills(far)
    else:
        # -R'(t) = 1 - t R(t) is smooth and positive
        at = epsilon / shift + 0.5 * shift * _NODES
        slopes = [_fall(float(t)) for t in at]
        gap = 0.5 * shift * math.fsum(w * s for w, s in zip(_WEIGHTS, slopes, strict=True))
    if gap <= 0.0:  # epsilon / shift beyond what doubles resolve
        return -math.inf
    return math.log(gap) - 0.5 * near * near - math.log(_ROOT_TWO_PI)


def _mills(t: float) -> float:
    """Mills ratio of the normal law, (1 - Phi(t)) / phi(t), for t >= -1."""
    if t < 5.0:
        return 0.5 * math.erfc(t / math.sqrt(2.0)) * math.exp(0.5 * t * t) * _ROOT_TWO_PI
    return 1.0 / (t + _tail(t))


def _fall(t: float) -> float:
    """Minus the derivative of the Mills ratio, 1 - t R(t), for t >= -1."""
    if t < 5.0:
        return 1.0 - t * _mills(t)
    tail = _tail(t)
    return tail / (t + tail)


def _tail(t: float) -> float:
    """Laplace's continued fraction 1/(t + 2/(t + 3/(t + ...))), for t >= 5."""
    value = t
    for k in range(60, 1, -1):
        value = t + k / value
    return 1.0 / value


def _first(holds: Callable[[float], bool]) -> float:
    """Find the least x at which a predicate that stays true becomes true."""
    low, high, step = 0.0, 0.0, 1.0
    while not holds(high):
        low, high, step = high, high + step, 2.0 * step
    step = 1.0
    while holds(low):
        low, step = low - step, 2.0 * step
    return bisected(lambda x: not holds(x), low, high)[1]


def _check_epsilon(epsilon: float) -> None:
    if not _is_number(epsilon) or not 0.0 <= epsilon <= _LARGEST_EPSILON:
        raise ArgumentError(
            f"epsilon is {epsilon!r}; give a number from 0 to {_LARGEST_EPSILON:g}."
        )


def _check_delta(delta: float) -> None:
    if not _is_number(delta) or not _LEAST_DELTA <= delta < 1.0:
        raise ArgumentError(
            f"delta is {delta!r}; give a number between 0 and 1, from {_LEAST_DELTA:g} on."
        )


def _shift(sensitivity: SupportsFloat, sigma: float) -> float:
    """Return the sensitivity in standard deviations."""
    size, spread = checked_positive("sensitivity", sensitivity), checked_positive("sigma", sigma)
    if not _LEAST_SHIFT * spread <= size <= _LARGEST_SHIFT * spread:
        raise ArgumentError(
            f"sigma is {spread:g} for the sensitivity {size:g}; give one that is from "
            f"{1 / _LARGEST_SHIFT:g} to {1 / _LEAST_SHIFT:g} times as large."
        )
    return size / spread


def checked_positive(name: str, value: SupportsFloat) -> float:
    """Return a positive, finite number."""
    if isinstance(value, bool) or not isinstance(value, SupportsFloat):
        raise ArgumentError(f"{name} is {value!r}; give a positive, finite number.")
    number = float(value)
    if not (math.isfinite(number) and number > 0):
        raise ArgumentError(f"{name} is {number!r}; give a positive, finite number.")
    return number


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)
