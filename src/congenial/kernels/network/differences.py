"""Splits of a difference A - B of two sums of like geometric variables, without tables.

Benchmark row: `flat`.

Given A - B = s, the smaller of A and B is j with weights f(j) = C(j + n - 1, j)
C(j + |s| + n - 1, j + |s|) q^j, q = exp(-2 / scale), which are log-concave. On each side of their
mode m are blocks of d places, where f(m + d) < f(m) / 2, so f <= f(m) 2^-i on the i-th block. Fair
coins choose a block, and a uniform place in it is the proposal j. It is accepted with probability
`SURE` f(j) / (f(m) 2^-i), about one half on average (after Devroye 1987). Their number is
independent of the accepted place. Weights are compared by Stirling's series in doubled precision,
whose logarithms err by less than z 2^-90 if arguments of gamma functions are at most z. What that
leaves open is asked, and answered in exact arithmetic (`sum_network.direct`).

Proof: `proofs/forest-draws.md`.
"""

from __future__ import annotations

import math

import numpy as np

from congenial.kernels.numerics import elementary
from congenial.kernels.numerics.compiling import njit
from congenial.kernels.numerics.doubled import doubled_exp, doubled_log, over, plus, times
from congenial.kernels.numerics.tape import below_word, word_at

_HALF_LOG_TWO_PI = 0.9189385332046728
_HALF_LOG_TWO_PI_LOW = -3.878294158067242e-17
# Coefficients of Stirling's series, B_2k / (2k (2k - 1)): numerators and denominators.
_NUMERATOR = (1.0, -1.0, 1.0, -1.0, 1.0, -691.0, 1.0, -3617.0)
_DENOMINATOR = (12.0, 360.0, 1260.0, 1680.0, 1188.0, 360360.0, 156.0, 122400.0)
# Least argument at which the series has an error below 2^-95.
_LARGE = 64
# Less than log(1 / 2), also for a scale whose inverse is rounded.
_BELOW_HALF = -0.69315
# Factor of acceptances, so that the mode need not be exact.
SURE = 1.0 - 2.0**-40
# Relative error of an acceptance, for itself and for each nat.
_OFF = 2.0**-48
# Log of 2.
_LOG_TWO = 0.6931471805599453
# Entries of a question: operation, sum, mode, block, place, word.
QUESTION = 6


@njit(inner=True)
def _doubled(k):
    """Return an integer below 2^62."""
    high = float(k)
    return high, float(k - np.int64(high))


@njit(inner=True)
def doubled_log_gamma(z):
    """Return log((z - 1)!) for an integer z >= 1, within z 2^-92 + 2^-90."""
    shift_high, shift_low = 1.0, 0.0
    while z < _LARGE:
        shift_high, shift_low = times(shift_high, shift_low, float(z), 0.0)
        z += 1
    x, xl = _doubled(z)
    h, l = doubled_log(x, xl)
    a, al = plus(x, xl, -0.5, 0.0)
    h, l = times(a, al, h, l)
    h, l = plus(h, l, -x, -xl)
    h, l = plus(h, l, _HALF_LOG_TWO_PI, _HALF_LOG_TWO_PI_LOW)
    r, rl = over(1.0, 0.0, x, xl)
    square, square_low = times(r, rl, r, rl)
    t, tl = 0.0, 0.0
    for k in range(7, -1, -1):
        t, tl = times(t, tl, square, square_low)
        c, cl = over(_NUMERATOR[k], 0.0, _DENOMINATOR[k], 0.0)
        t, tl = plus(t, tl, c, cl)
    t, tl = times(t, tl, r, rl)
    h, l = plus(h, l, t, tl)
    if shift_high > 1.0:
        t, tl = doubled_log(shift_high, shift_low)
        h, l = plus(h, l, -t, -tl)
    return h, l


@njit(inner=True)
def log_weight(j, s, n, inverse):
    """Return log f(j) + 2 log((n - 1)!) for s >= 0, `inverse` being 1 / scale."""
    h, l = 0.0, 0.0
    for part in range(4):
        # j + n, j + 1, j + s + n, j + s + 1
        t, tl = doubled_log_gamma(j + (s if part & 2 else 0) + (1 if part & 1 else n))
        sign = -1.0 if part & 1 else 1.0
        h, l = plus(h, l, sign * t, sign * tl)
    x, xl = _doubled(j)
    t, tl = times(x, xl, -2.0 * inverse, 0.0)
    return plus(h, l, t, tl)


