"""Small HTML tables for notebooks; every text in them is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from itertools import islice

# Most rows of a table in a notebook or a terminal.
MOST_ROWS = 20
_RIGHT = ' style="text-align: right"'
_LEFT = ' style="text-align: left"'


def cell_text(value: object) -> str:
    """Write the value of a cell: integers with commas, real numbers to four digits."""
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return "" if value is None else str(value)


def html_table(
    title: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    total: int,
    notes: Sequence[str] = (),
) -> str:
    """Return the first rows of a table as HTML; a note says how many of the `total` are missing."""
    shown = list(islice(rows, MOST_ROWS))
    head = "".join(f"<th{_LEFT}>{escape(name)}</th>" for name in columns)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in shown)
    return (
        f"<table>{_caption(title)}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        f"{_paragraphs((*left_out(len(shown), total), *notes))}"
    )


def html_facts(title: str, facts: Mapping[str, object], notes: Sequence[str] = ()) -> str:
    """Return facts as an HTML table of two columns: the name of each, and its value."""
    body = "".join(
        f"<tr><th{_LEFT}>{escape(name)}</th><td{_LEFT}>{escape(cell_text(value))}</td></tr>"
        for name, value in facts.items()
    )
    return f"<table>{_caption(title)}<tbody>{body}</tbody></table>{_paragraphs(notes)}"


def left_out(shown: int, total: int) -> tuple[str, ...]:
    """Say how many rows a table leaves out; nothing if it has all of them."""
    return (f"The first {shown:,} of {total:,} rows.",) if shown < total else ()


def _cell(value: object) -> str:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return f"<td{_RIGHT if number else _LEFT}>{escape(cell_text(value))}</td>"


def _caption(title: str) -> str:
    return f'<caption style="text-align: left; font-weight: bold">{escape(title)}</caption>'


def _paragraphs(texts: Sequence[str]) -> str:
    return "".join(f"<p>{escape(text)}</p>" for text in texts)
