"""The smallest of many keys, without sorting the rest.

Benchmark rows: `rounding`, `topdown`.
"""

from __future__ import annotations

import numpy as np

from congenial.kernels.numerics.compiling import njit

# A key has a rank, random bits that order equal ranks, and the position of its entry.
RANK_BITS = 24
_BELOW_RANK = 63 - RANK_BITS
_SMALL = 24


@njit()
def position_bits(count: int) -> int:
    """Bits that hold the positions of `count` entries."""
    bits = 1
    while (1 << bits) < count:
        bits += 1
    return bits


@njit(inner=True)
def key_of(rank: int, word: np.uint64, position: int, bits: int) -> int:
    """Return the key of a rank of 0 to 2^24 - 1 at a position of `bits` bits."""
    coin = np.int64(word >> np.uint64(64 - _BELOW_RANK))
    return int((np.int64(rank) << _BELOW_RANK) | ((coin >> bits) << bits) | np.int64(position))


@njit(inner=True)
def rank_of(key: int) -> int:
    """Return the rank of a key."""
    return key >> _BELOW_RANK


@njit(inner=True)
def _insert(keys: np.ndarray, a: int, b: int) -> None:
    """Sort keys a to b by insertion."""
    for i in range(a + 1, b):
        key, j = keys[i], i
        while j > a and keys[j - 1] > key:
            keys[j] = keys[j - 1]
            j -= 1
        keys[j] = key


@njit()
def select(keys: np.ndarray, count: int, least: int) -> None:
    """Bring the `least` smallest of the first `count` keys, all different, to the front."""
    a, b = 0, count
    while b - a > _SMALL and a < least < b:
        x, y, z = keys[a], keys[(a + b) // 2], keys[b - 1]
        pivot = max(min(x, y), min(max(x, y), z))
        i, j = a, b - 1
        while i <= j:
            while keys[i] < pivot:
                i += 1
            while keys[j] > pivot:
                j -= 1
            if i <= j:
                keys[i], keys[j] = keys[j], keys[i]
                i += 1
                j -= 1
        if least <= j:
            b = j + 1
        elif least >= i:
            a = i
        else:
            return
    if a < least < b:
        _insert(keys, a, b)


@njit(inner=True)
def sort_keys(keys: np.ndarray, a: int, b: int) -> None:
    """Sort keys a to b."""
    if b - a <= 2 * _SMALL:
        _insert(keys, a, b)
    else:
        keys[a:b].sort()
