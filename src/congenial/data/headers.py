"""Checks of CSV files before DuckDB reads them: first lines, and check sums of compressed files."""

from __future__ import annotations

import csv
import gzip
import zlib
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

# Separators of the fields of a CSV file, the usual one first.
DELIMITERS = ",;\t|"
# Most bytes of a header.
_LONGEST = 1_000_000


def first_line(file: Path) -> str:
    """Read the first line of a CSV file and decode nothing after it; empty if there is none."""
    opened = gzip.open if file.suffix.casefold() == ".gz" else open
    try:
        with opened(file, "rb") as handle:
            line = bytes(handle.readline(_LONGEST))
        return line.partition(b"\r")[0].rstrip(b"\n").decode("utf-8-sig")
    except (OSError, EOFError, UnicodeError, zlib.error):
        return ""


def delimiter_of(header: str) -> str | None:
    """Find the separator of a CSV file's header; None if the header is blank."""
    try:
        widths = {d: len(next(csv.reader([header], delimiter=d), [])) for d in DELIMITERS}
    except csv.Error:
        return None
    return max(DELIMITERS, key=lambda d: widths[d]) if header.strip() else None


def names_in(header: str, delimiter: str) -> list[str]:
    """Names in the first line of a CSV file; empty if it cannot be read."""
    try:
        names = next(csv.reader([header], delimiter=delimiter, strict=True), [])
    except csv.Error:
        return []
    return [name.strip() for name in names]


def repeats(names: Iterable[str]) -> bool:
    """Whether two columns have one name, in any letter case."""
    folded = [name.strip().casefold() for name in names]
    return len(set(folded)) != len(folded)


def is_whole(file: Path) -> bool:
    """Whether a gzip file's check sums hold, which DuckDB does not check; True for other files."""
    if file.suffix.casefold() != ".gz":
        return True
    with suppress(OSError, EOFError, zlib.error), gzip.open(file, "rb") as handle:
        while handle.read(_LONGEST):
            pass
        return True
    return False