@njit(inner=True)
def _rises(j, s, n, q, ql):
    """Whether f(j + 1) > f(j)."""
    x, xl = _doubled(j + n)
    y, yl = _doubled(j + s + n)
    up, up_low = times(x, xl, y, yl)
    up, up_low = times(up, up_low, q, ql)
    x, xl = _doubled(j + 1)
    y, yl = _doubled(j + s + 1)
    down, down_low = times(x, xl, y, yl)
    difference, _ = plus(up, up_low, -down, -down_low)
    return difference > 0.0


@njit()
def place_blocks(s, n, inverse):
    """Return (mode, d above it, d below it) of the weights for s >= 0."""
    q, ql = doubled_exp(-2.0 * inverse, 0.0)
    a = -elementary.expm1(-2.0 * inverse)
    b = q * (2.0 * n + s) - (s + 2.0)
    c = q * n * (float(n) + s) - (s + 1.0)
    root = b * b + 4.0 * a * c
    mode = np.int64(max((b + math.sqrt(max(root, 0.0))) / (2.0 * a), 0.0))
    # a few steps suffice: the root is exact to a few units of the last place
    while _rises(mode, s, n, q, ql):
        mode += 1
    while mode > 0 and not _rises(mode - 1, s, n, q, ql):
        mode -= 1
    # the curvature of log f at its mode
    m, gap = float(mode), n - 1.0
    bend = gap / ((m + n) * (m + 1.0)) + gap / ((m + s + n) * (m + s + 1.0))
    first = np.int64(math.sqrt(2.0 * elementary.log(2.0) / bend)) + 1
    top, top_low = log_weight(mode, s, n, inverse)
    above, low = first, first
    for side in range(2):
        d = first
        while side == 0 or d <= mode:
            h, l = log_weight(mode + d if side == 0 else mode - d, s, n, inverse)
            h, l = plus(h, l, -top, -top_low)
            if h < _BELOW_HALF:
                break
            d += d // 16 + 1
        if side == 0:
            above = d
        else:
            low = d
    return mode, above, low


@njit(inner=True)
def acceptance(log, i, top, nats):
    """Return f(j) / (f(mode) 2^-i) and its error, from `log_weight` of j and of the mode.

    ``nats`` is the distance from the mode over the scale: the inverse scale is rounded.
    """
    h, l = log
    t, tl = top
    h, l = plus(h, l, -t, -tl)
    log_share = h + i * _LOG_TWO
    share = elementary.exp(log_share)
    return share, share * _OFF * (1.0 + i + abs(log_share) + nats)


@njit()
def split(first, second, third, n, inverse, words, values, begin, end, answers, question):
    """Split differences in columns begin..end-1 of `values` (slots, draws); return the words read.

    Operation i splits slot first[i], the sum of n[i] differences of geometric variables of scale
    1 / inverse[i], into slots second[i] >= 0 and third[i] <= 0. If more than ``words.size`` words
    were read, the result must be discarded. If it depends on a decision that is not among the
    ``answers`` (k,), which are given in order, the `QUESTION` is written and -1 returned.
    """
    at, asked = np.int64(0), 0
    for i in range(first.size):
        known = np.int64(-1)
        mode, above, low = np.int64(0), np.int64(0), np.int64(0)
        top = (0.0, 0.0)
        for column in range(begin, end):
            s = values[first[i], column]
            size = abs(s)
            if size != known:
                known = size
                mode, above, low = place_blocks(size, n[i], inverse[i])
                top = log_weight(mode, size, n[i], inverse[i])
            while True:
                u, at = below_word(above + low, words, at)
                block, left = 0, 64
                coins = word_at(words, at)
                while coins & np.uint64(1) and at <= words.size:
                    block += 1
                    left -= 1
                    coins >>= np.uint64(1)
                    if left == 0:
                        at += 1
                        coins, left = word_at(words, at), 64
                word = word_at(words, at + 1)
                at += 2
                j = mode + block * above + u
                if u >= above:
                    j = mode - 1 - (block * low + u - above)
                # beyond the end of the words, the result is discarded
                if at > words.size:
                    j = mode
                    break
                if j < 0:
                    continue
                log = log_weight(j, size, n[i], inverse[i])
                share, off = acceptance(log, block, top, abs(j - mode) * inverse[i])
                near = word * 2.0**-64 - SURE * share
                if abs(near) > off + 2.0**-52:
                    if near < 0.0:
                        break
                    continue
                if asked == answers.size:
                    question[0], question[1], question[2] = i, size, mode
                    question[3], question[4] = block, j
                    question[5] = np.int64(word)
                    return np.int64(-1)
                asked += 1
                if answers[asked - 1]:
                    break
            values[second[i], column] = j + max(s, 0)
            values[third[i], column] = -(j + max(-s, 0))
    return at
