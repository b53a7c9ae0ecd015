"""How large the noise of each entry can be, from bounds on it and on sums that it is in."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from congenial.conditioning.forest import structure_rows
from congenial.invariants import Requirements

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
# Rounds over all rows; bounds travel one row further in each.
_ROUNDS = 4


def largest_noise(need: Requirements, lo: FloatArray, hi: FloatArray) -> FloatArray:
    """Return an upper bound on the size of each entry's noise, inf where there is none.

    Parameters
    ----------
    need : Requirements
    lo, hi : ndarray of float64, shape (n,)
        Bounds on the noise of each entry alone.

    Notes
    -----
    With ``row @ u == 0``, an entry is no more than what the ends of all others leave it.
    """
    lo, hi = lo.copy(), hi.copy()
    for _ in range(_ROUNDS):
        for at, row in _rows(need):
            low, high = (
                np.minimum(row * lo[at], row * hi[at]),
                np.maximum(row * lo[at], row * hi[at]),
            )
            most, least = -_others(low) / row, -_others(high) / row
            lo[at] = np.maximum(lo[at], np.minimum(most, least))
            hi[at] = np.minimum(hi[at], np.maximum(most, least))
    return np.maximum(-lo, hi)


def _rows(need: Requirements) -> Iterator[tuple[IntArray, FloatArray]]:
    for row in need.equalities[0]:
        at = np.flatnonzero(row)
        yield at, row[at]
    for at, signs in structure_rows(need):
        yield at, signs.astype(np.float64)


def _others(ends: FloatArray) -> FloatArray:
    """Sum of all entries but each, where infinite ones are all of one sign."""
    infinite = np.isinf(ends)
    whole = ends[~infinite].sum()
    left = infinite.sum() - infinite
    sign = ends[infinite][0] if infinite.any() else 0.0
    return np.where(left > 0, sign, whole - np.where(infinite, 0.0, ends))
