"""Confidence bounds for a probability, from the exact binomial law."""

from __future__ import annotations

import math

import numpy as np

# Bisections end at this width, relative to the probability.
_NARROW = 1e-10


def probability_bounds(successes: int, trials: int, error: float) -> tuple[float, float]:
    """Lower and upper confidence bound for a probability, each wrong with probability `error`.

    No success gives the lower bound 0, no failure the upper bound 1.

    References
    ----------
    Clopper and Pearson (1934).
    """
    lower = 0.0 if successes == 0 else _least(successes, trials, error)
    upper = 1.0 if successes == trials else 1.0 - _least(trials - successes, trials, error)
    return lower, upper


def _least(successes: int, trials: int, error: float) -> float:
    """Probability at which `successes` or more have probability `error`, rounded down."""
    k = np.arange(successes, trials + 1)
    steps = np.log(np.arange(trials, 0, -1.0)) - np.log(np.arange(1.0, trials + 1.0))
    ways = np.concatenate(([0.0], np.cumsum(steps)))[k]
    low, high = 0.0, 1.0
    while high - low > _NARROW * high:
        middle = 0.5 * (low + high)
        terms = ways + k * math.log(middle) + (trials - k) * math.log1p(-middle)
        top = float(terms.max())
        # the cumulated logarithms may be off in their last digits
        if top + math.log(float(np.exp(terms - top).sum())) + 1e-9 <= math.log(error):
            low = middle
        else:
            high = middle
    return low
