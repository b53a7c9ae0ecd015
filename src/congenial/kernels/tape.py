"""Uniform integers from a tape of random words, read from one index on.

A tape that ends too soon goes on with anything: the caller sees how far it was read, makes the same
tape longer and begins anew, so that the law does not depend on its length.
"""

from __future__ import annotations

import numpy as np
from numba import njit

_LOW = np.uint64(0xFFFFFFFF)


@njit(cache=True)
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


@njit(cache=True)
def word_at(words, at):
    """Return words[at], or anything beyond the end."""
    if at < words.size:
        return words[at]
    x = np.uint64(at) * np.uint64(0x9E3779B97F4A7C15)
    return x ^ (x >> np.uint64(32))


@njit(cache=True)
def take_bits(words, at, pool, left, count):
    """Return (`count` <= 32 fresh bits, at, pool, left): `left` bits are in `pool`, then words."""
    if left < count:
        pool, left = word_at(words, at), np.int64(64)
        at += 1
    got = np.int64(pool & ((np.uint64(1) << np.uint64(count)) - np.uint64(1)))
    return got, at, pool >> np.uint64(count), left - count


@njit(cache=True)
def bits_for(total):
    """Return how many bits are scaled to a number below `total`."""
    if total <= 1 << 12:
        return 16
    return 32 if total <= 1 << 28 else 64


@njit(cache=True)
def below_word(total, words, at):
    """Return (a uniform integer below `total`, at), from one word nearly always (Lemire 2019)."""
    t = np.uint64(total)
    while True:
        high, low = scaled(word_at(words, at), total)
        at += 1
        if low >= t or low >= (~t + np.uint64(1)) % t:
            return high, at


@njit(cache=True)
def below_bits(total, words, at, pool, left, size):
    """Return (a uniform integer below `total`, at, pool, left), from `size` bits, 64 or less."""
    if size == 64:
        high, at = below_word(total, words, at)
        return high, at, pool, left
    while True:
        got, at, pool, left = take_bits(words, at, pool, left, size)
        product = got * total
        low = product & ((1 << size) - 1)
        if low >= total or low >= (1 << size) % total:
            return product >> size, at, pool, left
