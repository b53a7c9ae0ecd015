"""Keys in order, against numpy's sorting."""

from __future__ import annotations

import numpy as np
import pytest

from congenial.kernels.projection.keys import position_bits
from support.kernel_entries import entry


@pytest.mark.parametrize("size", [1, 2, 40, 48, 49, 400])
def test_some_keys_are_sorted_and_the_others_stay(size):
    sort_keys = entry("projection.keys.sort_keys")
    keys = np.random.default_rng(size).permutation(10 * size)[: size + 4].astype(np.int64)
    given = keys.copy()
    sort_keys(keys, 2, size + 2)
    assert keys.tolist() == [*given[:2], *np.sort(given[2:-2]), *given[-2:]]


def test_keys_are_in_the_order_of_ranks_then_of_random_bits():
    key_of, rank_of = entry("projection.keys.key_of"), entry("projection.keys.rank_of")
    bits = position_bits(1000)
    assert 2 ** (bits - 1) < 1000 <= 2**bits
    rng = np.random.default_rng(1)
    words = rng.integers(0, 2**64, 200, dtype=np.uint64)
    for rank, word, position in zip(rng.integers(0, 2**24, 200), words, range(200), strict=True):
        key = key_of(rank, word, position, bits)
        assert key >= 0
        assert rank_of(key) == rank
        assert key & ((1 << bits) - 1) == position
    assert key_of(3, words[0], 5, bits) < key_of(4, words[1], 0, bits)
