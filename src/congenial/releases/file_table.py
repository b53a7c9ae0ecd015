"""Columns of a release's files as arrays: numbers that may be missing, and texts by codes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import cast

import numpy as np
import numpy.typing as npt

from congenial.domain.names import Names
from congenial.types import BoolArray, FloatArray, IntArray

# Code of a missing text, and of a text that a column does not have.
NONE, ABSENT = -1, -2
# Relative tolerance of two scales: machines may round the last digits differently.
_TOLERANCE = 1e-12


@dataclass(frozen=True, eq=False)
class Numbers:
    """A column of integers or of real numbers."""

    values: IntArray | FloatArray  # shape (n,): Any number where there is none.
    known: BoolArray  # shape (n,): Whether there is a number.

    def __len__(self) -> int:
        """Return the number of rows."""
        return int(self.known.size)

    def take(self, rows: IntArray | slice) -> Numbers:
        """Return some of the numbers."""
        return Numbers(self.values[rows], self.known[rows])

    def objects(self) -> list[object]:
        """The numbers, None where there is none."""
        values: list[object] = self.values.tolist()
        if self.known.all():
            return values
        return [v if k else None for v, k in zip(values, self.known.tolist(), strict=True)]

    def cells(self) -> list[str]:
        """The numbers as text, empty where there is none."""
        texts = list(map(str, self.values.tolist()))
        for v in np.flatnonzero(~self.known).tolist():
            texts[v] = ""
        return texts


@dataclass(frozen=True, eq=False)
class Texts:
    """A column of texts, each different one of which is held once."""

    codes: npt.NDArray[np.int32]  # shape (n,): The place of each text in `words`, or `NONE`.
    words: Names

    def __len__(self) -> int:
        """Return the number of rows."""
        return int(self.codes.size)

    def take(self, rows: IntArray | slice) -> Texts:
        """Return some of the texts."""
        return Texts(self.codes[rows], self.words)

    def objects(self) -> list[object]:
        """The texts, None where there is none."""
        return [*np.array([*self.words, None], dtype=object)[self.codes]]

    def cells(self) -> list[str]:
        """The texts, empty where there is none."""
        return [*np.array([*self.words, ""], dtype=object)[self.codes]]

    def code(self, texts: Iterable[str | None]) -> npt.NDArray[np.int32]:
        """Return the code of each of some texts; `ABSENT` for one that the column does not have."""
        if isinstance(texts, Names) and texts == self.words:
            return np.arange(len(texts), dtype=np.int32)
        place: dict[str | None, int] = {word: code for code, word in enumerate(self.words)}
        place[None] = NONE
        return np.array([place.get(text, ABSENT) for text in texts], dtype=np.int32)


Column = Numbers | Texts
# Name and DuckDB type of each column.
Columns = tuple[tuple[str, str], ...]


@dataclass(frozen=True, eq=False)
class FileTable:
    """A table of a release as read from a Parquet file."""

    columns: Columns
    data: tuple[Column, ...]

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.data[0])

    def __getitem__(self, name: str) -> Column:
        """Return a column."""
        return self.data[[c for c, _ in self.columns].index(name)]

    def numbers(self, name: str) -> Numbers:
        """Return a column of numbers; those of a column of texts are missing."""
        found = self[name]
        if isinstance(found, Numbers):
            return found
        none = np.zeros(len(self), dtype=np.int64)
        return Numbers(none, none.astype(np.bool_))

    def texts(self, name: str) -> Texts:
        """Return a column of texts; those of a column of numbers are missing."""
        found = self[name]
        return found if isinstance(found, Texts) else texts_of([None] * len(self))

    def take(self, rows: IntArray) -> FileTable:
        """Return some of the rows, in a given order."""
        return replace(self, data=tuple(column.take(rows) for column in self.data))

    def column(self, name: str) -> list[object]:
        """Values of one column as integers, floats or text, None where there is none."""
        return self[name].objects()


def different(one: Column, other: Column) -> BoolArray:
    """Whether each entry differs between two columns, real numbers beyond rounding."""
    if isinstance(one, Texts) and isinstance(other, Texts):
        return np.asarray(one.codes != np.append(one.code(other.words), NONE)[other.codes])
    if isinstance(one, Texts) or isinstance(other, Texts):
        raise TypeError("a column of numbers is not compared with one of texts")
    same = one.values == other.values
    if "f" in {one.values.dtype.kind, other.values.dtype.kind}:
        same |= np.isclose(one.values, other.values, rtol=_TOLERANCE, atol=0.0)
    return np.asarray((one.known != other.known) | (one.known & ~same))


def texts_of(texts: Iterable[str | None]) -> Texts:
    """Return a column of texts; a few of them at a time are Python objects, but for words."""
    place = _Numbering({None: NONE})
    codes = np.fromiter(map(place.__getitem__, texts), dtype=np.int32)
    del place[None]
    return Texts(codes, Names.of(cast("dict[str, int]", place)))


class _Numbering(dict[str | None, int]):
    """Numbers texts in the order of their first occurrence."""

    def __missing__(self, text: str | None) -> int:
        number = len(self) - 1  # without None, which has no text
        self[text] = number
        return number


def every(values: IntArray) -> Numbers:
    """Return a column without a missing number."""
    return Numbers(values, np.ones(values.size, dtype=np.bool_))


def repeated(words: Sequence[str], codes: npt.ArrayLike) -> Texts:
    """Return a column of a few texts by their places."""
    return Texts(np.asarray(codes, dtype=np.int32), Names.of(words))
