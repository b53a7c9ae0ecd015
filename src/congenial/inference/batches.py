"""Functions of many draws, computed batch by batch."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from congenial.errors import ArgumentError
from congenial.noise.additive import checked_size
from congenial.types import IntArray

# Values held at once
_VALUES = 1 << 24


def in_batches(
    sample: Callable[[int], IntArray], size: int, n: int, ask: Callable[[IntArray], IntArray]
) -> IntArray:
    """Apply a function to `size` draws of n nodes, and return one value for each draw."""
    rows = checked_size(size)
    if rows < 1:
        raise ArgumentError("size is 0; give a positive number of draws.")
    batch = max(1, _VALUES // n)
    parts = [min(batch, rows - begin) for begin in range(0, rows, batch)]
    return np.concatenate([ask(sample(count)) for count in parts])


def truths(event: Callable[[IntArray], npt.ArrayLike]) -> Callable[[IntArray], IntArray]:
    """Return the event as a function with checked values 0 and 1."""

    def ask(z: IntArray) -> IntArray:
        found = np.asarray(event(z))
        if found.shape != (z.shape[0],) or found.dtype.kind != "b":
            raise ArgumentError(
                f"the event gave shape {found.shape} and dtype {found.dtype}; give one truth "
                "value for each of the draws."
            )
        return found.astype(np.int64)

    return ask
