"""Families of leaves with equal laws, whose tables are filled once.

Most census blocks are empty: of Washington's, under half have leaves that no other block beside
them has.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from congenial.randomness import Bits
from congenial.types import BoolArray, IntArray

# Odd multipliers that mix the bits of whole numbers, and how far the high bits are moved down.
_MIX, _DOWN = (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9), np.uint64(31)


def first_equal(
    number: IntArray,
    keys: Sequence[IntArray],
    begins: IntArray,
    lists: Sequence[IntArray],
    m: int,
) -> IntArray:
    """Return for each of m families the first one that is equal to it, often itself; shape (m,).

    Only families `number` can be equal: where all of their `keys`, shape (m,), are, and their parts
    of all `lists`, which begin at `begins` (m + 1,) and are not empty.
    """
    out = np.arange(m)
    if not number.size:
        return out
    start, length = begins[number], np.diff(begins)[number]
    at = ranges(start, length)
    mixed = _mixed((at - np.repeat(start, length)).astype(np.uint64))
    for one in lists:
        mixed = _mixed(mixed + one[at].astype(np.uint64))
    hashed = np.add.reduceat(mixed, np.cumsum(length) - length)
    for key in keys:
        hashed = _mixed(hashed + key[number].astype(np.uint64))
    order = np.argsort(hashed, kind="stable")
    # equal hashes are compared: those of different families only cost time
    one, other = order[:-1], order[1:]
    same = (hashed[one] == hashed[other]) & (length[one] == length[other])
    for key in keys:
        same &= key[number[one]] == key[number[other]]
    one, other, pairs = one[same], other[same], np.flatnonzero(same)
    at, by = ranges(start[one], length[one]), ranges(start[other], length[other])
    equal: BoolArray = np.ones(at.size, dtype=np.bool_)
    for each in lists:
        equal &= each[at] == each[by]
    if pairs.size:
        ends = np.cumsum(length[one]) - length[one]
        same[pairs] = np.logical_and.reduceat(equal, ends)
    group = np.cumsum(np.append(False, ~same))
    first = order[np.flatnonzero(np.append(True, ~same))]
    out[number[order]] = number[first][group]
    return out


def ranges(start: IntArray, length: IntArray) -> IntArray:
    """Return the numbers start, ..., start + length - 1 of all ranges, one after another."""
    skipped = start - (np.cumsum(length) - length)
    return np.repeat(skipped, length) + np.arange(int(length.sum()))


def _mixed(words: Bits) -> Bits:
    for by in _MIX:
        words = words * np.uint64(by)
        words ^= words >> _DOWN
    return words
