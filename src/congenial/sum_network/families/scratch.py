"""Memory that loops use again."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from congenial.types import FloatArray


class Scratch:
    """Arrays by name, whose memory is kept: to get fresh memory takes as long as to fill it."""

    def __init__(self) -> None:
        self._kept: dict[str, FloatArray] = {}

    def doubles(self, name: str, rows: int, columns: int) -> FloatArray:
        """Return an array with any entries; it holds until one of the same name is asked for."""
        size, kept = rows * columns, self._kept.get(name)
        if kept is None or kept.size < size:
            kept = self._kept[name] = np.empty(size)
        return kept[:size].reshape(rows, columns)

    def complexes(self, name: str, rows: int, columns: int) -> npt.NDArray[np.complex128]:
        """Return the same of complex numbers."""
        return self.doubles(name, rows, 2 * columns).view(np.complex128)
