"""Bound on the error from subnormal factors in sums of products."""

from __future__ import annotations

import numpy as np

from congenial.kernels.numerics.compiling import njit

# Bound on the rounding error of a subnormal number, and the least number with full precision.
FAINT, CLEAR = 2.0**-1000, 2.0**-960
_ONE, _BEYOND = np.uint64(1), np.uint64(2**64 - 1)


@njit(inner=True, reordered=True)
def extent(p):
    """Return the sum of nonnegative numbers, and the least of 1 and the positive numbers."""
    total = 0.0
    for k in range(np.uint64(p.size)):
        total += p[k]
    # bit patterns have the order of the numbers, and 0 minus 1 wraps to the largest integer
    bits, least = p.view(np.uint64), _BEYOND
    for k in range(np.uint64(p.size)):
        less_one = bits[k] - _ONE
        least = min(least, less_one)
    return total, min(np.uint64(least + _ONE).view(np.float64), 1.0) if least < _BEYOND else 1.0


@njit(inner=True)
def lacking(sum_p, least_p, of_p, sum_q, least_q, of_q, terms):
    """Bound the error of sums of `terms` products whose factors have errors `of_p` and `of_q`.

    Sums and least entries of the factors are those of `extent`. Products that are not subnormal add
    no error of this kind.
    """
    faint = least_p * least_q < CLEAR or of_p > 0.0 or of_q > 0.0
    each = of_p * of_q + (FAINT if faint else 0.0)
    return of_p * sum_q + of_q * sum_p + each * terms
