"""Few numbers put in order, against sorting."""

from __future__ import annotations

from itertools import permutations, product

import numpy as np

from support.kernel_entries import entry


def test_marks_are_read_in_order():
    read = entry("numerics.ordering.read_marks")
    rng = np.random.default_rng(2)
    for marks in [0, 1, 2**63, 2**64 - 1, *rng.integers(0, 2**63, 50).tolist()]:
        chosen = np.full(66, -1, dtype=np.int64)
        stop = read(np.uint64(marks), 100, chosen, np.uint64(1))
        bits = [100 + i for i in range(64) if marks >> i & 1]
        assert chosen[1 : int(stop)].tolist() == bits
        assert (chosen[int(stop) :] == -1).all()


def test_an_inserted_number_is_in_its_place_once():
    insert = entry("numerics.ordering.insert")
    rng = np.random.default_rng(3)
    chosen, stop, known = np.zeros(60, dtype=np.int64), 2, set()
    for value in rng.integers(0, 40, 60).tolist():
        new = insert(value, chosen, 2, stop)
        assert new == (value not in known)
        known.add(value)
        stop += new
        assert chosen[2:stop].tolist() == sorted(known)


def test_five_numbers_in_any_order():
    in_order = entry("numerics.ordering.in_order")
    # nine comparisons sort all numbers if they sort zeros and ones
    for five in [*permutations(range(5)), *product((0, 1), repeat=5)]:
        assert list(in_order(*five)) == sorted(five)
