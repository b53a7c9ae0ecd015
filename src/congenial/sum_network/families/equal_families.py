"""Families of leaves with equal laws, whose tables are filled once.

Most census blocks are empty: of Washington's, under half have leaves that no other block beside
them has.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from congenial.kernels.network import equal_families as kernels
from congenial.types import IntArray


def first_equal(
    number: IntArray,
    keys: Sequence[IntArray],
    begins: IntArray,
    lists: tuple[IntArray, IntArray],
    m: int,
) -> IntArray:
    """Return for each of m families the first one that is equal to it, often itself; shape (m,).

    Only families `number`, in order, can be equal: where all of their `keys`, shape (m,), are, and
    their parts of both lists, which begin at `begins` (m + 1,).
    """
    out = np.arange(m)
    own = np.stack([key[number] for key in keys], axis=1)
    seen = np.full(1 << int(2 * number.size).bit_length(), -1)
    kernels.first_equal(number, own, begins, lists, seen, out)
    return out


def ranges(start: IntArray, length: IntArray) -> IntArray:
    """Return the numbers start, ..., start + length - 1 of all ranges, one after another."""
    skipped = start - (np.cumsum(length) - length)
    return np.repeat(skipped, length) + np.arange(int(length.sum()))
