"""Uniform integers from random words, against arithmetic on whole numbers."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from support.kernel_entries import entry


def test_products_of_words():
    scaled = entry("numerics.tape.scaled")
    rng = np.random.default_rng(1)
    for _ in range(300):
        word = rng.integers(0, 2**64, dtype=np.uint64)
        total = int(rng.integers(1, 2**62))
        high, low = scaled(word, total)
        assert divmod(int(word) * total, 2**64) == (high, int(low))


@pytest.mark.parametrize("total", [1, 3, 10, 2**15 + 1])
def test_every_integer_below_the_total_has_as_many_of_the_bits(total):
    kernel = entry("numerics.tape.below_bits")
    spare = np.zeros(1, dtype=np.uint64)
    given = Counter()
    for bits in range(2**16):
        value, at, _, _ = kernel(total, spare, 0, np.uint64(bits), 16, 16)
        if at == 0:  # the bits sufficed
            given[value] += 1
    assert set(given) == set(range(total))
    assert len(set(given.values())) == 1


def test_a_word_that_would_favour_some_integers_is_left_out():
    kernel = entry("numerics.tape.below_word")
    total = 3 * 2**61
    words = np.array([0, 2**63, 2**64 - 1], dtype=np.uint64)
    for first in range(3):
        value, at = kernel(total, words, first)
        kept = next(i for i in range(first, 9) if i > 2 or int(words[i]) * total % 2**64 >= 2**62)
        assert at == kept + 1
        assert kept > 2 or value == int(words[kept]) * total >> 64


def test_a_tape_that_ends_goes_on():
    word_at = entry("numerics.tape.word_at")
    words = np.arange(5, dtype=np.uint64)
    assert [word_at(words, at) for at in range(5)] == list(range(5))
    assert len({word_at(words, at) for at in range(5, 50)}) == 45
