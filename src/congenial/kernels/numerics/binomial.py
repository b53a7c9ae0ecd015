"""Binomial variables, almost always from one random byte: tables in doubled precision.

Benchmark row: `flat`.
"""

from __future__ import annotations

import numpy as np

from congenial.kernels.numerics.compiling import njit
from congenial.kernels.numerics.doubled import over, plus, times, two_sum, word_of

BYTES = 256
# Entry of the table for which one more random word is needed.
MORE = 255


@njit(inner=True)
def fill_tables(n, odds, table, edges):
    """Fill the tables that map a random byte, or a byte and a word, to a binomial value.

    Values up to 64 have weights C(n, k) odds^k; larger values have less than 2^-100 together. The
    number of bytes that give k is its probability times 256, rounded down. The other bytes give
    `MORE`, and then the value is the first k with word < edges[k], or 64. Rounding to words costs
    less than 2^-62 in total variation.
    """
    top = min(n, 64)
    weight = np.empty((65, 2))
    for k in range(65):
        weight[k, 0], weight[k, 1] = 0.0, 0.0
    weight[0, 0] = 1.0
    sum_high, sum_low = 1.0, 0.0
    for k in range(top):
        h, l = two_sum(float(n), -float(k))
        h, l = times(h, l, odds, 0.0)
        h, l = times(weight[k, 0], weight[k, 1], h, l)
        h, l = over(h, l, k + 1.0, 0.0)
        weight[k + 1, 0], weight[k + 1, 1] = h, l
        sum_high, sum_low = plus(sum_high, sum_low, h, l)
    used = 0
    for k in range(top + 1):
        h, l = over(weight[k, 0] * 256.0, weight[k, 1] * 256.0, sum_high, sum_low)
        whole = np.floor(h)
        if h == whole and l < 0.0:
            whole -= 1.0
        for _ in range(np.int64(whole)):
            table[used] = k
            used += 1
        weight[k, 0], weight[k, 1] = plus(h, l, -whole, 0.0)
    for i in range(used, BYTES):
        table[i] = MORE
    sum_high, sum_low = 0.0, 0.0
    for k in range(65):
        sum_high, sum_low = plus(sum_high, sum_low, weight[k, 0], weight[k, 1])
        h, l = over(sum_high, sum_low, float(max(BYTES - used, 1)), 0.0)
        edges[k] = word_of(h, l)
