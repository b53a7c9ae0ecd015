"""Priors of counts, enumerated."""

from __future__ import annotations

import math

HIGHEST = 60


def log_count(k, mean, dispersion, zeros=0.0):
    """Log probability of a count, Poisson where the dispersion is inf, 0 more often by `zeros`."""
    if zeros:
        p = (1.0 - zeros) * math.exp(log_count(k, mean, dispersion)) + zeros * (k == 0)
        return math.log(p) if p else -math.inf
    if math.isinf(dispersion):
        return k * math.log(mean) - mean - math.lgamma(k + 1)
    b = mean / (mean + dispersion)
    counts = math.lgamma(k + dispersion) - math.lgamma(dispersion) - math.lgamma(k + 1)
    return counts + k * math.log(b) + dispersion * math.log1p(-b)
