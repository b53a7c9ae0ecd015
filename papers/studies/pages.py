"""A study as files: a page in Markdown, a CSV file a table, PNG and SVG a figure."""

from __future__ import annotations

import html
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from congenial.durability.whole_files import replace_file
from congenial.errors import ReleaseError
from congenial.exhibits.exhibit import Cell, Exhibit, Figure
from congenial.exhibits.files import (
    ERROR,
    as_csv,
    as_image,
    as_rows,
    columns_with_errors,
    with_error,
)
from papers.studies.openings import OPENINGS, WORDS
from papers.studies.study import DIGITS, Study

WHAT = "what"


def write(study: Study, out: Path, *, seed: int, effort: float) -> list[Path]:
    """Write all files of a study; the same study gives the same bytes.

    Parameters
    ----------
    study : Study
    out : Path
        Directory; made where missing.
    seed : int
    effort : float
        Stated on the page.

    Returns
    -------
    list of Path
        The page first.

    Raises
    ------
    ReleaseError
        If the directory cannot be written.
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
        page = replace_file(
            out / f"{study.name}.md", as_markdown(study, seed=seed, effort=effort).encode()
        )
        tables = [
            replace_file(out / f"{study.name}-{table.name}.csv", as_csv(table).encode())
            for table in study.tables
        ]
        figures = [
            replace_file(out / f"{study.name}-{figure.name}.{form}", as_image(figure, form))
            for figure in study.figures
            for form in ("png", "svg")
        ]
    except OSError as cause:
        raise ReleaseError(
            f"the study cannot be written to {str(out)!r} ({cause.strerror}); name a directory "
            "that can be written."
        ) from cause
    return [page, *tables, *figures]


def as_markdown(study: Study, *, seed: int, effort: float) -> str:
    """Return the page of a study, which refers to its figures by name."""
    return "\n\n".join(_blocks(study, seed, effort)) + "\n"


def _blocks(study: Study, seed: int, effort: float) -> Iterator[str]:
    yield f"# {study.title}"
    opening = OPENINGS.get(study.name)
    if opening:
        yield f"**Question.** {opening.question}"
        yield f"**Answer.** {opening.answer({table.name: table for table in study.tables})}"
    yield from (block for figure in study.figures[:1] for block in _picture(study, figure))
    options = f" --seed {seed}" + ("" if effort == 1.0 else f" --effort {effort:g}")
    yield (
        f"`python -m papers {study.name}{options}` wrote this page. The same version of congenial "
        "finds the same numbers again; another version may draw other values from the same laws."
    )
    if opening and opening.words:
        yield "## Words"
        yield "\n".join(f"- {WORDS[word]}" for word in opening.words)
    yield "## What was found"
    yield from study.findings
    if study.details:
        yield from _folded("Statement by statement", *study.details)
    for figure in study.figures[1:]:
        yield f"## {figure.title}"
        yield from _picture(study, figure)
    yield "## Tables"
    yield (
        f"Click on a title to see its table. Numbers have {DIGITS} digits. The number after ± is a "
        f"standard error. The files `{study.name}-….csv` beside this page have 6 digits."
    )
    for table in study.tables:
        yield from _folded(table.title, as_rows(with_errors(table), DIGITS), *table.notes)


def _picture(study: Study, figure: Figure) -> Iterator[str]:
    yield f"![{figure.title}]({study.name}-{figure.name}.svg)"
    if figure.note:
        yield figure.note


def _folded(title: str, *blocks: str) -> Iterator[str]:
    yield f"<details>\n<summary>{html.escape(title, quote=False)}</summary>"
    yield from blocks
    yield "</details>"


def with_errors(table: Exhibit) -> Exhibit:
    """Return the table with every standard error in the cell of its number, after a ±.

    A column of standard errors follows that of the numbers, and a row of them the row of these.
    """
    rows: list[tuple[Cell, ...]] = []
    for row in table.rows:
        if WHAT in table.columns and row[table.columns.index(WHAT)] == ERROR:
            at = table.columns.index(WHAT) + 1
            joined = (
                with_error(a, b, DIGITS) for a, b in zip(rows[-1][at:], row[at:], strict=True)
            )
            rows[-1] = (*rows[-1][:at], *joined)
        else:
            rows.append(row)
    return columns_with_errors(replace(table, rows=tuple(rows)), DIGITS)
