"""The least few keys, against sorting."""

from __future__ import annotations

import numpy as np
import pytest

from congenial.kernels.projection.select import position_bits, select
from support.kernel_entries import entry


@pytest.mark.parametrize("seed", range(30))
def test_the_smallest_keys_come_to_the_front(seed):
    rng = np.random.default_rng(seed)
    size = int(rng.integers(1, 400))
    count = int(rng.integers(1, size + 1))
    least = int(rng.integers(0, count + 1))
    keys = rng.permutation(10 * size)[:size].astype(np.int64)
    given = keys.copy()
    select(keys, count, least)
    assert sorted(keys[:least]) == sorted(given[:count])[:least]
    assert sorted(keys[:count]) == sorted(given[:count])
    assert keys[count:].tolist() == given[count:].tolist()


def test_keys_are_in_the_order_of_ranks_then_of_random_bits():
    key_of, rank_of = entry("projection.select.key_of"), entry("projection.select.rank_of")
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
