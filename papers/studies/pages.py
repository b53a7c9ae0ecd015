"""A study as files: a page in Markdown, a CSV file a table, PNG and SVG a figure."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from congenial.durability.whole_files import replace_file
from congenial.errors import ReleaseError
from congenial.exhibits.files import as_csv, as_image, as_rows
from papers.studies.study import Study


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
    options = f" --seed {seed}" + ("" if effort == 1.0 else f" --effort {effort:g}")
    yield f"Written by `python -m papers {study.name}{options}`; the same command gives the same."
    yield from study.findings
    for table in study.tables:
        yield f"## {table.title}"
        yield as_rows(table)
        yield from table.notes
    for figure in study.figures:
        yield f"## {figure.title}"
        yield f"![{figure.title}]({study.name}-{figure.name}.svg)"
