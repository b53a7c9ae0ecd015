"""Bound on the error from subnormal factors in sums of products."""

from __future__ import annotations

import numpy as np

from congenial.kernels.numerics.compiling import njit

# More than what a number that is too small for its digits lacks, and one that has all of them.
FAINT, CLEAR = 2.0**-1000, 2.0**-960
_ONE, _BEYOND = np.uint64(1), np.uint64(2**64 - 1)


@njit(inner=True, reordered=True)
def extent(p):
    """Return the sum of nonnegative numbers, and the least of 1 and those that are positive."""
    total = 0.0
    for k in range(np.uint64(p.size)):
        total += p[k]
    # as integers these are in the same order, and 0 less one is beyond all
    bits, least = p.view(np.uint64), _BEYOND
    for k in range(np.uint64(p.size)):
        less_one = bits[k] - _ONE
        least = min(least, less_one)
    return total, min(np.uint64(least + _ONE).view(np.float64), 1.0) if least < _BEYOND else 1.0


@njit(inner=True)
def lacking(sum_p, least_p, of_p, sum_q, least_q, of_q, terms):
    """Return what sums of `terms` products lack at most, whose factors lack `of_p` and `of_q`.

    Sums and least entries of the factors are those of `extent`. Products lack nothing themselves
    where none is too small for its digits.
    """
    faint = least_p * least_q < CLEAR or of_p > 0.0 or of_q > 0.0
    each = of_p * of_q + (FAINT if faint else 0.0)
    return of_p * sum_q + of_q * sum_p + each * terms
