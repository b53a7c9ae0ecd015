"""Summaries and errors by the laws of many counts.

The law of count v is ``flat[place[v]:place[v] + size[v]]``, from the value ``first[v]`` on.
"""

from __future__ import annotations

import numpy as np

from congenial.kernels.network.marginals import VARIANCE, summarise
from congenial.kernels.numerics.compiling import njit


@njit()
def summaries(alpha, first, size, place, flat, out):
    """Fill `out` (n, c) with the first c columns of `marginals.summarise` for each law."""
    row = np.empty(8)
    for v in range(first.size):
        # counted from the first value, because the reach around 0 is not needed
        summarise(flat[place[v] : place[v] + size[v]], 0, alpha, row)
        for i in range(out.shape[1]):
            out[v, i] = row[i] if i == VARIANCE else row[i] + first[v]


@njit()
def expected_errors(table, weights, first, size, place, flat):
    """Return the expected absolute error of a table, summed over its entries by `weights`."""
    total = 0.0
    for v in range(table.size):
        error = 0.0
        for i in range(size[v]):
            error += flat[place[v] + i] * abs(first[v] + i - table[v])
        total += weights[v] * error
    return total


@njit()
def up_to(begin, width, first, size, place, flat, out):
    """Fill `out` with the chances of at most each of the `width` values from `begin` on."""
    at = 0
    for v in range(first.size):
        below, i = 0.0, 0
        for k in range(begin[v], begin[v] + width[v]):
            while i < size[v] and first[v] + i <= k:
                below += flat[place[v] + i]
                i += 1
            out[at] = 1.0 if i == size[v] else below
            at += 1
