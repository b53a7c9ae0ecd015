"""The record of a study: its findings, tables and figures."""

from __future__ import annotations

from dataclasses import dataclass

from congenial.errors import ArgumentError
from congenial.exhibits.exhibit import Exhibit, Figure

# Significant digits of the tables on a page; files have six.
DIGITS = 3


@dataclass(frozen=True)
class Study:
    """What a study found.

    Attributes
    ----------
    name : str
        One of `papers.studies.NAMES`.
    title : str
    findings : tuple of str
        Paragraphs in Markdown; their numbers come from the tables.
    tables : tuple of Exhibit
    figures : tuple of Figure
        The first opens the page.
    details : tuple of str
        Paragraphs for readers who want to know more, folded on the page.
    """

    name: str
    title: str
    findings: tuple[str, ...]
    tables: tuple[Exhibit, ...]
    figures: tuple[Figure, ...] = ()
    details: tuple[str, ...] = ()


def replicates(full: int, effort: float, *, least: int = 2) -> int:
    """Return how many replicates to make: a share `effort` of the full study's, at least `least`.

    Raises
    ------
    ArgumentError
        If the share is not positive.
    """
    if not 0 < effort < float("inf"):
        raise ArgumentError(f"effort is {effort!r}; give a positive share, 1 for the whole study.")
    return max(least, round(full * effort))
