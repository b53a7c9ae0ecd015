"""A comparison as files: JSON, CSV, a page in Markdown and a figure."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path

import msgspec

from congenial.durability.whole_files import replace_file
from congenial.errors import ReleaseError
from congenial.exhibits.exhibit import Exhibit
from congenial.exhibits.files import (
    as_csv,
    as_image,
    as_rows,
    check_installed,
    columns_with_errors,
)
from congenial.preview.comparison.outcome_tables import (
    WIDTH,
    Comparison,
    bias_table,
    errors_table,
    figure,
    head,
    methods_table,
    times_table,
)
from congenial.releases.directory import MARKER_TEXT

FORMAT = 1
NAME = "comparison"
# Significant digits of numbers on the page.
DIGITS = 3
# File that marks the results of a comparison on confidential counts.
MARKER = f"{NAME}-NOT-PRIVATE.txt"


def check_can_write(out: Path) -> None:
    """Check, before releases are drawn, that a figure can be made of them and written."""
    check_installed("a figure", ("matplotlib",))
    place = next(path for path in (out, *out.absolute().parents) if os.path.lexists(path))
    if not place.is_dir():
        raise _cannot(out, f"{place.name!r} is no directory")
    if not os.access(place, os.W_OK | os.X_OK):
        raise _cannot(out, f"{place.name!r} may not be written")


def has_files(out: Path) -> bool:
    """Whether a directory has files of an earlier comparison."""
    return (out / f"{NAME}.md").exists()


def _cannot(out: Path, why: str | None) -> ReleaseError:
    return ReleaseError(
        f"the comparison cannot be written to {str(out)!r} ({why}); name a directory that can be "
        "written."
    )


def terminal_width() -> int:
    """Width of the terminal, or enough for the tables where there is none."""
    return shutil.get_terminal_size((WIDTH, 24)).columns if sys.stdout.isatty() else WIDTH


def as_json(found: Comparison) -> bytes:
    """Return a comparison as indented JSON without times, so that equal runs give equal bytes."""
    plain = asdict(found)
    for result in plain["results"]:
        del result["seconds"]
    encoded = msgspec.json.encode({"format": FORMAT, **plain})
    return msgspec.json.format(encoded, indent=2) + b"\n"


def as_markdown(found: Comparison, command: str) -> str:
    """Return a comparison as a page that refers to its figure by name."""
    return "\n\n".join(_blocks(found, command)) + "\n"


def write(found: Comparison, out: Path, *, command: str) -> list[Path]:
    """Write all files of a comparison, and return their paths, the page first."""
    picture = figure(found)
    contents = {f"{NAME}.md": as_markdown(found, command).encode(), f"{NAME}.json": as_json(found)}
    for table in _tables(found):
        contents[f"{NAME}-{table.name}.csv"] = as_csv(_noted(table, found.stamp)).encode()
    for form in ("png", "svg"):
        contents[f"{NAME}-{picture.name}.{form}"] = as_image(picture, form)
    if found.stamp is not None:
        contents[MARKER] = MARKER_TEXT.encode()
    try:
        out.mkdir(parents=True, exist_ok=True)
        (out / MARKER).unlink(missing_ok=True)  # of an earlier comparison
        return [replace_file(out / name, content) for name, content in contents.items()]
    except OSError as cause:
        raise _cannot(out, cause.strerror) from cause


def _tables(found: Comparison) -> tuple[Exhibit, ...]:
    return (methods_table(found), errors_table(found), bias_table(found), times_table(found))


def _noted(table: Exhibit, stamp: str | None) -> Exhibit:
    """Stamp every row of a table about confidential counts."""
    if stamp is None:
        return table
    rows = tuple((*row, stamp) for row in table.rows)
    return replace(table, columns=(*table.columns, "note"), rows=rows)


def _blocks(found: Comparison, command: str) -> Iterator[str]:
    yield "# Methods compared"
    if found.stamp is not None:
        yield f"**{found.stamp}**"
    yield f"`{command}` wrote this page. The same command gives the same numbers, except the times."
    yield " ".join(head(found))
    picture = figure(found)
    yield f"![{picture.title}]({NAME}-{picture.name}.svg)"
    for table in _tables(found):
        yield f"## {table.title}"
        yield from table.notes
        yield as_rows(columns_with_errors(table, DIGITS), DIGITS)
