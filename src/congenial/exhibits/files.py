"""Exhibits as text and files: tables in Markdown and CSV, figures in PNG and SVG."""

from __future__ import annotations

import csv
import importlib.util
import io
from dataclasses import replace

from congenial.errors import UnsupportedError
from congenial.exhibits.exhibit import Cell, Exhibit, Figure
from congenial.wording import cell_text

# Libraries that figures, projections and searches of studies need.
NEEDED = ("matplotlib", "piqp", "scipy")
# Name of a column of standard errors, and the significant digits of these on pages.
ERROR, ERROR_DIGITS = "standard error", 2


def check_installed(what: str = "a study", needed: tuple[str, ...] | None = None) -> None:
    """Check, before long work begins, that the libraries it needs are installed."""
    missing = [name for name in needed or NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise UnsupportedError(
            f"{what} needs {' and '.join(missing)}, not installed here; run make extras in a clone "
            f"of the project, or pip install {' '.join(missing)}."
        )


def as_rows(table: Exhibit, digits: int = 4) -> str:
    """Return a table in Markdown; `digits` are the significant ones of a number."""
    numeric = [
        all(isinstance(row[c], int | float | None) or " ± " in str(row[c]) for row in table.rows)
        for c in range(len(table.columns))
    ]
    lines = [
        "| " + " | ".join(table.columns) + " |",
        "| " + " | ".join("---:" if right else "---" for right in numeric) + " |",
    ]
    lines += [
        "| " + " | ".join(cell_text(cell, digits).replace("|", "\\|") for cell in row) + " |"
        for row in table.rows
    ]
    return "\n".join(lines)


def columns_with_errors(table: Exhibit, digits: int = 4) -> Exhibit:
    """Return a table with each standard error in the cell of the number before it, after a ±."""
    for name in table.columns:
        if name.removeprefix("its ").split(",")[0] == ERROR:
            at = table.columns.index(name)
            rows = [
                (*row[: at - 1], with_error(row[at - 1], row[at], digits), *row[at + 1 :])
                for row in table.rows
            ]
            columns = (*table.columns[:at], *table.columns[at + 1 :])
            table = replace(table, columns=columns, rows=tuple(rows))
    return table


def with_error(number: Cell, error: Cell, digits: int) -> Cell:
    """Write a number with its standard error, where it has one."""
    if number is None or error is None:
        return number
    return f"{number:.{digits}g} ± {error:.{ERROR_DIGITS}g}"


def as_csv(table: Exhibit) -> str:
    """Return a table as CSV."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table.columns)
    for row in table.rows:
        writer.writerow([f"{cell:.6g}" if isinstance(cell, float) else cell for cell in row])
    return text.getvalue()


def as_image(figure: Figure, form: str) -> bytes:
    """Return a figure as "png" or "svg"; the same figure gives the same bytes."""
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Canvas

    data = io.BytesIO()
    # a fixed hash salt and no date, so that the same figure gives the same bytes
    with mpl.rc_context({"svg.hashsalt": figure.name, "svg.fonttype": "path"}):
        canvas = Canvas(figsize=figure.size, layout="constrained")
        FigureCanvasAgg(canvas)
        figure.draw(canvas)
        metadata = {"Software": None} if form == "png" else {"Date": None}
        canvas.savefig(data, format=form, dpi=150, metadata=metadata)
    return data.getvalue()
