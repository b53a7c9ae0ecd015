"""Uniform integers from a tape of random words, read from an index on.

Beyond its end, a tape gives arbitrary values. The caller sees how far the tape was read, extends
the same tape and starts again, so that the law does not depend on the tape's length.
"""

from __future__ import annotations

import numpy as np

from congenial.kernels.numerics.compiling import njit

_LOW = np.uint64(0xFFFFFFFF)


@njit(inner=True)
def scaled(word, total):
    """Return (high, low) words of word * total; `high` is below `total`."""
    t = np.uint64(total)
    w1, w0 = word >> np.uint64(32), word & _LOW
    t1, t0 = t >> np.uint64(32), t & _LOW
    lowest = w0 * t0
    middle = w1 * t0 + (lowest >> np.uint64(32))
    upper = w0 * t1 + (middle & _LOW)
    high = w1 * t1 + (middle >> np.uint64(32)) + (upper >> np.uint64(32))
    return np.int64(high), (upper << np.uint64(32)) | (lowest & _LOW)


@njit(inner=True)
def word_at(words, at):
    """Return words[at]; beyond the end, an arbitrary value."""
    if at < words.size:
        return words[at]
    x = np.uint64(at) * np.uint64(0x9E3779B97F4A7C15)
    return x ^ (x >> np.uint64(32))


@njit(inner=True)
def below_word(total, words, at):
    """Return (a uniform integer below `total`, at), from one word nearly always (Lemire 2019)."""
    t = np.uint64(total)
    while True:
        high, low = scaled(word_at(words, at), total)
        at += 1
        if low >= t or low >= (~t + np.uint64(1)) % t:
            return high, at


@njit(inner=True)
def below_bits(total, words, at, pool, left, size):
    """Return (a uniform integer below `total`, at, pool, left), from 16 or 32 bits.

    The bits are the `left` bits in `pool`, then those of words[at], ... The compiler makes this
    fast if `size` is a constant.
    """
    by, t = np.uint64(size), np.uint64(total)
    mask = (np.uint64(1) << by) - np.uint64(1)
    while True:
        if left < size:
            pool, left = word_at(words, at), np.int64(64)
            at += 1
        product = (pool & mask) * t
        pool >>= by
        left -= size
        low = product & mask
        if low >= t or low >= (mask + np.uint64(1)) % t:
            return np.int64(product >> by), at, pool, left
