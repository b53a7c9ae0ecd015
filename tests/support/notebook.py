"""HTML that objects show in a notebook."""

from __future__ import annotations

from xml.etree import ElementTree as ET

HOSTILE = "<script>alert('&')</script>"


def parsed(html):
    """Return the elements of HTML that must be well-formed."""
    return ET.fromstring(f"<div>{html}</div>")  # noqa: S314 - made by this package


def texts(html):
    """Return every text in HTML, in order."""
    return [text for text in parsed(html).itertext() if text]


def facts(html):
    """Return the rows of a table of two columns, by their first."""
    rows = (row for row in parsed(html).findall(".//tr") if len(row) == 2)
    return {row[0].text: row[1].text for row in rows}
