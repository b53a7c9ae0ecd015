"""Bisection to adjacent doubles."""

from __future__ import annotations

from collections.abc import Callable


def bisected(fits: Callable[[float], bool], low: float, high: float) -> tuple[float, float]:
    """Narrow an interval at whose lower end alone `fits` is true to two adjacent doubles."""
    while low < (middle := 0.5 * (low + high)) < high:
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low, high
