"""Zero-concentrated differential privacy, and what it says in epsilon and delta.

References
----------
Bun and Steinke (2016), Concentrated differential privacy; Canonne, Kamath and Steinke (2020), The
discrete Gaussian for differential privacy, Proposition 12.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from congenial.errors import ArgumentError

# Orders are searched as exp(t) above 1, between these t.
_LOW, _HIGH = -40.0, 60.0
_STEPS = 200
_GOLDEN = 0.5 * (math.sqrt(5.0) - 1.0)


def zcdp_delta(rho: float, epsilon: float) -> float:
    """Delta of rho-zCDP at a given epsilon.

    The least over the orders a > 1 of ``exp((a - 1)(a rho - epsilon)) / a * (1 - 1 / a)^(a - 1)``.

    Parameters
    ----------
    rho, epsilon : float
        Not negative.

    Returns
    -------
    float
        At most 1.

    Raises
    ------
    ArgumentError
        If a number is negative or not finite.
    """
    _check("rho", rho)
    _check("epsilon", epsilon)
    if rho == 0.0:
        return 0.0
    return min(1.0, math.exp(min(0.0, _least(lambda t: _log_delta(rho, epsilon, t)))))


def zcdp_epsilon(rho: float, delta: float) -> float:
    """Epsilon of rho-zCDP at a given delta.

    The least over the orders a > 1 of
    ``a rho + (log(1 / delta) + (a - 1) log(1 - 1 / a) - log(a)) / (a - 1)``, never below 0.

    Parameters
    ----------
    rho : float
        Not negative.
    delta : float
        Between 0 and 1, 0 excluded.

    Returns
    -------
    float

    Raises
    ------
    ArgumentError
        If a number is out of range.
    """
    _check("rho", rho)
    if not 0.0 < delta <= 1.0:
        raise ArgumentError(f"delta is {delta!r}; give a number above 0, and at most 1.")
    if rho == 0.0:
        return 0.0
    return max(0.0, _least(lambda t: _epsilon_at(rho, delta, t)))


def zcdp_rho(epsilon: float, delta: float) -> float:
    """Largest rho whose `zcdp_epsilon` at a given delta is at most epsilon.

    Parameters
    ----------
    epsilon : float
        Positive.
    delta : float
        Between 0 and 1, neither included.

    Returns
    -------
    float

    Raises
    ------
    ArgumentError
        If a number is out of range.

    Examples
    --------
    >>> round(zcdp_rho(1.0, 1e-6), 6)
    0.024356
    """
    for name, value, most in (("epsilon", epsilon, math.inf), ("delta", delta, 1.0)):
        if not 0.0 < value < most:
            raise ArgumentError(f"{name} is {value!r}; give a number above 0 and below {most:g}.")
    low, high = 0.0, epsilon
    while zcdp_epsilon(high, delta) <= epsilon:
        low, high = high, 2.0 * high
    while True:
        middle = 0.5 * (low + high)
        if not low < middle < high:
            return low
        low, high = (middle, high) if zcdp_epsilon(middle, delta) <= epsilon else (low, middle)


def pure_rho(epsilon: float) -> float:
    """Return the rho of pure epsilon-privacy, ``epsilon**2 / 2``.

    Raises
    ------
    ArgumentError
        If epsilon is negative or not finite.

    References
    ----------
    Bun and Steinke (2016), Proposition 1.4.
    """
    _check("epsilon", epsilon)
    return 0.5 * epsilon * epsilon


def _check(name: str, value: float) -> None:
    if not (math.isfinite(value) and value >= 0.0):
        raise ArgumentError(f"{name} is {value!r}; give a number that is not negative.")


def _parts(t: float) -> tuple[float, float]:
    """Order a = 1 + exp(t), and log((1 - 1/a)^(a-1) / a)."""
    above = math.exp(t)
    # log(1 - 1/a) = log(above / (1 + above))
    return above, above * (t - math.log1p(above)) - math.log1p(above)


def _log_delta(rho: float, epsilon: float, t: float) -> float:
    above, rest = _parts(t)
    return above * ((1.0 + above) * rho - epsilon) + rest


def _epsilon_at(rho: float, delta: float, t: float) -> float:
    above, rest = _parts(t)
    return (1.0 + above) * rho + (rest - math.log(delta)) / above


def _least(value: Callable[[float], float]) -> float:
    """Least value on the range of t: every value bounds, so a search that misses is only loose."""
    grid = [_LOW + (_HIGH - _LOW) * i / 400.0 for i in range(401)]
    seen = [value(t) for t in grid]
    at = min(range(len(grid)), key=seen.__getitem__)
    low, high = grid[max(at - 1, 0)], grid[min(at + 1, len(grid) - 1)]
    for _ in range(_STEPS):
        one, two = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
        if value(one) < value(two):
            high = two
        else:
            low = one
    return min(seen[at], value(0.5 * (low + high)))
