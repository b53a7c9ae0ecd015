"""How messages show values, choices and numbers, and notebooks small tables of them as HTML."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from decimal import ROUND_CEILING, Context, Decimal
from html import escape
from itertools import islice

# Longest value shown in a message, in characters.
_SHOWN = 60
# Longest part of another library's error shown in a message, in characters.
_REASON = 400
# Share of a bound by which its text may be smaller.
_UNSEEN = Decimal("1e-12")
# Most rows of a table in a notebook or a terminal.
MOST_ROWS = 20
_RIGHT = ' style="text-align: right"'
_LEFT = ' style="text-align: left"'


def show(value: object) -> str:
    """Write a value as a plan would, on one line and not too long."""
    if isinstance(value, bool):
        return "true" if value else "false"
    text = repr(value)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."


def rounded_up(bound: float | Decimal, digits: int) -> str:
    """Write an upper bound with some digits, rounded up, except for shares below 1e-12 of it."""
    exact = Decimal(bound)
    if not exact.is_finite():
        return str(bound)
    # doubles of bounds are rounded up themselves, which is not to be seen
    near = exact - abs(exact) * _UNSEEN
    return f"{float(Context(prec=digits, rounding=ROUND_CEILING).plus(near)):.{digits}g}"


def reason_of(error: Exception) -> str:
    """Return an error's text as a part of a sentence, without its middle if it is long.

    The text may quote a value of any length, and ends with its place.
    """
    text = str(error).replace("`", "'")  # backquotes are for arguments
    return text if len(text) <= _REASON else f"{text[: _REASON // 2]}...{text[-_REASON // 2 :]}"


def on_a_line(name: str) -> str:
    """Quote a name that is blank or has line breaks or unprintable characters."""
    return name if name.strip() and name.isprintable() else repr(name)


def joined(words: Sequence[str], last: str = "and") -> str:
    """Join words as a list, `last` before the last one."""
    return f" {last} ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))


def one_of(names: Iterable[str]) -> str:
    """Join names as a choice, each in quotes."""
    return joined([f"'{name}'" for name in names], "or")


def nearest(name: str, known: Iterable[str]) -> str:
    """Suggest the known name that `name` resembles most, in brackets, or nothing.

    One with the same words in another order, such as those of a margin, comes first; then one of
    the three that resemble it most which begins with it, such as INTEGER with INT.
    """
    folded = {v.casefold(): v for v in reversed(list(known))}
    words = sorted(name.casefold().split())
    close = [v for v in folded if len(words) > 1 and sorted(v.split()) == words]
    if not close:
        alike = difflib.get_close_matches(name.casefold(), folded, n=3, cutoff=0.6)
        close = sorted(alike, key=lambda v: not v.startswith(name.casefold()))
    return f" (did you mean '{folded[close[0]]}'?)" if close else ""


def many(number: int, noun: str, plural: str = "") -> str:
    """Write a number with its noun, in the plural unless the number is 1."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Lay rows of cells out as lines, each column as wide as its widest cell."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def escaped(name: str) -> str:
    """Write bytes of a file's name that are not UTF-8 as escapes, for JSON and SQLite."""
    return name.encode("utf-8", "backslashreplace").decode()


def cell_text(value: object, digits: int = 4) -> str:
    """Write the value of a cell: integers with commas, real numbers to some digits."""
    if isinstance(value, float):
        return f"{value:.{digits}g}"
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
