"""Sort keys of remainders: by rank, and equal ranks at random.

Benchmark row: `rounding`.
"""

from __future__ import annotations

import numpy as np

from congenial.kernels.numerics.compiling import njit

# A key has a rank, random bits that order equal ranks, and the position of its entry.
RANK_BITS = 24
_BELOW_RANK = 63 - RANK_BITS
# Most keys that are sorted by insertion.
_FEW = 48


@njit()
def position_bits(count):
    """Bits that hold the positions of `count` entries."""
    bits = 1
    while (1 << bits) < count:
        bits += 1
    return bits


@njit(inner=True)
def key_of(rank, word, position, bits):
    """Return the key of a rank of 0 to 2^24 - 1 at a position of `bits` bits."""
    coin = np.int64(word >> np.uint64(64 - _BELOW_RANK))
    return int((np.int64(rank) << _BELOW_RANK) | ((coin >> bits) << bits) | np.int64(position))


@njit(inner=True)
def rank_of(key):
    """Return the rank of a key."""
    return key >> _BELOW_RANK


@njit(inner=True)
def _insert(keys, a, b):
    """Sort keys a to b by insertion."""
    for i in range(a + 1, b):
        key, j = keys[i], i
        while j > a and keys[j - 1] > key:
            keys[j] = keys[j - 1]
            j -= 1
        keys[j] = key


@njit(inner=True)
def sort_keys(keys, a, b):
    """Sort keys a to b."""
    if b - a <= _FEW:
        _insert(keys, a, b)
    else:
        keys[a:b].sort()
