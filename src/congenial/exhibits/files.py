"""Exhibits as text and files: tables in Markdown and CSV, figures in PNG and SVG."""

from __future__ import annotations

import csv
import importlib.util
import io

from congenial.errors import UnsupportedError
from congenial.exhibits.exhibit import Exhibit, Figure
from congenial.wording import cell_text

# Libraries that figures, projections and searches of studies need.
NEEDED = ("matplotlib", "piqp", "scipy")


def check_installed(what: str = "a study", needed: tuple[str, ...] | None = None) -> None:
    """Check, before long work begins, that the libraries it needs are installed."""
    missing = [name for name in needed or NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise UnsupportedError(
            f"{what} needs {' and '.join(missing)}, not installed here; run make extras in a clone "
            "of the project, or install congenial[studies]."
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
