"""HTML of tables for notebooks: escaped, and short."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest

from congenial.exhibits.exhibit import Exhibit
from congenial.exhibits.notebook_html import (
    MOST_ROWS,
    cell_text,
    html_facts,
    html_table,
    left_out,
)

HOSTILE = "<script>alert('&')</script>"


def parsed(html):
    """Return the elements of HTML that must be well-formed."""
    return ET.fromstring(f"<div>{html}</div>")  # noqa: S314 - made here


def texts(html):
    return [text for text in parsed(html).itertext() if text]


def test_every_text_is_escaped():
    for html in (
        html_table(HOSTILE, [HOSTILE], [[HOSTILE]], 1, [HOSTILE]),
        html_facts(HOSTILE, {HOSTILE: HOSTILE}, [HOSTILE]),
    ):
        assert "<script" not in html
        assert texts(html) == [HOSTILE] * 4


def test_a_long_table_shows_its_first_rows_and_says_so():
    html = html_table("t", ["n"], ((k,) for k in range(1_000)), 1_000)
    assert len(parsed(html).findall(".//tbody/tr")) == MOST_ROWS
    assert texts(html)[-1] == "The first 20 of 1,000 rows."
    assert left_out(20, 20) == ()
    table = Exhibit("t", "Many", ("n",), tuple((k,) for k in range(30)))
    assert repr(table).splitlines()[-1] == "The first 20 of 30 rows."


@pytest.mark.parametrize(
    ("value", "text"),
    [(1234567, "1,234,567"), (0.123456, "0.1235"), (None, ""), (True, "True"), ("a", "a")],
)
def test_cells_are_written_for_people(value, text):
    assert cell_text(value) == text
