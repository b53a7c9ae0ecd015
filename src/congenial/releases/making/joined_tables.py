"""A table whose parts are files already: CSV lines are copied, and DuckDB joins the Parquet."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from congenial.releases import directory as files
from congenial.releases.file_table import Columns


class PartFiles(NamedTuple):
    """The rows of a part as lines of CSV, without a header, and as a Parquet file."""

    lines: memoryview
    parquet: memoryview


# Appends the rows of a part to both files of a table.
Append = Callable[[PartFiles], None]


@contextmanager
def joining(place: Path, names: tuple[str, str], columns: Columns) -> Iterator[Append]:
    """Yield a function that appends the files of a part to those of a table."""
    parts = list[Path]()
    with TemporaryDirectory(prefix="parts-", dir=place) as aside:
        with (place / names[0]).open("wb") as text:

            def append(part: PartFiles) -> None:
                text.write(part.lines)
                parts.append(Path(aside) / f"{len(parts)}.parquet")
                parts[-1].write_bytes(part.parquet)

            text.write(files.header_of(columns))
            yield append
        files.join_parquet(place / names[1], parts)
