"""Memory that loops use again."""

from __future__ import annotations

import numpy as np

from congenial.sum_network.families.scratch import Scratch


def test_memory_is_used_again_by_arrays_of_one_name_and_by_no_others():
    scratch = Scratch()
    first = scratch.doubles("a", 3, 8)
    again, other = scratch.doubles("a", 4, 5), scratch.doubles("b", 4, 5)
    numbers = scratch.complexes("a", 2, 6)
    assert (first.shape, again.shape, numbers.shape) == ((3, 8), (4, 5), (2, 6))
    assert numbers.dtype == np.complex128
    assert np.shares_memory(first, again)
    assert np.shares_memory(first, numbers)
    assert not np.shares_memory(first, other)
    assert scratch.doubles("a", 5, 5).size == 25
