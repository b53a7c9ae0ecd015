"""A comparison on the terminal, and as files: JSON, CSV, a page in Markdown and a figure."""

from __future__ import annotations

import io
import os
import shutil
import sys
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path

import msgspec
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table as Grid

from congenial.errors import ReleaseError
from congenial.exhibits.exhibit import Exhibit
from congenial.exhibits.files import (
    as_csv,
    as_image,
    as_rows,
    check_installed,
    replace_file,
)
from congenial.preview.comparison.outcome import Comparison
from congenial.preview.comparison.outcome_tables import (
    bias_table,
    errors_table,
    figure,
    label,
    methods_table,
    short_size_label,
    times_table,
)
from congenial.releases.directory import MARKER_TEXT

FORMAT = 1
NAME = "comparison"
# Beside files about confidential counts.
MARKER = f"{NAME}-NOT-PRIVATE.txt"
# Columns of a terminal, where its width is not known.
WIDTH = 132


def check_can_write(out: Path) -> None:
    """Check, before releases are drawn, that a figure can be made of them and written.

    Raises
    ------
    UnsupportedError
        If a library is missing.
    ReleaseError
        If `out` is, or lies in, what is no directory that can be written.
    """
    check_installed("a figure", ("matplotlib",))
    place = next(path for path in (out, *out.absolute().parents) if os.path.lexists(path))
    if not place.is_dir():
        raise _cannot(out, f"{place.name!r} is no directory")
    if not os.access(place, os.W_OK | os.X_OK):
        raise _cannot(out, f"{place.name!r} may not be written")


def _cannot(out: Path, why: str | None) -> ReleaseError:
    return ReleaseError(
        f"the comparison cannot be written to {str(out)!r} ({why}); name a directory that can be "
        "written."
    )


def as_text(found: Comparison, *, width: int = WIDTH, colour: bool = False) -> str:
    """Lay a comparison out for a terminal.

    Parameters
    ----------
    found : Comparison
    width : int
        Of the terminal, in columns.
    colour : bool
        Whether the terminal takes colours.
    """
    file = io.StringIO()
    out = Console(file=file, width=width, force_terminal=colour, highlight=False, markup=False)
    if found.stamp is not None:
        out.print(found.stamp, style="bold red")
    for line in _head(found):
        out.print(line)
    for grid in (_methods(found), _errors(found), _bias(found)):
        out.print()
        out.print(grid)
    for refused in found.refused:
        out.print(f"Left out: {label(refused.contender, found)}. {refused.reason}")
    out.print("Nothing was spent: these are simulations, and nobody may rely on them as releases.")
    return "\n".join(line.rstrip() for line in file.getvalue().splitlines())


def terminal_width() -> int:
    """Width of the terminal, or enough for the tables where there is none."""
    return shutil.get_terminal_size((WIDTH, 24)).columns if sys.stdout.isatty() else WIDTH


def as_json(found: Comparison) -> bytes:
    """Return a comparison as indented JSON, times left out: the same comparison, the same bytes."""
    plain = asdict(found)
    for result in plain["results"]:
        del result["seconds"]
    encoded = msgspec.json.encode({"format": FORMAT, **plain})
    return msgspec.json.format(encoded, indent=2) + b"\n"


def as_markdown(found: Comparison, command: str) -> str:
    """Return a comparison as a page that refers to its figure by name.

    Parameters
    ----------
    found : Comparison
    command : str
        What gives the same.
    """
    return "\n\n".join(_blocks(found, command)) + "\n"


def write(found: Comparison, out: Path, *, command: str) -> list[Path]:
    """Write all files of a comparison.

    Parameters
    ----------
    found : Comparison
    out : Path
        Directory; made where missing.
    command : str
        What gives the same, told on the page.

    Returns
    -------
    list of Path
        The page first.

    Raises
    ------
    ReleaseError
        If the directory cannot be written.
    """
    picture = figure(found)
    contents = {f"{NAME}.md": as_markdown(found, command).encode(), f"{NAME}.json": as_json(found)}
    contents |= {
        f"{NAME}-{table.name}.csv": as_csv(_noted(table, found.stamp)).encode()
        for table in _tables(found)
    }
    contents |= {
        f"{NAME}-{picture.name}.{form}": as_image(picture, form) for form in ("png", "svg")
    }
    if found.stamp is not None:
        contents[MARKER] = MARKER_TEXT.encode()
    try:
        out.mkdir(parents=True, exist_ok=True)
        (out / MARKER).unlink(missing_ok=True)  # of an earlier comparison
        return [replace_file(out / name, content) for name, content in contents.items()]
    except OSError as cause:
        raise _cannot(out, cause.strerror) from cause


def _head(found: Comparison) -> Iterator[str]:
    privacy = found.plan["privacy"]
    yield (
        f"{found.replicates:,} releases by each method at epsilon {privacy['epsilon']:g}, "
        f"neighbours {privacy['neighbours']}, seed {found.seed}."
    )
    yield f"Compared on {found.basis}."


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
    yield f"Written by `{command}`; but for the times, the same command gives the same."
    yield " ".join(_head(found))
    for table in _tables(found):
        yield f"## {table.title}"
        yield as_rows(table)
        yield from table.notes
    picture = figure(found)
    yield f"## {picture.title}"
    yield f"![{picture.title}]({NAME}-{picture.name}.svg)"


def _methods(found: Comparison) -> Grid:
    grid = Grid(
        "method", "guarantee", "obeys", title="Methods", title_justify="left", box=SIMPLE_HEAD
    )
    for name in ("first release", "each further"):
        grid.add_column(name, justify="right")
    for r in found.results:
        grid.add_row(
            label(r.contender, found),
            f"({r.epsilon:.6g}, {r.delta:.2g})",
            "always" if r.obeys else "no",
            f"{r.seconds.first:.3g} s",
            f"{r.seconds.further:.3g} s",
        )
    return grid


def _errors(found: Comparison) -> Grid:
    grid = Grid(
        "level", "method", title="Error by level, in counts", title_justify="left", box=SIMPLE_HEAD
    )
    for name in ("noise scale", "L1 (mean)", "L2 (root mean square)", "50%", "90%", "99%"):
        grid.add_column(name, justify="right")
    for at, level in enumerate(found.results[0].levels):
        if all(r.levels[at].l1 == 0.0 for r in found.results):
            grid.add_row(level.level, "all", "-", "0", "0", "0", "0", "0", end_section=True)
            continue
        for r in found.results:
            e = r.levels[at]
            grid.add_row(
                f"{level.level} ({level.nodes:,})" if r is found.results[0] else "",
                label(r.contender, found),
                "-" if e.scale is None else f"{e.scale:.4g}",
                f"{e.l1:.4g} ± {e.l1_error:.1g}",
                f"{e.l2:.4g}",
                *(f"{q:g}" for q in e.quantiles),
                end_section=r is found.results[-1],
            )
    return grid


def _bias(found: Comparison) -> Grid:
    level = found.results[0].levels[-1].level
    title = f"Bias by size of the true count, level {level}"
    grid = Grid("method", title=title, title_justify="left", box=SIMPLE_HEAD)
    sizes = [s for s in found.results[0].sizes if s.level == level]
    for size in sizes:
        grid.add_column(f"{short_size_label(size)}\n({size.nodes:,})", justify="right")
    for r in found.results:
        own = [s for s in r.sizes if s.level == level]
        cells = (f"{s.bias:+.2f}±{s.standard_error:.1g}" for s in own)
        grid.add_row(label(r.contender, found), *cells)
    return grid
