"""Binomial variables with exactly their law, almost always from one random byte.

Benchmark row: `flat`.

Value k has the weight W(k) = scale C(n, k) odds^k. All weights add up to a little less than 1. With
the probability that is left over, the draw begins again. `scale` and `odds` are doubles, so each
weight is an integer over a power of 2. Tables in doubled precision give bytes and words to k,
with a probability of a little less than W(k). The rest of W(k) belongs to `_DOUBTFUL` words, which
are decided in integers of any length (`proofs/uniform-compositions.md`).
"""

from __future__ import annotations

import math

import numpy as np

from congenial.kernels.numerics.compiling import njit
from congenial.kernels.numerics.doubled import over, plus, times, two_sum, word_of
from congenial.kernels.numerics.tape import below_word, scaled, word_at

BYTES = 256
# Entry of the table for which one more random word is needed.
MORE = 255
# Number of values that have an edge, 0 to 64.
_VALUES = 65
# Words that are left to each value, and to all larger values together, for integers to decide.
_DOUBTFUL = 4
# Amount by which sums of all weights stay below 1; it exceeds their rounding error.
_SLACK = 2.0**-50
# Bound on the error of a weight times 256, see the proof.
_ERROR = 2.0**-80
# Bits of a byte and a word.
_BITS = 72


@njit(inner=True)
def fill_tables(n, odds, table, edges):
    """Fill the tables of a binomial law; return `scale`.

    If n, the number of trials, exceeds 64, n * odds is at most 8. A byte gives its entry of
    `table`, shape (256,). At the entry `MORE`, a word gives the first k with word < edges[k],
    shape (65,). Larger words are for `_decide`.
    """
    top = min(n, 64)
    weight = np.empty((65, 2))
    weight[0, 0], weight[0, 1] = 1.0, 0.0
    sum_high, sum_low = 1.0, 0.0
    for k in range(top):
        h, l = two_sum(float(n), -float(k))
        h, l = times(h, l, odds, 0.0)
        h, l = times(weight[k, 0], weight[k, 1], h, l)
        h, l = over(h, l, k + 1.0, 0.0)
        if h < _ERROR * sum_high:  # all larger values are left to `_decide`
            top = k
            break
        weight[k + 1, 0], weight[k + 1, 1] = h, l
        sum_high, sum_low = plus(sum_high, sum_low, h, l)
    scale = (1.0 - _SLACK) / sum_high
    used = 0
    for k in range(top + 1):
        h, l = times(weight[k, 0], weight[k, 1], 256.0 * scale, 0.0)
        h, l = plus(h, l, -_ERROR, 0.0)
        whole = np.floor(h)
        if h == whole and l < 0.0:
            whole -= 1.0
        whole = max(whole, 0.0)
        for _ in range(np.int64(whole)):
            table[used] = k
            used += 1
        weight[k, 0], weight[k, 1] = plus(h, l, -whole, 0.0)
    for i in range(used, BYTES):
        table[i] = MORE
    one, edge = np.uint64(1), np.uint64(0)
    for k in range(_VALUES):
        if k <= top and weight[k, 0] > 0.0:
            h, l = over(weight[k, 0], weight[k, 1], float(BYTES - used), 0.0)
            # rounded down twice, because `word_of` may round up
            edge += max(word_of(h, l), one) - one
        edges[k] = edge
    return scale


@njit(inner=True)
def draw_more(n, odds, scale, table, edges, words, at):
    """Return (a binomial variable, at), given that a byte's entry in `table` is `MORE`."""
    while True:
        word = word_at(words, at)
        at += 1
        k = np.int64(0)
        while k < _VALUES and word >= edges[k]:
            k += 1
        if k == _VALUES:
            k, at = _decide(n, odds, scale, table, edges, word, words, at)
        if k >= 0:
            return k, at
        k = np.int64(table[word_at(words, at) & np.uint64(255)])
        at += 1
        if k != MORE:
            return k, at


@njit(inner=True)
def _decide(n, odds, scale, table, edges, word, words, at):
    """Return (a binomial variable, at) for a word beyond all edges; -1 to begin the draw again.

    The word names a value k. Values above 64 share their words; coins choose among these values.
    The value is returned with the probability that makes its chance W(k) in all, else -1.
    """
    left = word - edges[_VALUES - 1]
    if left >= np.uint64(_DOUBTFUL * (_VALUES + 1)):
        return np.int64(-1), at
    k, halvings = np.int64(left) // _DOUBTFUL, 0
    more, sure = np.uint64(0), np.uint64(0)
    for i in range(BYTES):
        more += np.uint64(table[i] == MORE)
    if k < _VALUES:
        sure = edges[k] - (edges[k - 1] if k > 0 else np.uint64(0))
    else:
        halvings = 1
        while word_at(words, at) & np.uint64(1):
            k, halvings, at = k + 1, halvings + 1, at + 1
        at += 1
    if k > n:
        return np.int64(-1), at
    digits, point = _weight(n, odds, scale, k)
    # a uniform number below `bound` is compared with the rest of the weight, digit by digit
    point -= _BITS + halvings
    bound = np.uint64(_DOUBTFUL) * more
    drawn, at = below_word(np.int64(bound), words, at)
    rest = _word_from(digits, point) - sure * more
    while np.uint64(drawn) == rest and point > 0:
        point -= 64
        rest = _word_from(digits, point)
        drawn, at = np.int64(word_at(words, at)), at + 1
    return (k if np.uint64(drawn) < rest else np.int64(-1)), at


@njit(inner=True)
def _weight(n, odds, scale, k):
    """Return (digits, point) with W(k) = digits / 2^point; digits are words, the lowest first."""
    digits = np.zeros(2 * k + 3, dtype=np.uint64)
    mantissa, exponent = math.frexp(scale)
    digits[0] = np.uint64(mantissa * 2.0**53)
    point = 53 - exponent
    mantissa, exponent = math.frexp(odds)
    for j in range(k):
        _multiply(digits, np.int64(mantissa * 2.0**53))
        _multiply(digits, np.int64(n) - j)
        _divide(digits, np.uint64(j + 1))  # without a remainder, as C(n, j + 1) is an integer
        point += 53 - exponent
    return digits, point


@njit(inner=True)
def _multiply(digits, factor):
    carry = np.uint64(0)
    for i in range(digits.size):
        high, low = scaled(digits[i], factor)
        digits[i] = low + carry
        carry = np.uint64(high) + np.uint64(digits[i] < low)


@njit(inner=True)
def _divide(digits, divisor):
    """Divide by a number below 2^32, rounding down."""
    half, rest = np.uint64(32), np.uint64(0)
    for i in range(digits.size - 1, -1, -1):
        upper = (rest << half) | (digits[i] >> half)
        rest = upper % divisor
        lower = (rest << half) | (digits[i] & np.uint64(0xFFFFFFFF))
        rest = lower % divisor
        digits[i] = ((upper // divisor) << half) | (lower // divisor)


@njit(inner=True)
def _word_from(digits, bit):
    """Return 64 bits from a position on, which may be negative or beyond the last digit."""
    i, by = bit >> 6, np.uint64(bit & 63)
    low = digits[i] if 0 <= i < digits.size else np.uint64(0)
    high = digits[i + 1] if 0 <= i + 1 < digits.size else np.uint64(0)
    return (low >> by) | ((high << np.uint64(1)) << (np.uint64(63) - by))
