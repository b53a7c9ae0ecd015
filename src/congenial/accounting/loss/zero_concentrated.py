"""Zero-concentrated differential privacy, and what it says in epsilon and delta.

References
----------
Bun and Steinke (2016), Concentrated differential privacy; Canonne, Kamath and Steinke (2020), The
discrete Gaussian for differential privacy, Proposition 12.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from numbers import Real

from congenial.accounting.loss.bisection import bisected
from congenial.errors import ArgumentError

# Range of t in which orders 1 + exp(t) are searched, and steps and ratio of the golden section.
_LOW, _HIGH = -40.0, 60.0
_STEPS = 200
_GOLDEN = 0.5 * (math.sqrt(5.0) - 1.0)


def zcdp_delta(rho: float, epsilon: float, *, whole_orders: bool = False) -> float:
    """Delta of rho-zCDP at a given epsilon.

    The least over the orders a > 1 of ``exp((a - 1)(a rho - epsilon)) / a * (1 - 1 / a)^(a - 1)``.

    Parameters
    ----------
    rho, epsilon : float
        Not negative.
    whole_orders : bool
        Whether rho is known for the orders 2, 3, … alone.

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

    def log_delta(above: float) -> float:
        return above * ((1.0 + above) * rho - epsilon) + _rest(above)

    return math.exp(min(0.0, _least(log_delta, whole_orders)))


def zcdp_epsilon(rho: float, delta: float, *, whole_orders: bool = False) -> float:
    """Epsilon of rho-zCDP at a given delta.

    The least over the orders a > 1 of
    ``a rho + (log(1 / delta) + (a - 1) log(1 - 1 / a) - log(a)) / (a - 1)``, never below 0.

    Parameters
    ----------
    rho : float
        Not negative.
    delta : float
        Between 0 and 1, 0 excluded.
    whole_orders : bool
        Whether rho is known for the orders 2, 3, … alone.

    Returns
    -------
    float

    Raises
    ------
    ArgumentError
        If a number is out of range.
    """
    _check("rho", rho)
    if not is_number(delta) or not 0.0 < delta <= 1.0:
        raise ArgumentError(f"delta is {delta!r}; give a number above 0, and at most 1.")
    if rho == 0.0:
        return 0.0

    def epsilon(above: float) -> float:
        return (1.0 + above) * rho + (_rest(above) - math.log(delta)) / above

    return max(0.0, _least(epsilon, whole_orders))


def zcdp_rho(epsilon: float, delta: float, *, whole_orders: bool = False) -> float:
    """Largest rho whose `zcdp_epsilon` at a given delta is at most epsilon.

    Parameters
    ----------
    epsilon : float
        Positive.
    delta : float
        Between 0 and 1, neither included.
    whole_orders : bool
        As for `zcdp_epsilon`.

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
        if not is_number(value) or not 0.0 < value < most:
            raise ArgumentError(f"{name} is {value!r}; give a number above 0 and below {most:g}.")

    def fits(rho: float) -> bool:
        return zcdp_epsilon(rho, delta, whole_orders=whole_orders) <= epsilon

    low, high = 0.0, epsilon
    while fits(high):
        low, high = high, 2.0 * high
    return bisected(fits, low, high)[0]


def pure_rho(epsilon: float) -> float:
    """Return the rho of pure epsilon-privacy, ``epsilon**2 / 2``.

    Parameters
    ----------
    epsilon : float
        Not negative.

    Returns
    -------
    float

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
    if not (is_number(value) and math.isfinite(value) and value >= 0.0):
        raise ArgumentError(f"{name} is {value!r}; give a number that is not negative.")


def is_number(value: object) -> bool:
    """Whether a value is a real number, and no bool."""
    return isinstance(value, Real) and not isinstance(value, bool)


def _rest(above: float) -> float:
    """log((1 - 1/a)^(a-1) / a) for the order a = 1 + above."""
    # log(1 - 1/a) = log(above / (1 + above))
    return above * (math.log(above) - math.log1p(above)) - math.log1p(above)


def _least(value: Callable[[float], float], whole: bool) -> float:
    """Least value over the orders, given as their distance above 1.

    The value at every order is a bound, so a search that misses the least is only loose.
    """
    grid = [_LOW + (_HIGH - _LOW) * i / 400.0 for i in range(401)]
    seen = [value(math.exp(t)) for t in grid]
    at = min(range(len(grid)), key=seen.__getitem__)
    low, high = grid[max(at - 1, 0)], grid[min(at + 1, len(grid) - 1)]
    for _ in range(_STEPS):
        one, two = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
        if value(math.exp(one)) < value(math.exp(two)):
            high = two
        else:
            low = one
    best = math.exp(0.5 * (low + high))
    if not whole:
        return min(seen[at], value(best))
    below = max(1.0, math.floor(best))
    return min(value(below), value(below + 1.0))
