"""Names of many nodes in one array, of which a text is made only where one is asked for."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from operator import eq
from typing import Any, SupportsIndex, overload

import numpy as np
import numpy.typing as npt

from congenial.types import IntArray

TextArray = np.ndarray[tuple[int], np.dtype[Any]]  # of `KIND`
# 16 bytes for a name of up to 15 bytes.
KIND = np.dtypes.StringDType()
# Names that are turned into texts at a time.
_AT_ONCE = 1 << 14


class Names(Sequence[str]):
    """A sequence of names, such as a tuple of texts would be, held as an array of UTF-8."""

    def __init__(self, array: npt.NDArray[Any]) -> None:
        """Hold an array of texts, shape (n,), which nobody changes any more."""
        self.array: TextArray = np.asarray(array, dtype=KIND)
        self.array.flags.writeable = False

    @classmethod
    def of(cls, names: Iterable[str]) -> Names:
        """Return names as they are, or those of other texts; UnicodeError if UTF-8 has none."""
        if isinstance(names, Names):
            return names
        return cls(np.array([str(name) for name in names], dtype=KIND))

    def __len__(self) -> int:
        """Return the number of names."""
        return int(self.array.size)

    @overload
    def __getitem__(self, at: SupportsIndex) -> str: ...

    @overload
    def __getitem__(self, at: slice) -> Names: ...

    def __getitem__(self, at: SupportsIndex | slice) -> str | Names:
        """Return a name, or those of a slice."""
        return Names(self.array[at]) if isinstance(at, slice) else str(self.array[at])

    def __iter__(self) -> Iterator[str]:
        """Yield the names, some of which are texts at a time."""
        for begin in range(0, len(self), _AT_ONCE):
            yield from self.array[begin : begin + _AT_ONCE].tolist()

    def __eq__(self, other: object) -> bool:
        """Whether a sequence has the same names in the same order."""
        if isinstance(other, Names):
            return bool(np.array_equal(self.array, other.array))
        if not isinstance(other, tuple | list):
            return NotImplemented
        return len(other) == len(self) and all(map(eq, self, other))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Names({list(self)!r})"

    @cached_property
    def _order(self) -> IntArray:
        """Places of the names, sorted by UTF-8, which is the order of texts."""
        return np.argsort(self.array, kind="stable")

    def places(self, name: str) -> list[int]:
        """Return all places of a name, ascending."""
        # np.searchsorted reads beyond long texts (numpy issue 31533)
        order, text = self._order, self.array.item
        begin, end = (search(order, name, key=text) for search in (bisect_left, bisect_right))
        found: list[int] = order[begin:end].tolist()
        return found
