"""A table whose parts are files already: their bytes are copied, and no row is read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from congenial.errors import ReleaseError
from congenial.releases import directory as files
from congenial.releases.file_table import Columns
from congenial.releases.making.parquet_footers import (
    MAGIC,
    Record,
    end_of,
    piece_of,
    same_columns,
)


class PartFiles(NamedTuple):
    """The rows of a part as lines of CSV, without a header, and as a Parquet file."""

    lines: memoryview
    parquet: memoryview


# Appends the rows of a part to both files of a table.
Append = Callable[[PartFiles], None]


@contextmanager
def joining(place: Path, names: tuple[str, str], columns: Columns) -> Iterator[Append]:
    """Yield a function that appends the files of a part to those of a table.

    Raises ReleaseError if two parts have different columns.
    """
    first: Record | None = None
    groups, rows = list[bytes](), 0
    with (place / names[0]).open("wb") as text, (place / names[1]).open("wb") as parquet:

        def append(part: PartFiles) -> None:
            nonlocal first, rows
            piece = piece_of(part.parquet)
            first = first or piece.footer
            if not same_columns(first, piece.footer):
                raise ReleaseError(
                    "two parts of the release have different columns; install one version of "
                    "DuckDB on all workers, and release again."
                )
            # the pages of a file by itself begin after its magic word
            groups.extend(piece.groups(parquet.tell() - len(MAGIC)))
            rows += piece.rows
            text.write(part.lines)
            parquet.write(piece.pages)

        text.write(files.header_of(columns))
        parquet.write(MAGIC)
        yield append
        if first is None:
            raise AssertionError("a release has a part")
        parquet.write(end_of(first, groups, rows))
